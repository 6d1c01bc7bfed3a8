package gateway

import (
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// again calls f after each d, until it is stopped or f says false. The next time counts from when
// f has returned. stop does not wait for an f that runs.
func again(clock host.Clock, d time.Duration, f func() bool) (stop func()) {
	a := &repeated{clock: clock, d: d, f: f}
	a.arm()
	return a.stop
}

type repeated struct {
	clock host.Clock
	d     time.Duration
	f     func() bool

	mu    sync.Mutex
	timer interface{ Stop() bool }
	over  bool
}

func (a *repeated) arm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.timer = a.clock.AfterFunc(a.d, a.call)
	}
}

func (a *repeated) call() {
	if a.f() {
		a.arm()
	}
}

func (a *repeated) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
