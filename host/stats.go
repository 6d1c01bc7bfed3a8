package host

import (
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
)

// Stats takes a snapshot. It looks at every actor. Totals never go down from one call to the next,
// those of a type included: an actor that stops during the call counts once, as living or as stopped.
func (s *System) Stats() Stats {
	st := Stats{Actors: s.table.Len(), Asleep: int(s.asleep.Load()), Crashes: s.totals.Crashes.Load(), Restarts: s.totals.Restarts.Load()}
	_, st.DeadLetters = s.dead.All()
	living := map[string]*TypeStats{}
	st.Types = s.totals.Count(func(c *look.Census) {
		s.table.Each(func(a *actor) {
			if a.parent == nil || !c.Meets(&a.counted) {
				return // a guardian is nobody's
			}
			t := look.OfType(&living, a.props.typ)
			t.Actors++
			t.Add(&a.tally)
		})
	})
	for typ, t := range living {
		t.Join(st.Types[typ])
		st.Types[typ] = *t
	}
	for _, t := range st.Types {
		st.Turns += t.Turns
		st.Fuel += t.Fuel
	}
	return st
}

// Tree is a snapshot of /user and all actors below it. Actors keep running during the call.
func (s *System) Tree() Node { return s.user.node() }

func (a *actor) node() Node {
	n := Node{Ref: a.ref(), Type: a.props.typ, State: a.life.State().String(), Incarnation: a.incarnation(), Mailbox: a.box.Len(), Turns: a.turnCount()}
	if x := a.turn; x != nil {
		n.Asleep = !x.awake() && a.life.State() == life.Running
	}
	for _, k := range a.kids() {
		n.Children = append(n.Children, k.node())
	}
	return n
}
