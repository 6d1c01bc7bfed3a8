package trail

import (
	"context"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Tracing is how a system traces: without a tracer a message costs one look at Tracer. Its methods are safe for concurrent
// use; each Trail belongs to one worker.
//
// The headers of a trace come before all others, so that one look is enough, and they are the host's: what guests write under
// these names is dropped, unless it names a trace that is recorded and under way. The ID of a trace is 128 random bits, so
// only a guest that was given the ID can do that.
type Tracing struct {
	Tracer  span.Tracer // nil: there is none
	Clock   clock.Clock
	Secrets Secrets
	Origins Origins
}

// Secrets masks what spans must not show.
type Secrets interface {
	Failure(f *abi.Failure) *abi.Failure
	Error(err error) error
}

// Subject is an actor that spans are about.
type Subject interface {
	// Subject is a span that begins now, with what it says of the actor: its ref, its type and its incarnation.
	Subject() span.Begun
}

// Choose writes headers that an actor has chosen into an envelope, with the trace of the turn.
func (t *Tracing) Choose(c *Trail, e *mailbox.Envelope, headers []byte) {
	head := c.Present()
	if own, ok := abi.FindHeader(headers, span.HeaderParent); ok {
		if at, ok := span.ParseParent(own); ok && at.TraceID != c.Context.TraceID && t.Tracer.Knows(at.TraceID) {
			at.Flags |= span.TraceSampled // that is why it is known
			head = Append(make([]byte, 0, HeadSize), &at)
		}
	}
	e.Headers = Mark(e.Headers[:0], head, headers)
}

// BeginTurn begins the span of the turn of a message, if it gets one: it belongs to a trace that is recorded, or begins
// one. It is followed by EndCall.
func (t *Tracing) BeginTurn(c *Trail, who Subject, e *mailbox.Envelope) {
	t.EndCall(c, who, nil, 0) // of the message before, within one call of Handle
	parent, begins := c.Parent(e)
	if !begins {
		return
	}
	s := who.Subject()
	s.Kind, s.Parent, s.Message, s.Sender, s.Bytes = span.Turn, parent, e.Kind, ref.Of(e.Sender, e.SenderPath), len(e.Payload)
	s.Question = e.Kind == abi.KindMessage && e.Correlation != 0 && e.Sender != 0
	c.Begin(t.Tracer, s)
}

// BeginStart begins the span of a start. It is followed by EndCall.
func (t *Tracing) BeginStart(c *Trail, who Subject) {
	c.Clear()
	s := who.Subject()
	from := t.Origins.Take(s.Ref.UID())
	s.Kind, s.Parent = span.Start, from.At
	if from.Failed {
		s.Link = from.At
	}
	c.Begin(t.Tracer, s)
}

// EndCall ends what BeginTurn or BeginStart has begun.
func (t *Tracing) EndCall(c *Trail, who Subject, f *abi.Failure, fuel uint64) {
	if !c.Recorded() {
		c.Clear()
		return
	}
	s := who.Subject()
	if f != nil {
		t.Origins.Put(s.Ref.UID(), Origin{At: c.Context, Failed: true})
	}
	c.Finish(span.Ended{At: s.At, Failure: t.Secrets.Failure(f), Fuel: fuel})
}

// Enter puts a message that comes from outside into the trace of its Go context, or begins one, if it is recorded. The span
// is nil if it is not. who is the receiver, with its ref alone if no more is known of it.
func (t *Tracing) Enter(ctx context.Context, kind span.Kind, who func() span.Begun, e *mailbox.Envelope) span.Span {
	in, _ := e.Value.(message.TracedIn)
	if in.Ctx != nil {
		ctx, e.Value = in.Ctx, nil
		if in.Bound {
			e.Value = message.BoundMark{}
		}
	}
	if t.Tracer == nil {
		return nil
	}
	start := who()
	start.Kind, start.Parent, start.At, start.Bytes = kind, t.Tracer.Of(ctx), t.Clock.Now(), len(e.Payload)
	if begun := t.Tracer.Begin(&start); begun != nil {
		at := begun.Context()
		Head(e, &at)
		return begun
	}
	if at := start.Parent; at.IsValid() { // not recorded, but somebody's
		at.Flags &^= span.TraceSampled
		Head(e, &at)
	}
	return nil
}

// Sent ends the span of a message from outside, which may be nil.
func (t *Tracing) Sent(s span.Span, err error) {
	if s != nil {
		s.End(&span.Ended{At: t.Clock.Now(), Err: t.Secrets.Error(err)})
	}
}

// In is parent within the trace that the headers name; parent itself if they name none.
func (t *Tracing) In(parent context.Context, headers []byte) context.Context {
	if at := Of(headers); at.IsValid() && t.Tracer != nil {
		return t.Tracer.In(parent, at)
	}
	return parent
}

// Chosen puts a message of an actor in Go into the trace of the Go context that was given with it, instead of that of the
// turn.
func (t *Tracing) Chosen(e *mailbox.Envelope) {
	in, ok := e.Value.(message.TracedIn)
	if !ok {
		return
	}
	e.Value = nil
	if t.Tracer == nil {
		return
	}
	if at := t.Tracer.Of(in.Ctx); at.IsValid() {
		Head(e, &at)
	}
}

// Fits removes the trace from a message that is larger than most bytes only because of it; false: it is too large
// without it, too.
func (t *Tracing) Fits(e *mailbox.Envelope, most int64) bool {
	if t.Tracer == nil || !Has(e.Headers) {
		return false
	}
	e.Headers = Mark(nil, nil, e.Headers)
	return int64(e.Size()) <= most
}
