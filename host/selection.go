package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// A path names the actor that is there when a message is sent, not an incarnation. An element
// may be a pattern: '*' stands for any run of characters, '?' for one.

// place is a path that was parsed.
type place struct {
	elements []string // behind the system's name
	uid      abi.Ref  // 0: any incarnation
	child    bool     // it was written as "./name", a child of the writer
}

// parsePath reads a path as an actor writes it: "./a" below it, "../a" beside it, "/a"
// from the root, or the text of a ref.
func (a *actor) parsePath(path string) (place, bool) {
	if elements, child, ok := relative(a.elements, path); ok {
		return place{elements: elements, child: child}, true
	}
	return a.sys.parsePath(path)
}

// absolute is a path that was written, from the root: a dead letter is read, and delivered again, by
// actors for which a relative one would lead elsewhere or nowhere. What would be read as something else
// then, since there is a '#' in a name, stays as it is: no actor can have it.
func (p place) absolute(written string) string {
	if len(p.elements) == 0 || !strings.HasPrefix(written, ".") || strings.Contains(written, "#") {
		return written
	}
	return "/" + strings.Join(p.elements, "/")
}

// parsePath reads a path from the root, or the text of a ref.
func (s *System) parsePath(path string) (place, bool) {
	elements, uid, ok := ref.Split(s.root[len(ref.Scheme):], path)
	return place{elements: elements, uid: uid}, ok
}

// relative resolves "./a" and "../a"; child reports the former, which needs no
// capability.
func relative(self []string, path string) (elements []string, child, ok bool) {
	switch {
	case strings.HasPrefix(path, "./"):
		elements, child = append(append([]string(nil), self...), strings.Split(path[2:], "/")...), true
	case strings.HasPrefix(path, "../"):
		base := self
		for strings.HasPrefix(path, "../") {
			if len(base) == 0 {
				return nil, false, false
			}
			base, path = base[:len(base)-1], path[3:]
		}
		elements = append(append([]string(nil), base...), strings.Split(path, "/")...)
	default:
		return nil, false, false
	}
	for _, e := range elements {
		if e == ".." || e == "." || e == "" {
			return nil, false, false
		}
	}
	return elements, child, true
}

// find walks the tree.
func (s *System) find(elements []string) *actor {
	if len(elements) == 0 {
		return nil
	}
	var a *actor
	switch elements[0] {
	case "user":
		a = s.user
	case "system":
		a = s.services
	}
	for _, e := range elements[1:] {
		if a == nil {
			return nil
		}
		a = a.child(e)
	}
	return a
}

// match returns every actor that a path with patterns names, in the order of their start.
func (s *System) match(elements []string) []*actor {
	found, _ := s.search(elements, nil)
	return found
}

// search is match. pay, which may be nil, is told before actors are visited how many there
// are and which pattern they are compared with; a failure of it ends the search.
func (s *System) search(elements []string, pay func(visits int, pattern string) *abi.Failure) ([]*actor, *abi.Failure) {
	if len(elements) == 0 {
		return nil, nil
	}
	var at []*actor
	for _, g := range []*actor{s.user, s.services} {
		if glob.Match(elements[0], g.elements[0]) {
			at = append(at, g)
		}
	}
	for _, e := range elements[1:] {
		var next []*actor
		meta := glob.HasMeta(e)
		for _, a := range at {
			visits := 1
			if meta {
				visits += a.super.Family.Len()
			}
			if pay != nil {
				if f := pay(visits, e); f != nil {
					return nil, f
				}
			}
			if !meta {
				if k := a.child(e); k != nil {
					next = append(next, k)
				}
				continue
			}
			for _, k := range a.kids() {
				if glob.Match(e, k.Name()) {
					next = append(next, k)
				}
			}
		}
		at = next
	}
	return at, nil
}

