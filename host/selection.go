package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// A path names whoever is there when a message is sent, not an incarnation. An element
// may be a pattern: '*' stands for any run of characters, '?' for one.

func wild(s string) bool { return strings.ContainsAny(s, "*?") }

// match is every actor that a path with patterns names, in the order of their start.
func (s *System) match(elements []string) []*cell {
	if len(elements) == 0 {
		return nil
	}
	var at []*cell
	for _, g := range []*cell{s.user, s.services} {
		if matchElement(elements[0], g.elements[0]) {
			at = append(at, g)
		}
	}
	for _, e := range elements[1:] {
		var next []*cell
		for _, c := range at {
			if !wild(e) {
				if k := c.child(e); k != nil {
					next = append(next, k)
				}
				continue
			}
			for _, k := range c.kids() {
				if matchElement(e, k.name()) {
					next = append(next, k)
				}
			}
		}
		at = next
	}
	return at
}

// selected is every actor that a path names: one with patterns, or the text of a
// ref. self is who relative paths begin at, nil for nobody.
func (s *System) selected(self *cell, path string) (at []*cell, err error) {
	var elements []string
	uid, ok := abi.Ref(0), false
	if self != nil {
		elements, _, ok = relative(self.elements, path)
	}
	if !ok {
		elements, uid, ok = splitRef(s.cfg.name, path)
	}
	if !ok {
		return nil, fmt.Errorf("%w: %q is not a path", ErrUnknown, path)
	}
	for _, c := range s.match(elements) {
		if uid == 0 || c.uid == uid {
			at = append(at, c)
		}
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return at, nil
}

// tellPath sends a message to all that a path names; to nobody it is one dead letter.
func (s *System) tellPath(scr *scratch, self *cell, path string, v any) error {
	e, err := envelope(v)
	if err != nil {
		return err
	}
	defer e.Free()
	if self != nil {
		e.Sender = self.uid
	}
	at, err := s.selected(self, path)
	if err != nil {
		s.deadLetter(DeadUnknown, 0, path, e)
		return err
	}
	for _, c := range at {
		err = errors.Join(err, s.push(scr, c, cloneEnvelope(e)))
	}
	return err
}

// TellPath sends a message from nobody to every actor that a path with patterns
// names, such as /user/workers/*. What one of them does not accept is an error and a
// dead letter, and so is a path that names nobody.
func (s *System) TellPath(path string, v any) error { return s.tellPath(nil, nil, path, v) }

// TellPath is [System.TellPath] in the actor's name. Paths may be relative: ./child,
// ../sibling, ../*, which is the actor itself, too.
func (c *Context) TellPath(path string, v any) error {
	return c.cell.sys.tellPath(c.scr, c.cell, path, v)
}

// Select is every actor that a path with patterns names now, in the order of their
// start.
func (s *System) Select(path string) []Ref {
	at, _ := s.selected(nil, path)
	refs := make([]Ref, len(at))
	for i, c := range at {
		refs[i] = c.ref()
	}
	return refs
}

func newIdentify(sender abi.Ref, correlation uint64) *mailbox.Envelope {
	e := mailbox.New()
	e.Flags, e.Sender, e.Correlation = flagIdentify, sender, correlation
	return e
}

// Identify asks the actor at a path who it is. The host answers for it when its turn
// comes, so all that it was sent before is handled by then. ErrUnknown: there is none.
// ErrTimeout: it has not answered in time.
func (s *System) Identify(ctx context.Context, path string) (Ref, error) {
	ref, err := s.Lookup(path)
	if err != nil {
		return Ref{}, err
	}
	m, err := s.ask(ctx, ref, newIdentify(0, 0))
	var negative *ReplyError
	if errors.As(err, &negative) || errors.Is(err, ErrStopped) {
		return Ref{}, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return m.Sender, err
}

// Identify asks the actor at a path, which may be relative, who it is. The answer is that
// of an ask: a Message of KindReply whose Sender it is, KindReplyError if there is
// none, KindAskTimeout.
func (c *Context) Identify(path string, correlation uint64, timeout time.Duration) error {
	if err := c.cell.addAsk(correlation, timeout); err != nil {
		return err
	}
	e := newIdentify(c.cell.uid, correlation)
	at, err := c.cell.sys.selected(c.cell, path)
	if err != nil || wild(path) {
		c.cell.sys.unidentified(c.scr, 0, e)
		e.Free()
		return nil
	}
	_ = c.cell.sys.push(c.scr, at[0], e) // refused, it is answered, too
	return nil
}

// Identify asks every actor that a path with patterns names who it is, and returns how
// many it has asked. Their answers are Messages of KindReply, of each its own. A path
// without patterns that names nobody is answered with KindReplyError.
func (i *Inbox) Identify(path string, correlation uint64) int {
	at, err := i.sys.selected(nil, path)
	if err != nil && !wild(path) {
		_ = i.put(Message{Kind: abi.KindReplyError, Correlation: correlation, Payload: appendText(nil, noSuchActor)})
	}
	for _, c := range at {
		_ = i.sys.push(nil, c, newIdentify(i.ref.uid, correlation))
	}
	return len(at)
}

const noSuchActor = "no such actor"

// identified answers in the name of the actor uid.
func (s *System) identified(scr *scratch, uid abi.Ref, asked *mailbox.Envelope) {
	r := mailbox.New()
	r.Kind, r.Sender, r.Correlation = abi.KindReply, uid, asked.Correlation
	r.Payload = append(r.Payload, 0xf6)
	_ = s.deliver(scr, asked.Sender, r)
}

// unidentified answers that nobody is there, or not any more.
func (s *System) unidentified(scr *scratch, uid abi.Ref, asked *mailbox.Envelope) {
	r := mailbox.New()
	r.Kind, r.Sender, r.Correlation = abi.KindReplyError, uid, asked.Correlation
	r.Payload = appendText(r.Payload, noSuchActor)
	_ = s.deliver(scr, asked.Sender, r)
}

// applySelection sends to all that a path with patterns names and that the actor may
// send to.
func (c *cell) applySelection(scr *scratch, cmd *abi.Command, send func(*abi.Command)) {
	path := string(cmd.ToPath)
	_, child, _ := relative(c.elements, path)
	at, err := c.sys.selected(c, path)
	if err != nil {
		c.refused(scr, DeadUnknown, 0, path, cmd.Payload)
		return
	}
	sent := false
	for _, t := range at {
		if child || matchAny(c.caps.send, t.elements) {
			one := *cmd
			one.ToPath, one.ToRef = nil, t.uid
			send(&one)
			sent = true
		}
	}
	if !sent {
		c.refused(scr, DeadDenied, 0, path, cmd.Payload)
	}
}
