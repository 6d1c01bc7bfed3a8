package host

import (
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/saved"
)

// A guest between two turns as bytes: the state of its instance, keyed by the image's hash, and what the host holds for
// it. A checkpoint of durable actors has such bytes of each of them, with its mailbox and its life, see checkpoint.go.

// saveTo writes the guest into s; it must be between two turns of an incarnation that has begun. Only its own run may call
// it.
func (g *guest) saveTo(s *saved.State) (err error) {
	a := g.actor
	*s = saved.State{
		Version: saved.Version, Ref: a.uid, Type: a.props.typ, Incarnation: a.Incarnation(), Turns: a.turns, Spawned: g.spawned, Whole: s.Whole,
	}
	if s.Guest, err = g.inst.Save(); err != nil {
		return err
	}
	s.SetWork(&a.work)
	s.Lookouts = a.sys.lookouts.Of(a)
	if s.Whole == nil { // a checkpoint has them as actors of their own
		s.Children = childrenOf(a)
	}
	return nil
}

// childrenOf are the children that a snapshot has.
func childrenOf(a *actor) (all []saved.Child) {
	for _, m := range a.super.Family.Members() {
		k := m.Child
		if k.life.State() == life.Stopped { // another one may have its name
			continue
		}
		all = append(all, saved.Child{
			Ref: k.uid, Name: k.Name(), Type: k.props.typ, Args: k.args, Lifetime: uint8(k.Lifetime()), Significant: k.Significant(), Record: m.Record.State(),
			Orders: m.Orders, Suspended: m.Suspended,
		})
	}
	return all
}

// restore puts a guest, whose incarnation begins, into a state instead of starting it. Its instance is in that
// state already, see admit.
// Its children are started by the caller, which restores the tree.
func (g *guest) restore(ctx *Context, b []byte) error {
	a := g.actor
	s, err := saved.Decode(b)
	if err != nil {
		return err
	}
	if s.Ref != a.uid || s.Type != a.props.typ {
		return fmt.Errorf("%w: it is of %s %d", saved.ErrState, s.Type, s.Ref)
	}
	if err := s.Exceeds(&a.rules.Load().limits); err != nil {
		return err
	}
	for _, text := range s.Lookouts {
		if p, ok := a.parsePath(text); !ok || p.UID != 0 {
			return fmt.Errorf("%w: it watches the pattern %q, which is not a path", saved.ErrState, text)
		}
	}
	a.Number.Store(s.Incarnation)
	g.turnAt.next(ctx.scr, &g.actor.sys.time)
	a.turns, g.spawned = s.Turns, s.Spawned
	g.keys.Draw(secretFor(g.actor), g.actor.uid, s.Incarnation)
	if err := a.restoreHeld(ctx.scr, s); err != nil {
		return err
	}
	for _, text := range s.Lookouts { // those that have come meanwhile are found now
		x, err := a.restoreLookout(text)
		if err != nil {
			return err
		}
		watching{a, ctx.scr}.around(x)
	}
	a.work.SetReceiveTimeout(a, time.Duration(s.Receive))
	return nil
}

// restoreHeld restores timers, asks, watches and the stash. Who is watched is told, unless it knows: it is in the same
// checkpoint.
func (a *actor) restoreHeld(scr *scratch, s *saved.State) error {
	told := s.Told()
	return s.Work(&a.work, a, func(w *saved.Watch) error {
		if t := a.sys.table.Peek(w.Ref); s.Whole != nil && (told[w.Ref] || s.Whole.Knows(w.Ref) || t != nil && t.durable || away(a.sys).Has(w.Ref)) {
			_, err := a.work.AddWatch(a, w.Ref, w.Path)
			return err
		}
		return watching{a, scr}.addRef(w.Ref, w.Path)
	})
}

// restoreLookout enters a lookout, with nobody found yet.
func (a *actor) restoreLookout(text string) (*lookout, error) {
	p, ok := a.parsePath(text)
	if !ok || p.UID != 0 {
		return nil, fmt.Errorf("%w: it watches the pattern %q, which is not a path", saved.ErrState, text)
	}
	x := newLookout(a, p, text)
	return x, a.sys.lookouts.Add(x)
}
