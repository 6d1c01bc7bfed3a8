package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/paths"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// place is a path that was parsed.
type place = paths.Place

// nodes is what a search sees of actors.
var nodes = paths.Nodes[*actor]{
	UID:      func(a *actor) abi.Ref { return a.uid },
	Name:     (*actor).Name,
	Elements: func(a *actor) []string { return a.elements },
	Child:    (*actor).child,
	Children: (*actor).kids,
	Count:    func(a *actor) int { return a.super.Family.Len() + away(a.sys).Below(a.uid) },
}

// parsePath reads a path as an actor writes it: "./a" below it, "../a" beside it, "/a"
// from the root, or the text of a ref.
func (a *actor) parsePath(path string) (place, bool) {
	if p, ok := paths.Relative(a.elements, path); ok {
		return p, true
	}
	return a.sys.parsePath(path)
}

// parsePath reads a path from the root, or the text of a ref.
func (s *System) parsePath(path string) (place, bool) {
	elements, uid, ok := ref.Split(s.root[len(ref.Scheme):], path)
	return place{Elements: elements, UID: uid}, ok
}

// selected returns every actor that a place names.
func (s *System) selected(p place, path string) (at []*actor, err error) {
	if at = s.nodes.Selected(p); len(at) == 0 {
		err = fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return at, err
}

// Lookup finds an actor by its path, such as /user/a/b, or by the text of its
// ref; with a uid in it, only that incarnation.
func (s *System) Lookup(path string) (Ref, error) {
	p, ok := s.parsePath(path)
	if !ok {
		return Ref{}, notAPath(path)
	}
	a := s.nodes.Find(p.Elements)
	if a == nil || p.UID != 0 && a.uid != p.UID {
		return Ref{}, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return a.ref(), nil
}

func notAPath(path string) error { return fmt.Errorf("%w: %q is not a path", ErrUnknown, path) }

// TellPath sends a message without a sender to every actor that a path with patterns names, such as
// /user/workers/*. If one of them does not accept it, that is an error and a dead letter, and so is
// a path without an actor.
func (s *System) TellPath(path string, v any) error {
	p, ok := s.parsePath(path)
	return s.tellPath(nil, nil, p, ok, path, v)
}

// tellPath sends a message to all actors that a path names; if it names none there is one dead letter.
func (s *System) tellPath(scr *scratch, from *actor, p place, ok bool, path string, v any) (err error) {
	e, err := message.Envelope(v)
	if err != nil {
		return err
	}
	to, below, far := s.far.Elsewhere(path)
	defer func() {
		if !far {
			e.Free()
		}
	}()
	if from != nil {
		e.Sender, e.SenderPath, e.Attached = from.uid, from.path, from.rules.Load().attached
		s.tracing.Chosen(e)
	} else {
		span := s.fromOutside(context.Background(), SendSpan, newRef(0, path), e)
		defer func() { s.tracing.Sent(span, err) }()
	}
	if far {
		e.Attached = message.Below(e.Attached, below)
		return s.deliver(scr, to, e)
	}
	var at []*actor
	if err = notAPath(path); ok {
		if at, err = s.selected(p, path); err != nil && p.UID == 0 && !glob.HasMeta(path) {
			if a, name := s.findDoor(p.Elements); a != nil {
				e.Attached = message.Below(e.Attached, name)
				at, err = []*actor{a}, nil
			}
		}
	}
	if err != nil {
		s.deadLetter(DeadUnknown, 0, p.Absolute(path), e)
		return err
	}
	for _, x := range at {
		one, a := message.CloneEnvelope(e), x
		if p.UID == 0 {
			var name string
			if a, name = x.door(); name != "" {
				one.Attached = message.Below(one.Attached, name)
			}
		}
		if from != nil && scr != nil {
			scr.effects = append(scr.effects, effect{Kind: turn.Send, To: a.uid, Env: one})
		} else {
			err = errors.Join(err, s.deliverTo(scr, a, one))
		}
	}
	return err
}

// Select returns every actor that a path with patterns names now, in the order of their
// start.
func (s *System) Select(path string) []Ref {
	p, _ := s.parsePath(path)
	at, _ := s.selected(p, path)
	refs := make([]Ref, len(at))
	for i, a := range at {
		refs[i] = a.ref()
	}
	return refs
}

// identify is the question of an Identify.
type identify struct{}

// Identify returns the ref of the actor at a path. The host answers on the actor's behalf when its turn comes, after all
// messages that it was sent before. ErrUnknown: no actor has the path. ErrTimeout: it has not answered in time.
func (s *System) Identify(ctx context.Context, path string) (Ref, error) {
	ref, err := s.Lookup(path)
	uid, below, far := s.far.Elsewhere(path)
	if far {
		path, _, _ := strings.Cut(path, "#")
		ref, err = newRef(uid, path), nil
	}
	if err != nil {
		return Ref{}, err
	}
	m, err := s.outside.Ask(ctx, ref, identify{}, message.Identify(0, 0, below))
	var negative *ReplyError
	if errors.As(err, &negative) || errors.Is(err, ErrStopped) {
		return Ref{}, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return m.Sender, err
}

// identifyAll asks every actor that a path with patterns names who it is, unless expect is false for it; see outside.Kernel.
func identifyAll(s *System, path string, by abi.Ref, correlation uint64, expect func(abi.Ref) bool) (n int, nobody bool) {
	if uid, below, far := s.far.Elsewhere(path); far && expect(uid) {
		_ = s.deliver(nil, uid, message.Identify(by, correlation, below))
		return 1, false
	}
	p, _ := s.parsePath(path)
	at, err := s.selected(p, path)
	for _, a := range at {
		if expect(a.uid) {
			_ = s.deliverTo(nil, a, message.Identify(by, correlation, ""))
			n++
		}
	}
	return n, err != nil && !glob.HasMeta(path)
}

// identified answers for an actor.
func (s *System) identified(scr *scratch, a *actor, asked *mailbox.Envelope) {
	r := scr.newEnvelope()
	r.Kind, r.Flags, r.Sender, r.SenderPath, r.Correlation = abi.KindReply, mark.Ours, a.uid, a.path, asked.Correlation
	r.Payload = append(r.Payload, nullPayload...)
	r.SetHeaders(asked.Headers) // the trace of the asker
	_ = s.deliver(scr, asked.Sender, r)
}
