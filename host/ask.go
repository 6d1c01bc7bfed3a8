package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/outside"
	"github.com/wasmactors/wasmactors/supervision"
)

// Ask sends a message and waits for the answer, until ctx ends or, if it has no deadline,
// for Config.WithAskTimeout at most. It ends with the answer of the actor that was asked, or of one that it has
// forwarded the question to; with a *ReplyError if that is an error; at once with a *TurnError if the question's turn fails
// and it is not delivered again; at once with the reason if it is not delivered; with ErrStopped when the system has been
// closed; and with ErrTimeout when its time is over. An answer that comes after that is a dead letter.
func (s *System) Ask(ctx context.Context, to Ref, v any) (Message, error) {
	e, err := message.Envelope(v)
	if err != nil {
		return Message{}, err
	}
	m, err := s.outside.Ask(ctx, to, v, e)
	return m, errs.FailedAt(err, to)
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
	p, err := s.outside.Request(to, e, outside.Patience{})
	s.tracing.Sent(span, err)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// AskRetry is Ask, repeated after the failures that r lists. ctx bounds all attempts and the waits between them
// together, Config.WithAskTimeout if it has no deadline; a wait that would not end before that is not begun. A
// failure that is not listed is returned as it is, that of the last attempt as a
// *RetryError. Every attempt has the header idempotency-key, and from the second on wasmactors.attempt.
func (s *System) AskRetry(ctx context.Context, to Ref, v any, r Retry) (Message, error) {
	return s.outside.AskRetry(ctx, to, v, r)
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

// Inbox makes an inbox for size messages, DefaultInbox if it is not above 0. What does not
// fit is a dead letter; news of watched actors always fit. Close it in the end. The end of the
// system closes it, too, but for what it has received by then and the ends of those it watches.
func (s *System) Inbox(size int) *Inbox { return s.outside.NewInbox(size) }

// PipeTo is a pipe to an actor, without a sender.
func (s *System) PipeTo(to Ref) Pipe { return s.outside.PipeTo(to) }
