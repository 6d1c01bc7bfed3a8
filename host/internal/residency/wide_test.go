package residency

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// Who has not run for a time gives its room back; nobody looks where nobody holds any.
func TestRoomIsGivenBack(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	l := New(v, 0, 0)
	all := newGuests(l, 300)
	for i, g := range all {
		g.ran, g.busy = i%3 == 0, i == 7
		l.Widen(&g.node)
		l.Widen(&g.node) // which changes nothing
	}
	if n := l.wide.Load(); n != 300 {
		t.Fatalf("%d hold room", n)
	}
	v.Advance(slimAfter)
	for i, g := range all {
		if want := i%3 != 0 && i != 7; (g.slim == 1) != want {
			t.Fatalf("number %d has given room back %d times", i, g.slim)
		}
	}
	v.Advance(slimAfter)
	if n := l.wide.Load(); n != 1 || v.Pending() != 1 {
		t.Fatalf("%d hold room, %d timers", n, v.Pending())
	}
	all[7].busy = false
	v.Advance(slimAfter)
	if n := l.wide.Load(); n != 0 || v.Pending() != 0 {
		t.Errorf("%d hold room, %d timers", n, v.Pending())
	}
	l.Widen(&all[0].node)
	if v.Pending() != 1 {
		t.Error("nobody will look again")
	}
	l.Close()
	if v.Pending() != 0 {
		t.Error("a timer is left")
	}
}

// A newcomer that lacks room gets what one that does not run holds, whether it has run or not, and never its own;
// one of a tree what another one of the tree holds.
func TestNewcomersGetUnusedRoom(t *testing.T) {
	l := New(clock.NewVirtual(time.Unix(0, 0)), 0, 0)
	tree := new(Tree)
	all := newGuests(l, 40)
	for i, g := range all {
		if i >= 38 {
			g.node.Init(g, uint64(i), tree)
		}
		g.ran, g.busy = true, i < 20
		l.Widen(&g.node)
	}
	mine := func(s Sleeper) bool { return s != Sleeper(all[38]) }
	if !tree.MakeRoom(&all[0].node, mine) || all[39].slim != 1 {
		t.Error("no room in the tree")
	}
	if tree.MakeRoom(&all[0].node, mine) || tree.MakeRoom(&all[38].node, anybody) || all[38].slim != 0 {
		t.Error("room of one that does not fit, or of the newcomer's own")
	}
	for range 18 {
		if !l.SlimOne(&all[38].node) {
			t.Fatal("no room")
		}
	}
	if l.SlimOne(&all[38].node) || all[38].slim != 0 {
		t.Error("room of those that run, or of the newcomer's own")
	}
	for i, g := range all[:20] {
		if g.slim != 0 {
			t.Errorf("number %d runs and has given its room back", i)
		}
	}
}
