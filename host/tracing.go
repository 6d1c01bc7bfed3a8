package host

import (
	"context"
)

// How a trace gets from the message that is handled to what its turn sends: in headers of
// the envelopes, which the host writes when the turn has ended, see host/internal/trail. Guests need do nothing.
// Without a tracer none of this runs; with one, a message without a
// trace costs a look at its headers.

// Subject implements trail.Subject.
func (a *actor) Subject() SpanStart {
	return SpanStart{At: a.Now(), Ref: a.ref(), Type: a.props.typ, Incarnation: a.Incarnation()}
}

// fromOutside puts a message that comes from outside into a trace, see trail.Tracing.Enter.
func (s *System) fromOutside(ctx context.Context, kind SpanKind, to Ref, e *Envelope) Span {
	return s.tracing.Enter(ctx, kind, func() SpanStart {
		if a := s.here(to.UID()); a != nil {
			return a.Subject()
		}
		return SpanStart{Ref: to}
	}, e)
}

// keep is the present trace, for an answer or a timer that comes later, nil if there is
// none: the tracestate is not kept.
func (s *scratch) keep() []byte {
	if s == nil {
		return nil
	}
	return s.trace.Keep()
}

// placed is where the present call is in a trace, nil if it is in none; for events.
func (s *scratch) placed() *TraceContext {
	if s == nil {
		return nil
	}
	return s.trace.Place()
}

// Trace is parent with the span of the running turn, or with the trace that it
// is part of, for calls of code that uses OpenTelemetry. It is parent if there is none.
func (h Head) Trace(parent context.Context) context.Context {
	if h.ctx.scr == nil {
		return parent
	}
	return h.ctx.actor.sys.tracing.In(parent, h.ctx.scr.trace.Present())
}
