package host

import (
	"fmt"

	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/record"
)

// Children begin in a repetition where the records say so, or behind it: see startChildren.

// beginRest starts the children that are in no record. It is called twice: those that the limits of then refuse begin under those of now.
func (p *repeats) beginRest() {
	rest, now := p.unbegun, p.over.Load()
	p.unbegun = nil
	for _, x := range rest {
		if s := x.of.life.State(); s != life.Running && s != life.Failed {
			continue // its next incarnation starts them
		}
		err := p.step(x.of, &record.Record{Time: p.at.Clock.Now().UnixNano()}, nil, func(scr *scratch) {
			child, err := x.of.spawn(scr, x.name, x.make, x.ref)
			if err == nil && !now {
				p.unnoted = append(p.unnoted, child)
			}
			p.err = err
		})
		if err != nil && now {
			unstarted(x.of, x.name, x.make.typ, x.ref, err)
		} else if err != nil {
			p.unbegun = append(p.unbegun, x)
		}
	}
}

// born starts a child again that its parent's props named, when its beginning is recorded: what was decided before was not about it.
func (p *repeats) born(parent *actor, name string, r *record.Record) (a *actor, err error) {
	delete(p.unborn, r.Actor)
	props, err := p.bornOf(parent, name, r.Life.Type, r.Actor, r.Life.Code)
	if err == nil {
		err = p.step(parent, r, nil, func(scr *scratch) { a, p.err = parent.spawn(scr, name, &props, r.Actor) })
	}
	if err != nil {
		return nil, fmt.Errorf("the child %q: %w", name, err)
	}
	return a, nil
}
