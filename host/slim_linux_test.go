//go:build linux && (amd64 || arm64) && !portable

package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// crowd is a system, run by hand, of guests that could touch 3 MiB each.
type crowd struct {
	*System
	t       *testing.T
	toucher Props
	bound   int64
	refs    []Ref
}

// newCrowd has a bound of so many guests that have touched everything.
func newCrowd(t *testing.T, guests int64, change func(Config) Config) *crowd {
	c := &crowd{t: t, toucher: Guest(load(t, newEngine(t), "testdata/toucher.wasm"), "toucher")}
	c.bound = (guests*sandbox.Weight(c.toucher.module.Image()) + 2<<20) / 15 * 16
	c.System = newSystem(t, change(NewConfig("crowd").WithManual().WithIdleAfter(time.Hour).WithMemory(c.bound).WithGuardian(otherwise(supervision.Stop))))
	return c
}

// run runs everything, and checks after each run that all that guests have touched is counted, within the bound.
func (c *crowd) run() {
	c.t.Helper()
	for c.Step() {
		if n := c.pool.Held(); n > c.bound {
			c.t.Fatalf("%d of %d bytes are held", n, c.bound)
		}
		for _, ref := range c.refs {
			g := guestOf(c.table.Get(ref.UID()))
			x := g.inst.Load()
			if x == nil {
				continue
			}
			own, ok := x.LeanWeight()
			if held := must(c.View().Held(ref))(c.t).Memory; !ok || held < own {
				c.t.Fatalf("%v has %d bytes of its own, %d are counted", ref, own, held)
			}
		}
	}
}

func (c *crowd) spawn(n int) {
	for i := range n {
		c.refs = append(c.refs, must(c.Spawn(fmt.Sprint("g", i), c.toucher))(c.t))
		c.run()
	}
}

// Guests between two runs count for what they have touched: many more are awake than could be if all touched
// everything. When they do, in turn or one right after the other, they count for that before, and others sleep.
func TestGuestsCountForWhatTheyTouch(t *testing.T) {
	const many = 60
	for _, at := range []string{"in turn", "at once"} {
		t.Run(at, func(t *testing.T) {
			c := newCrowd(t, 4, func(c Config) Config { return c })
			c.spawn(many)
			s := c.View().Stats()
			if s.Asleep != 0 || s.Crashes != 0 {
				t.Fatalf("%d of %d are asleep, %d crashes", s.Asleep, many, s.Crashes)
			}
			for round := range uint64(3) {
				for _, ref := range c.refs {
					must(0, c.Tell(ref, 1))(t)
					if at == "in turn" {
						c.run()
					}
				}
				c.run()
				for _, ref := range c.refs {
					if got := must(c.View().Info(ref))(t); got.Turns != round+2 || got.Crashes != 0 { // the start is one
						t.Fatalf("%+v", got)
					}
				}
				if n := many - c.View().Stats().Asleep; n > 6 || n < 4 { // a page in three is not touched
					t.Errorf("%d have touched everything and are awake", n)
				}
			}
		})
	}
}

// In virtual time everybody counts for everything: what is refused does not depend on the machine's pages.
func TestVirtualTimeCountsEverything(t *testing.T) {
	c := newCrowd(t, 4, func(c Config) Config { return c.WithClock(NewVirtualClock(time.Unix(1000, 0))) })
	c.spawn(20)
	if n := 20 - c.View().Stats().Asleep; n > 5 || n < 3 {
		t.Errorf("%d are awake", n)
	}
}

// A guest that finds no room to run waits, as one does that finds none to start.
func TestSlimGuestsWaitForRoom(t *testing.T) {
	c := newCrowd(t, 4, func(c Config) Config { return c })
	c.spawn(1)
	g := guestOf(c.table.Get(c.refs[0].UID()))
	if !g.inst.Slimmed() && !g.inst.Slim(true) {
		t.Fatal("it is not slim")
	}
	var full []Ref
	for range 3 { // of which none may have more than half
		ref := must(c.Spawn("", Func(func(*Context, Message) error { return nil }).WithLimits(Limits{Mailbox: 1 << 20, MailboxBytes: 1 << 30, Held: 1 << 30})))(t)
		must(0, c.Operate().Pause(ref, false))(t)
		c.run()
		for c.Tell(ref, Raw(append([]byte{0x59, 0x10, 0x00}, make([]byte, 4096)...))) == nil {
			continue
		}
		full = append(full, ref)
	}
	must(0, c.Tell(c.refs[0], 1))(t)
	c.run()
	if got := must(c.View().Info(c.refs[0]))(t); got.State != StateStarved || got.Mailbox != 1 {
		t.Fatalf("%+v", got)
	}
	for _, ref := range full {
		c.Stop(ref)
	}
	waitFor(t, "its turn", func() bool { c.run(); return must(c.View().Info(c.refs[0]))(t).Turns == 2 })
}

// Without any need, too, a guest that has not run for a while counts for what it has touched, so that accounts are
// what is there.
func TestGuestsGetSlimInTime(t *testing.T) {
	c := newCrowd(t, 4, func(c Config) Config { return c })
	c.spawn(1)
	g := guestOf(c.table.Get(c.refs[0].UID()))
	for round := range int64(3) {
		if g.inst.Slim(false) {
			t.Error("it has just run")
		}
		if !g.inst.Slim(false) || g.inst.Slim(true) {
			t.Error("it has not become slim, or twice")
		}
		if n := must(c.View().Held(c.refs[0]))(t).Memory; n >= 256<<10+min(round, 1)*(2<<20) { // two of the three MiB were touched
			t.Errorf("it counts %d before run %d", n, round)
		}
		must(0, c.Tell(c.refs[0], 1))(t)
		c.run()
		if n := must(c.View().Held(c.refs[0]))(t).Memory; n != sandbox.Weight(c.toucher.module.Image()) {
			t.Errorf("it counts %d after its run", n)
		}
	}
}
