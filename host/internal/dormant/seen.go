package dormant

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/view"
)

// What is seen of actors that have not returned: nobody has to return for it. They are asleep.

// AppendInfo appends what is known of each.
func (d *Actors) AppendInfo(to []view.Info) []view.Info {
	d.Each(func(r *Row) {
		to = append(to, view.Info{
			Ref: ref.Of(r.Ref, d.path(r)), Parent: d.Above, Type: r.Sort.Type, State: view.StateAsleep, Incarnation: r.Incarnation, Turns: r.Turns, Held: d.held(r),
		})
	})
	return to
}

// AppendNodes appends those below an actor, at most most.
func (d *Actors) AppendNodes(to []view.Node, above abi.Ref, most *int) []view.Node {
	if d.Below(above) == 0 {
		return to
	}
	d.Each(func(r *Row) {
		if *most <= 0 {
			*most = -1
			return
		}
		*most--
		to = append(to, view.Node{
			Ref: ref.Of(r.Ref, d.path(r)), Type: r.Sort.Type, State: life.Running.String(), Incarnation: r.Incarnation, Turns: r.Turns, Asleep: true,
		})
	})
	return to
}

// Count adds them to the totals of their types.
func (d *Actors) Count(living *map[string]*look.TypeStats) {
	d.Each(func(r *Row) {
		t := look.OfType(living, r.Sort.Type)
		t.Actors, t.Turns = t.Actors+1, t.Turns+r.Turns
	})
}