// selected returns every actor that a place names.
func (s *System) selected(p place, path string) (at []*actor, err error) {
	for _, a := range s.match(p.elements) {
		if p.uid == 0 || a.uid == p.uid {
			at = append(at, a)
		}
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return at, nil
}

// Lookup finds an actor by its path, such as /user/a/b, or by the text of its
// ref; with a uid in it, only that incarnation.
func (s *System) Lookup(path string) (Ref, error) {
	p, ok := s.parsePath(path)
	if !ok {
		return Ref{}, notAPath(path)
	}
	a := s.find(p.elements)
	if a == nil || p.uid != 0 && a.uid != p.uid {
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
	to, below, far := s.elsewhere(path)
	defer func() {
		if !far {
			e.Free()
		}
	}()
	if from != nil {
		e.Sender, e.SenderPath, e.Attached = from.uid, from.path, from.attached
		s.chosen(e)
	} else {
		span := s.fromOutside(context.Background(), SendSpan, newRef(0, path), e)
		defer func() { s.sent(span, err) }()
	}
	if far {
		e.Attached = message.Below(e.Attached, below)
		return s.deliver(scr, to, e)
	}
	var at []*actor
	if err = notAPath(path); ok {
		if at, err = s.selected(p, path); err != nil && p.uid == 0 && !glob.HasMeta(path) {
			if a, name := s.findDoor(p.elements); a != nil {
				e.Attached = message.Below(e.Attached, name)
				at, err = []*actor{a}, nil
			}
		}
	}
	if err != nil {
		s.deadLetter(DeadUnknown, 0, p.absolute(path), e)
		return err
	}
	for _, x := range at {
		one, a := message.CloneEnvelope(e), x
		if p.uid == 0 {
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

func newIdentify(sender abi.Ref, correlation uint64, below string) *mailbox.Envelope {
	e := mailbox.New()
	e.Flags, e.Sender, e.Correlation = mark.Identify, sender, correlation
	if below != "" {
		e.Attached = message.Below(nil, below)
	}
	return e
}

// Identify returns the ref of the actor at a path. The host answers on the actor's behalf when its turn comes, after all
// messages that it was sent before. ErrUnknown: no actor has the path. ErrTimeout: it has not answered in time.
func (s *System) Identify(ctx context.Context, path string) (Ref, error) {
	ref, err := s.Lookup(path)
	uid, below, far := s.elsewhere(path)
	if far {
		path, _, _ := strings.Cut(path, "#")
		ref, err = newRef(uid, path), nil
	}
	if err != nil {
		return Ref{}, err
	}
	m, err := s.ask(ctx, ref, identify{}, newIdentify(0, 0, below))
	var negative *ReplyError
	if errors.As(err, &negative) || errors.Is(err, ErrStopped) {
		return Ref{}, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return m.Sender, err
}

// Identify asks every actor that a path with patterns names who it is, and returns how many it has
// asked. Each of them answers with a Message of KindReply. A path without patterns and without an
// actor is answered with KindReplyError.
func (i *Inbox) Identify(path string, correlation uint64) int {
	if uid, below, far := i.sys.elsewhere(path); far && (correlation == 0 || i.expect(correlation, uid)) {
		_ = i.sys.deliver(nil, uid, newIdentify(i.ref.UID(), correlation, below))
		return 1
	}
	p, _ := i.sys.parsePath(path)
	at, err := i.sys.selected(p, path)
	if err != nil && !glob.HasMeta(path) {
		i.mu.Lock()
		_ = i.put(Message{Kind: abi.KindReplyError, Correlation: correlation, Payload: message.AppendText(nil, abi.NoSuchActor)})
		i.mu.Unlock()
	}
	n := 0
	for _, a := range at {
		if correlation == 0 || i.expect(correlation, a.uid) {
			_ = i.sys.deliverTo(nil, a, newIdentify(i.ref.UID(), correlation, ""))
			n++
		}
	}
	return n
}

// identified answers for an actor.
func (s *System) identified(scr *scratch, a *actor, asked *mailbox.Envelope) {
	r := scr.newEnvelope()
	r.Kind, r.Flags, r.Sender, r.SenderPath, r.Correlation = abi.KindReply, mark.Ours, a.uid, a.path, asked.Correlation
	r.Payload = append(r.Payload, nullPayload...)
	r.SetHeaders(asked.Headers) // the trace of the asker
	_ = s.deliver(scr, asked.Sender, r)
}
