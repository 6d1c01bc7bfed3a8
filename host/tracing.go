package host

import (
	"context"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// How a trace gets from the message that is handled to what its turn sends: in headers of
// the envelopes, which the host writes when the turn has ended. Guests need do nothing.
// Without a tracer none of this runs; with one, a message without a
// trace costs a look at its headers.
//
// The headers of a trace come before all others, so that one look is enough, and they are
// the host's: what guests write under these names is dropped, unless it names a trace that
// is recorded and under way. The ID of a trace is 128 random bits, so only a guest that was given
// the ID can do that.

// mark puts headers that an actor has chosen into an envelope, with the trace of
// the turn.
func (s *System) mark(scr *scratch, e *mailbox.Envelope, headers []byte) {
	head := scr.trace.Present()
	if own, ok := abi.FindHeader(headers, HeaderTraceParent); ok {
		if t, ok := ParseTraceParent(own); ok && t.TraceID != scr.trace.Context.TraceID && s.cfg.tracer.Knows(t.TraceID) {
			t.Flags |= span.TraceSampled // that is why it is known
			head = trail.Append(make([]byte, 0, trail.HeadSize), &t)
		}
	}
	e.Headers = trail.Mark(e.Headers[:0], head, headers)
}

// keep is the present trace, for an answer or a timer that comes later, nil if there is
// none: the tracestate is not kept.
func (s *scratch) keep() []byte {
	if s == nil {
		return nil
	}
	return s.trace.Keep()
}

// beginTurn begins the span of the turn of a message, if it gets one: it belongs to
// a trace that is recorded, or begins one. It is followed by endCall.
func (a *actor) beginTurn(scr *scratch, e *mailbox.Envelope) {
	c := &scr.trace
	a.endCall(scr, nil, 0) // of the message before, within one call of Handle
	parent, begins := c.Parent(e)
	if !begins {
		return
	}
	c.Begin(a.sys.cfg.tracer, SpanStart{
		Kind: TurnSpan, Parent: parent, At: a.Now(), Ref: a.ref(), Type: a.props.typ, Incarnation: a.Incarnation(),
		Message: e.Kind, Sender: newRef(e.Sender, e.SenderPath), Bytes: len(e.Payload),
		Question: e.Kind == abi.KindMessage && e.Correlation != 0 && e.Sender != 0,
	})
}

// endCall ends what beginTurn or beginStart has begun.
func (a *actor) endCall(scr *scratch, f *abi.Failure, fuel uint64) {
	c := &scr.trace
	if !c.Recorded() {
		c.Clear()
		return
	}
	if f != nil {
		a.sys.origins.Put(a.uid, trail.Origin{At: c.Context, Failed: true})
	}
	c.Finish(SpanEnd{At: a.Now(), Failure: a.sys.bus.Secrets.Failure(f), Fuel: fuel})
}

// beginStart begins the span of a start.
func (a *actor) beginStart(scr *scratch) {
	c := &scr.trace
	c.Clear()
	from := a.sys.origins.Take(a.uid)
	start := SpanStart{Kind: StartSpan, Parent: from.At, At: a.Now(), Ref: a.ref(), Type: a.props.typ, Incarnation: a.Incarnation()}
	if from.Failed {
		start.Link = from.At
	}
	c.Begin(a.sys.cfg.tracer, start)
}

// fromOutside puts a message that comes from outside into the trace of its Go context, or
// begins one, if it is recorded. The span is nil if it is not.
func (s *System) fromOutside(ctx context.Context, kind SpanKind, to Ref, e *mailbox.Envelope) Span {
	in, _ := e.Value.(message.TracedIn)
	if in.Ctx != nil {
		ctx, e.Value = in.Ctx, nil
		if in.Bound {
			e.Value = message.BoundMark{}
		}
	}
	if s.cfg.tracer == nil {
		return nil
	}
	start := &SpanStart{Kind: kind, Parent: s.cfg.tracer.Of(ctx), At: s.cfg.clock.Now(), Ref: to, Bytes: len(e.Payload)}
	if a := s.here(to.UID()); a != nil {
		start.Ref, start.Type, start.Incarnation = a.ref(), a.props.typ, a.Incarnation()
	}
	if begun := s.cfg.tracer.Begin(start); begun != nil {
		t := begun.Context()
		trail.Head(e, &t)
		return begun
	}
	if t := start.Parent; t.IsValid() { // not recorded, but somebody's
		t.Flags &^= span.TraceSampled
		trail.Head(e, &t)
	}
	return nil
}

// sent ends the span of a message from outside.
func (s *System) sent(span Span, err error) {
	if span != nil {
		span.End(&SpanEnd{At: s.cfg.clock.Now(), Err: s.bus.Secrets.Error(err)})
	}
}

// Trace is parent with the span of the running turn, or with the trace that it
// is part of, for calls of code that uses OpenTelemetry. It is parent if there is none.
func (h Head) Trace(parent context.Context) context.Context {
	if h.ctx.scr == nil {
		return parent
	}
	return h.ctx.actor.sys.in(parent, h.ctx.scr.trace.Present())
}

func (s *System) in(parent context.Context, head []byte) context.Context {
	if t := trail.Of(head); t.IsValid() && s.cfg.tracer != nil {
		return s.cfg.tracer.In(parent, t)
	}
	return parent
}

// trace is where the present call is in a trace, nil if it is in none; for events.
func (a *actor) trace() *TraceContext {
	if scr := a.ctx.scr; scr != nil {
		return scr.trace.Place()
	}
	return nil
}

// chosen puts a message of an actor in Go into the trace of the Go context that was
// given with it, instead of that of the turn.
func (s *System) chosen(e *mailbox.Envelope) {
	in, ok := e.Value.(message.TracedIn)
	if !ok {
		return
	}
	e.Value = nil
	if s.cfg.tracer == nil {
		return
	}
	if t := s.cfg.tracer.Of(in.Ctx); t.IsValid() {
		trail.Head(e, &t)
	}
}

// dropTrace removes the trace from a message that is too large for the inbox only because of it;
// false: it is still too large.
func (a *actor) dropTrace(e *mailbox.Envelope) bool {
	if a.sys.cfg.tracer == nil || !trail.Has(e.Headers) {
		return false
	}
	e.Headers = trail.Mark(nil, nil, e.Headers)
	return int64(e.Size()) <= a.rules.Load().limits.Message
}
