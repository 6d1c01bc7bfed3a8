package host

import (
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// turnClock tells turns the time in nanoseconds since 1970. On the machine's
// clock it reads the monotonic clock and adds, which takes half as long as
// time.Now, and looks at the wall clock once a second.
type turnClock struct {
	clock  clock.Clock
	anchor atomic.Pointer[anchor] // nil: another clock
}

type anchor struct {
	at   time.Time
	unix int64
}

func (t *turnClock) init(c clock.Clock) {
	t.clock = c
	if c == clock.Real() {
		t.set()
	}
}

func (t *turnClock) set() int64 {
	now := time.Now()
	t.anchor.Store(&anchor{now, now.UnixNano()})
	return now.UnixNano()
}

func (t *turnClock) now() int64 {
	a := t.anchor.Load()
	if a == nil {
		return t.clock.Now().UnixNano()
	}
	passed := time.Since(a.at)
	if passed > time.Second {
		return t.set()
	}
	return a.unix + int64(passed)
}
