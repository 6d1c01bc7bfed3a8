package message

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// OnBehalf is a message that Go code sends because an actor has asked for it, such as a run of a schedule. Of is the path of
// that actor, which may have stopped. The message keeps its own sender, or none. But code that charges senders (host/keyed)
// charges the actor Of, also if the message is forwarded. No guest can set or remove it.
type OnBehalf struct {
	Value any
	Of    string
}

// Bound is a question whose ask ends at once if the incarnation that has taken it ends: Request(to, host.Bound{Value: v}).
// Its ask ends with a *TurnError if that incarnation has failed, else with ErrEnded. Bound affects only questions from Go,
// and has no effect once a question was forwarded.
type Bound struct{ Value any }

// BoundMark marks the envelope of such a question.
type BoundMark struct{}

func IsBound(e *mailbox.Envelope) bool {
	switch v := e.Value.(type) {
	case BoundMark:
		return true
	case Attempts:
		return v.bound
	}
	return false
}

// MaxRedeliveries bounds how often a message is delivered again after its turn has failed.
const MaxRedeliveries = 1000

// Attempts is how often a message has crashed before.
type Attempts struct {
	N     int
	bound bool // it was asked with Bound
}

func AttemptsOf(e *mailbox.Envelope) Attempts {
	if before, ok := e.Value.(Attempts); ok {
		return before
	}
	return Attempts{bound: IsBound(e)}
}

// Headed is a message with headers: Tell(to, host.Headed{Value: v, Headers: ...}). A
// mailbox may use them (host/mailbox), and the receiver may read them. There are abi.MaxHeaders at most, of
// abi.MaxHeaderKey and abi.MaxHeaderValue bytes of UTF-8.
type Headed struct {
	Value   any
	Headers map[string]string
}

// Put writes the headers, sorted, into an envelope.
func (h Headed) Put(e *mailbox.Envelope) error {
	if len(h.Headers) > abi.MaxHeaders {
		return fmt.Errorf("host: a message has %d headers, at most %d", len(h.Headers), abi.MaxHeaders)
	}
	e.Headers = e.Headers[:0]
	for _, k := range slices.Sorted(maps.Keys(h.Headers)) {
		v := h.Headers[k]
		if len(k) > abi.MaxHeaderKey || len(v) > abi.MaxHeaderValue || !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("host: the header %.20q: a key has at most %d bytes of UTF-8, a value %d", k, abi.MaxHeaderKey, abi.MaxHeaderValue)
		}
		e.Headers = abi.AppendHeader(e.Headers, k, v)
	}
	return nil
}

// Mark is a special property of a message; see [Marked].
type Mark uint16

// The marks.
const (
	// NoInfluence: the message does not restart the receiver's receive timeout.
	NoInfluence = Mark(mark.NoInfluence)
	// Suppressed: it does not matter if the message is not delivered. It is neither kept nor
	// counted as a dead letter, and its event is EventSuppressed.
	Suppressed = Mark(mark.Suppressed)
	// Lasting: a question is handled even if the asker has given up. It is for questions that ask
	// for an action, not only for information.
	Lasting = Mark(mark.Lasting)
)

// Marked is a message with marks: Tell(to, host.Marked{Value: v, Marks: host.Suppressed}).
type Marked struct {
	Value any
	Marks Mark
}

// IsSuppressed reports whether an undelivered message needs no report: its sender has said so by a mark, or
// by a header. A header, which guests can write, does not hide that they were denied something.
func IsSuppressed(e *mailbox.Envelope, reason event.DeadReason) bool {
	if e.Flags&mark.Suppressed != 0 {
		return true
	}
	return reason != event.DeadDenied && reason != event.DeadForged && header.Has(e.Headers, abi.HeaderSuppressed)
}

// Fill puts v into an envelope as its message. The stock is the worker's; nil outside workers.
func Fill(s *Stock, e *mailbox.Envelope, v any) error {
	if _, plain := v.(Raw); !plain {
		var err error
		if v, err = unwrap(e, v); err != nil {
			return err
		}
		if own, ok := v.(ownEncoder); ok {
			return fillOwn(s, e, own)
		}
	}
	payload, err := Encode(v)
	if err != nil {
		return err
	}
	e.SetPayload(payload)
	return nil
}

// unwrap applies the marks, headers and other wrappers of a message and returns its value.
func unwrap(e *mailbox.Envelope, v any) (any, error) {
	for range 5 {
		switch m := v.(type) {
		case Headed:
			if err := m.Put(e); err != nil {
				return nil, err
			}
			v = m.Value
		case Marked:
			e.Flags |= uint16(m.Marks & (NoInfluence | Suppressed | Lasting))
			v = m.Value
		case OnBehalf:
			e.Attached = InBehalf(e.Attached, m.Of)
			v = m.Value
		case Addressed:
			e.Attached = Below(e.Attached, m.name)
			v = m.value
		case Failure:
			reason, err := m.put(e)
			if err != nil {
				return nil, err
			}
			v = reason
		case Bound:
			e.Value, v = BoundMark{}, m.Value
		case TracedIn:
			_, m.Bound = e.Value.(BoundMark)
			e.Value, v = m, m.Value
		default:
			return v, nil
		}
	}
	return v, nil
}

// Envelope makes an envelope with this message.
func Envelope(v any) (*mailbox.Envelope, error) {
	e := mailbox.New()
	if err := Fill(nil, e, v); err != nil {
		e.Free()
		return nil, err
	}
	return e, nil
}

// Failure is a message that stands for a result that has not come: Tell(to,
// host.Failure{Reason: "..."}). It has the header wasmactors.failure, and the reason as its
// payload, too. The receiver asks [Message.Failure]. Anybody may send one.
type Failure struct{ Reason string }

// Put makes it the message of an envelope.
func (f Failure) put(e *mailbox.Envelope) (string, error) {
	reason := printable.Clip(f.Reason, abi.MaxHeaderValue)
	headers, ok := header.With(e.Headers, abi.HeaderFailure, reason)
	if !ok {
		return "", fmt.Errorf("host: a failure with %d other headers, at most %d", abi.MaxHeaders, abi.MaxHeaders-1)
	}
	e.Headers = append(e.Headers[:0], headers...)
	return reason, nil
}

// TracedIn is a message and the Go context that it is sent in.
type TracedIn struct {
	Ctx   context.Context
	Value any
	Bound bool // see Bound
}

// Traced is a message that belongs to the trace of a Go context: Tell(to,
// host.Traced(ctx, v)). [System.Ask] has a context and does not need it. It may contain a
// [Marked], or be in one. Without [Config.WithTracer] it is v.
func Traced(ctx context.Context, v any) any { return TracedIn{Ctx: ctx, Value: v} }
