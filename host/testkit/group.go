package testkit

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// Group is several kits in one virtual time: whatever one of them waits for, all run for it. It is for tests of several systems that reach
// each other, such as the nodes of package nodekit. A group is for the goroutine of the test.
type Group struct {
	clock   *host.VirtualClock
	kits    []*Kit
	between func() bool
	running bool
}

// NewGroup is a group without kits.
func NewGroup() *Group { return &Group{clock: host.NewVirtualClock(start)} }

// Clock is the time of the group.
func (g *Group) Clock() *host.VirtualClock { return g.clock }

// Between has f called whenever all systems rest, before time goes on. It reports whether there may be something to do again. It may make
// kits and use them, but not wait.
func (g *Group) Between(f func() bool) { g.between = f }

// In makes a kit that belongs to a group. clock is that of its machine, and runs whether that runs now; without them its clock is the
// group's, and it always runs.
func In(g *Group, clock host.Clock, runs func() bool) Option {
	return func(o *options) {
		if o.group, o.clock, o.runs = g, clock, runs; clock == nil {
			o.clock = g.clock
		}
	}
}

// rest runs all kits of the group until none has anything to do.
func (g *Group) rest(t testing.TB) {
	t.Helper()
	if g.running {
		return // called within Between, after which all run again
	}
	g.running = true
	defer func() { g.running = false }()
	for more := true; more; {
		more = false
		for i := 0; i < len(g.kits); i++ { // there may be new ones meanwhile
			if k := g.kits[i]; k.o.runs == nil || k.o.runs() {
				more = k.rest() || more
			}
		}
		if g.between != nil && g.between() {
			more = true
		}
	}
}

// remove forgets a kit.
func (g *Group) remove(k *Kit) {
	g.kits = slices.DeleteFunc(g.kits, func(x *Kit) bool { return x == k })
}

// Until lets time pass for all until a condition holds, for d at most, and reports whether it does. A group may have no kits.
func (g *Group) Until(t testing.TB, d time.Duration, is func() bool) bool {
	t.Helper()
	return g.until(t, d, is, maxSpells, func() string { return "" })
}

// until is Until, for so many timers at most: then the test fails, and waits says what waits.
func (g *Group) until(t testing.TB, d time.Duration, is func() bool, timers int, waits func() string) bool {
	t.Helper()
	if g.running {
		t.Fatal("testkit: what is called between the turns of a group cannot wait")
	}
	end := g.clock.Now().Add(max(d, 0))
	for range timers {
		g.rest(t)
		if is() {
			return true
		}
		next, ok := g.clock.Next()
		if !ok || next.After(end) {
			g.clock.Advance(end.Sub(g.clock.Now()))
			g.rest(t)
			return is()
		}
		g.clock.Advance(next.Sub(g.clock.Now()))
	}
	t.Fatalf("testkit: %d timers before %v: one without an end?%s", timers, end, waits())
	return false
}
