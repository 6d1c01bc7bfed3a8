package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/lives"
	"github.com/wasmactors/wasmactors/host/internal/rest"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Durable actors: a recorder that is told only of the actors that outlive the process, and of all below them. The refs
// and the randomness of the others are new in each process; those of actors with a name of their own below a guardian
// follow from the name, so that a durable actor may keep them.

// WithDurable makes the actor, and all below it, outlive the process. It must be a guest whose state can be saved, with
// the usual mailbox, below /user or below a durable actor, in a system with a store ([Config.WithStore]).
func (p Props) WithDurable() Props { p.durable = true; return p }

// WithEvents has the system's recorder told of the actor's turns, and of nothing else: what it keeps of them, and feeds back
// at the next start, is its own affair. It is for package host/persist.
func (p Props) WithEvents() Props { p.events = true; return p }

func newDurability(cfg *settings, from *Secret) *durability {
	if !cfg.Partial {
		return nil
	}
	fresh := Secret(from.Derive(secret.ForProcess, 0, cfg.EpochNow()))
	return &durability{fresh: &fresh, rest: rest.New(func(a *actor) { a.place.Wake(nil) }), lives: lives.New(from), unsaved: map[abi.Ref]bool{}}
}

// namedRef is the ref of the next life of an actor below a guardian; false if it does not follow from the name.
func namedRef(guardian *actor, name string) (ref abi.Ref, ok bool) {
	d := guardian.sys.durable
	if d == nil || name == "" {
		return 0, false
	}
	return d.lives.Next(guardian.uid, guardian.path+"/"+name)
}

// errNoRest is for durable actors of a simulation that cannot come to rest, such as when their recorder has failed.
var errNoRest = errors.New("host: durable actors do not come to rest")

// comeToRest has durable actors handle no more messages, and waits until none of their turns waits for the recorder and
// nothing that they tell each other is under way. What comes for them waits in their mailboxes. With solid they do nothing at all then.
func comeToRest(ctx context.Context, s *System, solid bool) error {
	r, stuck := s.durable.rest, 0
	return r.Come(solid, func() error {
		if !s.cfg.Manual {
			return r.Wait(ctx)
		}
		n := s.RunUntilIdle(1 << 30)
		if x, ok := s.cfg.Recorder.(record.Stepper); ok && x.Steps() { // time says nothing: nobody else is at work
			if stuck++; n > 0 || x.Work() {
				stuck = 0
			}
			if stuck > 2 {
				return errNoRest
			}
			return nil
		}
		runtime.Gosched() // the recorder's goroutine has a held turn go on, which runs here
		return context.Cause(ctx)
	})
}

// freezeDurable is for a system that is about to stop its actors. The durable ones do not stop for good: nothing of their
// end is recorded, and they have no last turn.
func freezeDurable(s *System) {
	if d := s.durable; d != nil && d.rest.Freeze() {
		away(s).Drop()
		if f, ok := s.cfg.Recorder.(record.Freezer); ok {
			f.Freeze()
		}
	}
}

// isFrozen reports whether the actor ends with the process and not for good.
func isFrozen(a *actor) bool {
	return a.durable && a.sys.durable != nil && a.sys.durable.rest.Frozen()
}

// beginAnew is for an actor that was made before a system was rebuilt, and is not itself. What it was sent by
// those that were, it was sent in an earlier process.
func beginAnew(a *actor) {
	s := a.sys
	f := func() {
		a.place.Init(a)
		items := a.sysq.Take()
		kept := slices.DeleteFunc(slices.Clone(items), func(m sysmail.Msg) bool {
			watches := m.Kind == sysmail.Signal && (m.Signal.Kind == signal.Watch || m.Signal.Kind == signal.Unwatch)
			return m.Kind != sysmail.Start && m.Kind != sysmail.Look && !watches
		})
		owe(a, a.sysq.Done(items))
		owe(a, a.sysq.PutBack(kept))
		var back []*Envelope
		for e := a.box.Pop(); e != nil; e = a.box.Pop() {
			by := s.here(e.Sender)
			if e.Sender == 0 || by != nil && !by.durable || by == nil && s.outside.Has(e.Sender) {
				back = append(back, e)
			} else {
				e.Free()
			}
		}
		a.box.PushFront(back...)
	}
	for !a.place.Visit(f) {
		runtime.Gosched()
		if s.cfg.Manual {
			s.RunUntilIdle(1 << 20)
		}
	}
}

// isDurable reports whether a recorder is told of an actor that is being made.
func isDurable(s *System, parent *actor, p *Props) (bool, error) {
	if s.cfg.Recorder == nil || parent == nil || s.durable == nil {
		if p.durable || p.events {
			return false, fmt.Errorf("%w: a durable actor needs a store, see Config.WithStore", ErrBadProps)
		}
		return s.cfg.Recorder != nil, nil
	}
	below := parent.parent != nil && parent.durable
	switch {
	case p.events && (p.durable || below):
		return false, fmt.Errorf("%w: an actor that keeps events cannot be durable, or below an actor that is", ErrBadProps)
	case !below && !p.durable:
		return false, nil
	case !below && parent != s.user:
		return false, fmt.Errorf("%w: a durable actor cannot be below %s, which is not durable", ErrBadProps, parent.path)
	case p.module == nil || p.factory != nil:
		return false, fmt.Errorf("%w: only guests can be durable", ErrBadProps)
	case p.rare.Get().Mailbox != nil:
		return false, fmt.Errorf("%w: a durable actor has the usual mailbox", ErrBadProps)
	}
	if why := sandbox.CannotSave(p.module.Image()); why != "" {
		return false, fmt.Errorf("%w: the state of a durable actor must be savable: %s", ErrBadProps, why)
	}
	return true, nil
}

// concernsDurable reports whether what a guardian is told is about a durable child.
func concernsDurable(a *actor, m *sysmail.Msg) bool {
	k, known := m.Child.(*actor)
	if !known {
		ref := m.Ref
		if m.Born != nil {
			ref = m.Born.Ref
		}
		k = a.sys.here(ref)
	}
	return k != nil && k.durable
}

// closeDurable prepares the end of a system: durable actors come to rest, their recorder may look at them, and nothing of
// what follows is recorded.
func closeDurable(ctx context.Context, s *System) {
	if s.durable == nil || s.durable.rest.Frozen() {
		return
	}
	s.durable.checkpoints.Lock()
	defer s.durable.checkpoints.Unlock()
	until, cancel := context.WithTimeout(ctx, s.cfg.Grace)
	defer cancel()
	err := comeToRest(until, s, false)
	if f, ok := s.cfg.Recorder.(record.Freezer); ok && err == nil {
		f.Resting()
	}
	freezeDurable(s)
}
