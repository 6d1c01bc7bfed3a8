package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// The contract of an ask, for any asker: it ends with the answer of the actor that was asked, or of one that it has
// forwarded the question to; with a *ReplyError if that is an error; at once with a *TurnError if the question's turn fails
// and it is not delivered again; at once with the reason if it is not delivered (ErrStopped, ErrMailboxFull, ...); with
// ErrStopped when the system has been closed; and with ErrTimeout when its time is over. An answer that comes after that is
// a dead letter.

// Ask sends a message and waits for the answer, until ctx ends or, if it has no deadline,
// for Config.WithAskTimeout at most.
func (s *System) Ask(ctx context.Context, to Ref, v any) (Message, error) {
	e, err := message.Envelope(v)
	if err != nil {
		return Message{}, err
	}
	return s.ask(ctx, to, v, e)
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

func (s *System) ask(ctx context.Context, to Ref, v any, e *mailbox.Envelope) (Message, error) {
	return s.askUntil(ctx, to, v, e, s.patience(ctx), nil)
}

// askUntil is ask that also ends when over is closed.
func (s *System) askUntil(ctx context.Context, to Ref, v any, e *mailbox.Envelope, until patience, over <-chan struct{}) (m Message, err error) {
	if (s.cfg.tracer != nil || e.Value != nil) && e.Flags&mark.Control == 0 {
		span := s.fromOutside(ctx, AskSpan, to, e)
		defer func() { s.sent(span, err) }()
	}
	if s.cfg.values != nil {
		e.Attached = message.StillBelow(s.carry(ctx), e.Attached)
	}
	p := s.outside.promise(until)
	uid, err := s.enter(p, to, e, ctx)
	switch {
	case err == nil:
		answered, cause := s.await(ctx, p, uid, over)
		if m = p.answer; !answered {
			err = s.timedOut(p, to, v, cause)
		} else if m.Kind != abi.KindReply {
			err = s.askEnded(p, to, v, m)
		}
	case p.answered: // the refusal is also on its way to the asker
		<-p.waked
	}
	s.outside.free(p)
	return m, err
}

// await waits for an answer; without one, cause is that of the context, if the context has ended.
func (s *System) await(ctx context.Context, p *promise, uid abi.Ref, over <-chan struct{}) (answered bool, cause error) {
	done := ctx.Done()
	if done == nil && over == nil { // a select costs more
		<-p.waked
		return true, nil
	}
	if over == nil {
		select {
		case <-p.waked:
			return true, nil
		case <-done:
			cause = ctx.Err()
		}
	} else {
		select {
		case <-p.waked:
			return true, nil
		case <-done:
			cause = ctx.Err()
		case <-over:
		}
	}
	if !s.outside.remove(uid) { // it was answered meanwhile
		<-p.waked
		return true, nil
	}
	s.recent.Add(uid, "")
	return false, cause
}

// askEnded is the error of an ask that has ended without an answer.
func (s *System) askEnded(p *promise, to Ref, v any, m Message) error {
	err := m.Err()
	if err == ErrTimeout {
		err = s.timedOut(p, to, v, nil)
	}
	return err
}

// patience is how long an ask waits.
func (s *System) patience(ctx context.Context) patience {
	p := patience{at: s.time.Now()}
	if at, ok := ctx.Deadline(); ok {
		p.due = s.time.Of(at, p.at)
	} else {
		p.due, p.swept = p.at+int64(s.cfg.askTimeout), true
	}
	return p
}

// request sends a question from a new promise. If room is not nil, it may wait for
// room in the mailbox until room ends, see Offer.
func (s *System) request(to Ref, e *mailbox.Envelope, until patience, room context.Context) (abi.Ref, *promise, error) {
	p := &promise{c: make(chan Message, 1), patience: until}
	uid, err := s.enter(p, to, e, room)
	return uid, p, err
}

// enter sends a question from a promise.
func (s *System) enter(p *promise, to Ref, e *mailbox.Envelope, room context.Context) (abi.Ref, error) {
	p.asked.Add(to.UID())
	until := p.patience
	if e.Flags&mark.Lasting == 0 {
		e.Flags |= mark.Promised
	}
	if until.due != 0 {
		due(e, until.due)
	}
	uid := s.outside.newRef()
	s.outside.put(uid, p)
	if until.swept {
		s.outside.arm(s)
	}
	e.Sender, e.Correlation, e.SenderPath = uid, 1, s.tempPath()
	var err error
	a := s.here(to.UID())
	if a != nil {
		p.turns = a.turnCount()
	}
	switch {
	case a == nil:
		err = s.deliver(nil, to.UID(), e)
	case room != nil:
		err = s.offerTo(room, a, e)
	default:
		err = s.deliverTo(nil, a, e)
	}
	if err != nil {
		s.outside.remove(uid)
		return 0, err
	}
	if s.outside.closed.Load() && s.outside.remove(uid) { // as when an inbox has taken it
		return 0, ErrStopped
	}
	return uid, nil
}

// Pending is an ask that was sent and may be answered.
type Pending struct {
	sys *System
	uid abi.Ref
	p   *promise
}

// Request sends a message like Ask but does not wait. An error says that the message was
// not accepted. The caller either takes the answer or calls Cancel: this ask has no
// timeout.
func (s *System) Request(to Ref, v any) (*Pending, error) { return s.requestMarked(to, v, 0) }

// TryRequest is Request for callers that try again: if the mailbox is full, the message stays
// the caller's and is not a dead letter.
func (s *System) TryRequest(to Ref, v any) (*Pending, error) { return s.requestMarked(to, v, mark.Try) }

func (s *System) requestMarked(to Ref, v any, flags uint16) (*Pending, error) {
	e, err := message.Envelope(v)
	if err != nil {
		return nil, err
	}
	e.Flags |= flags
	span := s.fromOutside(context.Background(), SendSpan, to, e)
	uid, p, err := s.request(to, e, patience{}, nil)
	s.sent(span, err)
	if err != nil {
		return nil, err
	}
	return &Pending{s, uid, p}, nil
}

// Answer delivers the outcome of the ask, once; [Message.Err] tells an answer from
// an error.
func (p *Pending) Answer() <-chan Message { return p.p.c }

// Cancel gives up waiting: an answer will be a dead letter.
func (p *Pending) Cancel() {
	if p.sys.outside.remove(p.uid) {
		p.sys.recent.Add(p.uid, "")
	}
}

// Abandon is Cancel, and closes the channel of Answer unless an answer is there.
func (p *Pending) Abandon() {
	if p.sys.outside.remove(p.uid) {
		p.sys.recent.Add(p.uid, "")
		close(p.p.c)
	}
}

// AskOnce starts an actor for one question: it asks it, stops it and returns the answer.
// The errors are those of Spawn and Ask; if the actor ends before it has answered, the error
// is ErrStopped with the reason.
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
		return Message{}, fmt.Errorf("%w: %s", ErrStopped, message.ReasonOf(m.Payload))
	}
	return m, m.Err()
}
