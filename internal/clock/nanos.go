package clock

import (
	"sync/atomic"
	"time"
)

// Nanos tells the time of a [Clock] in nanoseconds since 1970. On the machine's clock it adds the monotonic
// clock to an anchor, which takes half as long as time.Now, and reads the wall clock once a second. Init comes
// first; then all methods are for any number of goroutines. It must not be copied.
type Nanos struct {
	clock  Clock
	anchor atomic.Pointer[anchor] // nil: another clock than the machine's
}

type anchor struct {
	at   time.Time
	unix int64
}

// Init says whose time it is.
func (n *Nanos) Init(c Clock) {
	n.clock = c
	if c == Real() {
		n.set()
	}
}

func (n *Nanos) set() int64 {
	now := time.Now()
	n.anchor.Store(&anchor{now, now.UnixNano()})
	return now.UnixNano()
}

// Real reports whether the clock is the machine's.
func (n *Nanos) Real() bool { return n.anchor.Load() != nil }

// Now is the time.
func (n *Nanos) Now() int64 {
	a := n.anchor.Load()
	if a == nil {
		return n.clock.Now().UnixNano()
	}
	passed := time.Since(a.at)
	if passed > time.Second {
		return n.set()
	}
	return a.unix + int64(passed)
}

// Of converts a time of the machine's clock to the one that is told, which is now at present.
func (n *Nanos) Of(at time.Time, now int64) int64 {
	if a := n.anchor.Load(); a != nil {
		return a.unix + int64(at.Sub(a.at))
	}
	return now + int64(time.Until(at))
}
