package stream

import (
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// deadline is a point in time that can be moved while somebody waits for it. The zero value is never
// reached.
type deadline struct {
	mu    sync.Mutex
	timer interface{ Stop() bool }
	over  chan struct{} // closed when it is reached
	shut  bool          // it is closed
}

// set moves it; the zero time removes it.
func (d *deadline) set(clock host.Clock, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.over == nil || d.shut {
		d.over, d.shut = make(chan struct{}), false
	}
	if at.IsZero() {
		return
	}
	left := at.Sub(clock.Now())
	if left <= 0 {
		d.shut = true
		close(d.over)
		return
	}
	var timer interface{ Stop() bool }
	timer = clock.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer && !d.shut { // it was not moved meanwhile
			d.shut = true
			close(d.over)
		}
	})
	d.timer = timer
}

// reached is closed when the deadline is reached.
func (d *deadline) reached() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over == nil {
		d.over = make(chan struct{})
	}
	return d.over
}
