package host

import (
	"github.com/wasmactors/wasmactors/host/span"
)

// Traces. Package span describes these types.
type (
	// TraceContext is a place in a trace, as in W3C Trace Context. The zero value is none.
	TraceContext = span.Context
	// SpanKind is what a span is about.
	SpanKind = span.Kind
	// SpanStart is what is known of a span when it begins.
	SpanStart = span.Begun
	// SpanEnd is what is known when it has ended.
	SpanEnd = span.Ended
	// Span is what a [Tracer] records.
	Span = span.Span
	// Tracer records what messages cause. Package host/tracing has one for OpenTelemetry.
	Tracer = span.Tracer
)

// Headers that carry a trace, the bound of a tracestate in bytes, and the kinds of spans.
const (
	HeaderTraceParent = span.HeaderParent
	HeaderTraceState  = span.HeaderState
	MaxTraceState     = span.MaxState
	TurnSpan          = span.Turn
	StartSpan         = span.Start
	SendSpan          = span.Send
	AskSpan           = span.Ask
)

// ParseTraceParent reads a traceparent. Of a later version it reads the parts that it knows; false
// means that the text is not valid.
func ParseTraceParent(text []byte) (t TraceContext, ok bool) { return span.ParseParent(text) }
