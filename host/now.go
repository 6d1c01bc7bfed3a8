package host

import (
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// turnClock tells turns the time in nanoseconds since 1970. On the machine's
// clock it adds the monotonic clock to an anchor, which takes half as long as
// time.Now, and reads the wall clock once a second.
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

// Short turns in a row share one look at the clock, which costs as much as the turn
// of a small guest: sameTurns at most, and only as long as none of them was long and
// the worker has not waited. So a turn's time is some microseconds old at most, unless
// the operating system has taken the processor away meanwhile. For one actor time
// never goes back.
const (
	sameTurns = 8
	longTurn  = 2000 // units of fuel, about a microsecond
)

// turnTime is the time of the actor's next turn.
func (g *guest) turnTime(scr *scratch) int64 {
	if scr.same > 0 && scr.waits == scr.w.Waits() {
		scr.same--
	} else {
		scr.now, scr.same, scr.waits, scr.read = g.actor.sys.time.now(), 0, scr.w.Waits(), 0
		if g.actor.sys.time.anchor.Load() != nil {
			scr.same, scr.read = sameTurns-1, scr.now
		}
	}
	g.turnAt = max(g.turnAt, scr.now)
	return g.turnAt
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

// of converts a time of the machine's clock to the turns' clock, which shows now.
func (t *turnClock) of(at time.Time, now int64) int64 {
	if a := t.anchor.Load(); a != nil {
		return a.unix + int64(at.Sub(a.at))
	}
	return now + int64(time.Until(at))
}
