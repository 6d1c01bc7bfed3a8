package host

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// Short turns in a row share a look at the clock, a few and not more; for one actor
// time never goes back.
func TestTurnsShareTheTime(t *testing.T) {
	sys := newSystem(t, NewConfig("time"))
	c, scr := &guest{actor: &actor{sys: sys}}, &scratch{w: new(dispatch.Worker)}
	first := c.turnAt.next(scr, &sys.time)
	if scr.read != first {
		t.Errorf("the machine's clock was read at %d, the turn's time is %d", scr.read, first)
	}
	for range sameTurns - 1 {
		if got := c.turnAt.next(scr, &sys.time); got != first {
			t.Fatalf("%d after %d", got, first)
		}
	}
	before := time.Now()
	if d := time.Duration(c.turnAt.next(scr, &sys.time) - before.UnixNano()); d < -time.Second || d > time.Second {
		t.Errorf("%v from the machine's clock", d)
	}
	scr.same = 0 // as after a long turn
	if got := c.turnAt.next(scr, &sys.time); got < first || scr.same != sameTurns-1 {
		t.Errorf("%d after %d", got, first)
	}
	c.turnAt += turnTime(time.Hour)
	if got := c.turnAt.next(scr, &sys.time); got != int64(c.turnAt) || got < before.Add(time.Minute).UnixNano() {
		t.Error("time goes back")
	}
}

// On a virtual clock every turn has exactly its time.
func TestVirtualTimeIsExact(t *testing.T) {
	sys, clock := manual(t, nil)
	c, scr := &guest{actor: &actor{sys: sys}}, &scratch{w: new(dispatch.Worker)}
	for range 20 {
		clock.Advance(time.Nanosecond)
		if got := c.turnAt.next(scr, &sys.time); got != clock.Now().UnixNano() {
			t.Fatalf("%d, not %d", got, clock.Now().UnixNano())
		}
		if scr.read != 0 {
			t.Fatal("what is not the machine's clock is said to be")
		}
	}
}

// TestTurnsKnowTheirThread: what a guest's turns get tells computing from waiting.
func TestTurnsKnowTheirThread(t *testing.T) {
	sys := newSystem(t, NewConfig("time"))
	a := &actor{sys: sys}
	a.rules.Store(new(rules))
	c, scr := &guest{actor: a}, scratchOf(new(dispatch.Worker))
	now := c.turnAt.next(scr, &sys.time)
	if in := c.limits(scr, now); in.Began != now || in.Anchor != &scr.anchor {
		t.Errorf("began %d, want %d, with %p", in.Began, now, in.Anchor)
	}
}
