package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// The contract of asking, whoever asks: an ask ends with the answer of the actor that was
// asked, or of one that it has forwarded the question to; with a *ReplyError if that is
// an error; at once with a *TurnError if the question's turn fails and it is not
// delivered again; at once with the reason if it is not delivered (ErrStopped,
// ErrMailboxFull, ...); and with ErrTimeout when nobody waits any longer. What comes
// after that is a dead letter.

// Ask sends a message and waits for the answer, until ctx ends or, if it has no deadline,
// for Config.WithAskTimeout at most.
func (s *System) Ask(ctx context.Context, to Ref, v any) (Message, error) {
	e, err := envelope(v)
	if err != nil {
		return Message{}, err
	}
	return s.ask(ctx, to, e)
}

// AskAs is Ask and decodes the answer.
func AskAs[T any](ctx context.Context, s *System, to Ref, v any) (T, error) {
	var out T
	m, err := s.Ask(ctx, to, v)
	if err != nil {
		return out, err
	}
	if err := m.Decode(&out); err != nil {
		return out, fmt.Errorf("host: the answer of %s: %w", to, err)
	}
	return out, nil
}

func (s *System) ask(ctx context.Context, to Ref, e *mailbox.Envelope) (m Message, err error) {
	if (s.cfg.tracer != nil || e.Value != nil) && e.Flags&flagControl == 0 {
		span := s.fromOutside(ctx, AskSpan, to, e)
		defer func() { s.sent(span, err) }()
	}
	if s.cfg.values != nil {
		e.Attached = stillBelow(s.carry(ctx), e.Attached)
	}
	_, bounded := ctx.Deadline()
	uid, p, err := s.request(to, e, !bounded, ctx)
	if err != nil {
		return Message{}, err
	}
	select {
	case m := <-p.c:
		return m, m.Err()
	case <-ctx.Done():
		if !s.outside.remove(uid) { // it was answered meanwhile
			m := <-p.c
			return m, m.Err()
		}
		s.recent.add(uid, "")
		return Message{}, fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
	}
}

// request sends a question in the name of a new promise. If patience is not nil it
// may wait for room until that ends, see Offer.
func (s *System) request(to Ref, e *mailbox.Envelope, expires bool, patience context.Context) (abi.Ref, *promise, error) {
	p := &promise{c: make(chan Message, 1)}
	p.asked.Add(to.uid)
	if expires {
		p.since = s.time.now()
	}
	uid := s.outside.newRef()
	s.outside.put(uid, p)
	if expires {
		s.outside.arm(s)
	}
	e.Sender, e.Correlation, e.SenderPath = uid, 1, s.tempPath()
	var err error
	if patience == nil {
		err = s.deliver(nil, to.uid, e)
	} else {
		err = s.deliverPatiently(patience, to.uid, e)
	}
	if err != nil {
		s.outside.remove(uid)
		return 0, nil, err
	}
	return uid, p, nil
}

// Pending is an ask that was sent and may be answered.
type Pending struct {
	sys *System
	uid abi.Ref
	p   *promise
}

// Request sends a message like Ask but does not wait. An error says that the message was
// not accepted. The caller either takes the answer or calls Cancel: this ask has no time
// of its own.
func (s *System) Request(to Ref, v any) (*Pending, error) { return s.requestMarked(to, v, 0) }

// TryRequest is Request for callers that try again: a message that finds the mailbox full
// is theirs, and no dead letter.
func (s *System) TryRequest(to Ref, v any) (*Pending, error) { return s.requestMarked(to, v, flagTry) }

func (s *System) requestMarked(to Ref, v any, flags uint8) (*Pending, error) {
	e, err := envelope(v)
	if err != nil {
		return nil, err
	}
	e.Flags |= flags
	span := s.fromOutside(context.Background(), SendSpan, to, e)
	uid, p, err := s.request(to, e, false, nil)
	s.sent(span, err)
	if err != nil {
		return nil, err
	}
	return &Pending{s, uid, p}, nil
}

// Answer delivers what the ask has ended with, once; [Message.Err] tells an answer from
// an error.
func (p *Pending) Answer() <-chan Message { return p.p.c }

// Cancel gives up waiting: an answer will be a dead letter.
func (p *Pending) Cancel() {
	if p.sys.outside.remove(p.uid) {
		p.sys.recent.add(p.uid, "")
	}
}

// Abandon is Cancel, and closes the channel of Answer unless an answer is there.
func (p *Pending) Abandon() {
	if p.sys.outside.remove(p.uid) {
		p.sys.recent.add(p.uid, "")
		close(p.p.c)
	}
}

// AskOnce starts an actor for one question: it asks it, stops it and returns the answer.
// The errors are those of Spawn and Ask; an actor that ends before it has answered is
// ErrStopped with the reason.
func (s *System) AskOnce(ctx context.Context, p Props, v any) (Message, error) {
	ref, err := s.Spawn("", p.WithLifetime(supervision.Temporary))
	if err != nil {
		return Message{}, err
	}
	defer s.Stop(ref)
	in := s.Inbox(0)
	defer in.Close()
	in.Watch(ref)
	if err := in.Ask(ref, v, 1); err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrStopped) {
		return Message{}, err
	}
	m, err := in.Receive(ctx)
	switch {
	case err != nil:
		return Message{}, err
	case m.Kind == abi.KindTerminated:
		return Message{}, fmt.Errorf("%w: %s", ErrStopped, reasonOf(m.Payload))
	}
	return m, m.Err()
}

func reasonOf(payload []byte) string {
	r := abi.NewReader(payload)
	text := r.Text()
	if r.Done() != nil {
		return "(not a text)"
	}
	return text
}
