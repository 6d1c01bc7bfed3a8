// Package tracing records what messages cause as OpenTelemetry spans: pass
// the result of New, made of a TracerProvider, to host.Config.WithTracer.
//
// A turn, a start, and a message from outside are a span each; the failure of a turn is an
// event of its span, and the start that follows has a link to it. docs/metrics.md lists the
// names and attributes.
package tracing

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/printable"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation scope of all spans.
const Scope = "github.com/wasmactors/wasmactors"

// Tracer is a [host.Tracer]. It is safe for concurrent use.
type Tracer struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
	limits   limits
}

// New makes a tracer. The provider's processors get its spans, and the provider's sampler decides
// about the roots.
func New(p trace.TracerProvider, b Bounds) *Tracer {
	t := &Tracer{provider: p, tracer: p.Tracer(Scope)}
	t.limits.init(b)
	return t
}

// Stats is what happened to the spans so far.
func (t *Tracer) Stats() Stats { return t.limits.stats() }

// Begin implements [host.Tracer].
func (t *Tracer) Begin(s *host.SpanStart) host.Span {
	tree := treeOf(s.Ref.Path())
	ctx := context.Background()
	switch root := !s.Parent.IsValid(); {
	case root && !t.limits.mayBegin(tree, s.At):
		return nil
	case root:
	case !s.Parent.Sampled() || !t.limits.take(s.Parent.TraceID, tree, s.At):
		return nil
	default:
		ctx = t.In(ctx, s.Parent)
	}
	options := append(make([]trace.SpanStartOption, 0, 3), trace.WithTimestamp(s.At), trace.WithSpanKind(kindOf(s.Kind)))
	if s.Link.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: spanContext(s.Link), Attributes: []attribute.KeyValue{attribute.String("wasmactors.link", "crash")}}))
	}
	_, x := t.tracer.Start(ctx, s.Kind.String()+" "+nameOf(s), options...)
	at := x.SpanContext()
	if !at.IsSampled() || !x.IsRecording() {
		return nil
	}
	if !s.Parent.IsValid() {
		t.limits.begin(at.TraceID(), tree)
	}
	x.SetAttributes(attributesOf(s)...)
	return &span{x, fromSpanContext(at)}
}

// Knows implements [host.Tracer].
func (t *Tracer) Knows(id [16]byte) bool { return t.limits.knows(id) }

// Of implements [host.Tracer].
func (t *Tracer) Of(ctx context.Context) host.TraceContext {
	return fromSpanContext(trace.SpanContextFromContext(ctx))
}

// In implements [host.Tracer].
func (t *Tracer) In(ctx context.Context, c host.TraceContext) context.Context {
	at := trace.ContextWithSpanContext(ctx, spanContext(c))
	return trace.ContextWithSpan(at, place{trace.SpanFromContext(at), t.Provider()})
}

func spanContext(c host.TraceContext) trace.SpanContext {
	state, err := trace.ParseTraceState(c.State)
	if err != nil {
		state = trace.TraceState{} // it comes from outside
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.TraceID, SpanID: c.SpanID, TraceFlags: trace.TraceFlags(c.Flags), TraceState: state})
}

func fromSpanContext(c trace.SpanContext) host.TraceContext {
	if !c.IsValid() {
		return host.TraceContext{}
	}
	return host.TraceContext{TraceID: c.TraceID(), SpanID: c.SpanID(), Flags: byte(c.TraceFlags()), State: c.TraceState().String()}
}

// nameOf is the part of a span's name after its kind: one of few different ones.
func nameOf(s *host.SpanStart) string {
	if s.Type == "" {
		return "nobody"
	}
	return s.Type
}

func kindOf(k host.SpanKind) trace.SpanKind {
	switch k {
	case host.TurnSpan:
		return trace.SpanKindConsumer
	case host.SendSpan:
		return trace.SpanKindProducer
	case host.AskSpan:
		return trace.SpanKindClient
	}
	return trace.SpanKindInternal
}

// Bounds of what guests have written, in bytes.
const (
	maxText  = 256
	maxStack = 4 << 10
)

func attributesOf(s *host.SpanStart) []attribute.KeyValue {
	path := printable.Line(s.Ref.Path(), maxText)
	out := append(make([]attribute.KeyValue, 0, 10),
		attribute.String("wasmactors.actor.path", path), attribute.String("wasmactors.actor.type", s.Type),
		attribute.Int64("wasmactors.actor.incarnation", int64(s.Incarnation)))
	if s.Kind == host.StartSpan {
		return out
	}
	operation := "send"
	if s.Kind == host.TurnSpan {
		operation = "process"
	}
	out = append(out, attribute.String("messaging.system", "wasmactors"), attribute.String("messaging.operation.type", operation),
		attribute.String("messaging.destination.name", path), attribute.Int("messaging.message.body.size", s.Bytes))
	if s.Kind == host.TurnSpan {
		out = append(out, attribute.String("wasmactors.message.kind", s.Message.String()), attribute.Bool("wasmactors.message.question", s.Question))
		if from := s.Sender.Path(); from != "" {
			out = append(out, attribute.String("wasmactors.sender.path", printable.Line(from, maxText)))
		}
	}
	return out
}

// span is a [host.Span].
type span struct {
	span trace.Span
	at   host.TraceContext
}

// Context implements [host.Span].
func (s *span) Context() host.TraceContext { return s.at }

// End implements [host.Span].
func (s *span) End(e *host.SpanEnd) {
	if e.Fuel > 0 {
		s.span.SetAttributes(attribute.Int64("wasmactors.fuel", int64(e.Fuel)))
	}
	switch {
	case e.Failure != nil:
		s.crashed(e.Failure, e.At)
	case e.Err != nil:
		s.span.SetStatus(codes.Error, printable.Line(e.Err.Error(), maxText))
	}
	s.span.End(trace.WithTimestamp(e.At))
}

// crashed notes the failure of a turn as an event, by the conventions for exceptions.
func (s *span) crashed(f *abi.Failure, at time.Time) {
	text := f.Reason
	if f.Message != "" {
		text = f.Message
	}
	stack := f.GuestStack
	for _, frame := range f.Stack {
		if len(stack) > maxStack {
			break
		}
		if stack != "" {
			stack += "\n"
		}
		stack += frame
	}
	attributes := []attribute.KeyValue{
		attribute.String("exception.type", f.Kind.String()), attribute.String("exception.message", printable.Line(text, maxText)),
		attribute.Int64("wasmactors.turn", int64(f.Turn)),
	}
	if stack != "" {
		attributes = append(attributes, attribute.String("exception.stacktrace", printable.Text(printable.Clip(stack, maxStack))))
	}
	s.span.AddEvent("exception", trace.WithTimestamp(at), trace.WithAttributes(attributes...))
	s.span.SetStatus(codes.Error, printable.Line(f.Error(), maxText))
}
