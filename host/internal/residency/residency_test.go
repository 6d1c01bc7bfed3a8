package residency

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"pgregory.net/rapid"
)

type guest struct {
	node   Node
	asleep bool
	list   *List
}

func (g *guest) AskToSleep(*dispatch.Worker) { g.asleep = true; g.list.Remove(&g.node) }
func (g *guest) use()                        { g.asleep = false; g.list.Use(nil, &g.node) }

func newGuests(l *List, n int) (all []*guest) {
	for i := range n {
		g := &guest{list: l}
		g.node.Init(g, uint64(i))
		all = append(all, g)
	}
	return all
}

func awake(all []*guest) (n int) {
	for _, g := range all {
		if !g.asleep {
			n++
		}
	}
	return n
}

func TestIdleGuestsSleep(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	l := New(v, time.Minute, 0)
	all := newGuests(l, 40)
	for _, g := range all {
		g.use()
	}
	v.Advance(time.Minute) // they were used until now
	all[3].use()
	v.Advance(time.Minute)
	if awake(all) != 1 || all[3].asleep {
		t.Errorf("%d are awake", awake(all))
	}
	v.Advance(time.Minute)
	if awake(all) != 0 || v.Pending() != 0 {
		t.Errorf("%d are awake, %d timers", awake(all), v.Pending())
	}
	all[5].use()
	if v.Pending() != 1 {
		t.Error("nobody will look again")
	}
	l.Close()
	if v.Pending() != 0 {
		t.Error("a timer is left")
	}
}

// At rest the goal holds, whoever is used.
func TestGoalHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 20).Draw(t, "most")
		l := New(clock.NewVirtual(time.Unix(0, 0)), 0, most)
		all := newGuests(l, 60)
		for _, g := range all {
			g.asleep = true
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 200).Draw(t, "used") {
			all[i].use()
			if all[i].asleep {
				t.Fatal("the newcomer itself sleeps")
			}
			if n := awake(all); n > most+1 {
				t.Fatalf("%d are awake, the goal is %d", n, most)
			}
		}
	})
}
