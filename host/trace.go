package host

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Headers that carry a trace, as W3C Trace Context names them.
const (
	HeaderTraceParent = "traceparent"
	HeaderTraceState  = "tracestate"
)

// MaxTraceState bounds what is carried of a tracestate, in bytes; a longer one is dropped.
// W3C Trace Context asks for 512 at least.
const MaxTraceState = 512

// TraceContext is a place in a trace, as in W3C Trace Context. The zero value is none.
type TraceContext struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte   // 1: sampled
	State   string // tracestate, at most MaxTraceState bytes
}

// IsValid reports whether it is a place in a trace at all.
func (t TraceContext) IsValid() bool { return t.TraceID != [16]byte{} && t.SpanID != [8]byte{} }

// Sampled reports whether the trace is recorded.
func (t TraceContext) Sampled() bool { return t.Flags&traceSampled != 0 }

const (
	traceSampled    = 1
	traceFlags      = 3  // those that are passed on: sampled, random
	traceParentSize = 55 // of version 00
)

// ParseTraceParent reads a traceparent. Of a later version it reads the parts that it knows; false
// means that the text is not valid.
func ParseTraceParent(text []byte) (t TraceContext, ok bool) {
	if len(text) < traceParentSize || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return TraceContext{}, false
	}
	version, ok := unhex(text[0], text[1])
	switch {
	case !ok || version == 0xff:
		return TraceContext{}, false
	case version == 0 && len(text) != traceParentSize:
		return TraceContext{}, false
	case len(text) > traceParentSize && text[traceParentSize] != '-':
		return TraceContext{}, false
	}
	flags, ok := unhex(text[53], text[54])
	if !ok || !unhexAll(t.TraceID[:], text[3:35]) || !unhexAll(t.SpanID[:], text[36:52]) || !t.IsValid() {
		return TraceContext{}, false
	}
	t.Flags = flags & traceFlags
	return t, true
}

// AppendTraceParent appends it as a traceparent of version 00, 55 bytes.
func (t TraceContext) AppendTraceParent(dst []byte) []byte {
	dst = append(dst, "00-"...)
	dst = hex.AppendEncode(dst, t.TraceID[:])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, t.SpanID[:])
	return append(dst, '-', '0', '0'+t.Flags&traceFlags)
}

// String is the traceparent, "" if there is none.
func (t TraceContext) String() string {
	if !t.IsValid() {
		return ""
	}
	return string(t.AppendTraceParent(nil))
}

func unhexAll(dst, src []byte) bool {
	for i := range dst {
		b, ok := unhex(src[2*i], src[2*i+1])
		if !ok {
			return false
		}
		dst[i] = b
	}
	return true
}

// unhex takes lower case only, as the standard does.
func unhex(high, low byte) (byte, bool) {
	h, ok := nibble(high)
	l, ok2 := nibble(low)
	return h<<4 | l, ok && ok2
}

func nibble(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// SpanKind is what a span is about.
type SpanKind uint8

// The kinds of spans.
const (
	TurnSpan  SpanKind = iota + 1 // an actor handles a message
	StartSpan                     // an incarnation begins
	SendSpan                      // a message comes in from outside
	AskSpan                       // somebody outside asks, until there is an answer
)

var spanNames = [...]string{"none", "turn", "start", "send", "ask"}

// String is the kind's name.
func (k SpanKind) String() string {
	if int(k) < len(spanNames) {
		return spanNames[k]
	}
	return spanNames[0]
}

// SpanStart is what is known of a span when it begins.
type SpanStart struct {
	Kind   SpanKind
	Parent TraceContext // zero: it is the root of a trace
	// Link is the turn whose failure an incarnation follows, zero if there is none.
	Link        TraceContext
	At          time.Time // by the system's clock
	Ref         Ref       // the actor that handles the message, begins, or is sent to
	Type        string    // its type, "" if it is not an actor
	Incarnation uint64
	Message     abi.Kind // turn
	Sender      Ref      // turn: its path may be unknown
	Bytes       int      // turn, send, ask: of the payload
	Question    bool     // turn: somebody waits for the answer
}

// SpanEnd is what is known when it has ended.
type SpanEnd struct {
	At      time.Time
	Failure *abi.Failure // turn, start: it has failed. Shared, not to be changed
	Fuel    uint64       // turn of a guest
	Err     error        // send, ask: what came of it
}

// Span is what a [Tracer] records.
type Span interface {
	// Context is the parent for spans of what this span causes.
	Context() TraceContext
	// End is called once. What it is given is valid until it returns.
	End(e *SpanEnd)
}

// Tracer records what messages cause. Workers call it, so it must be quick and never wait;
// all methods are for any goroutine. Package host/tracing has one for OpenTelemetry.
//
// Whether a trace is recorded is decided at its root, where a message comes in from
// outside, a timer fires or an actor begins. A trace that is not recorded costs nothing later on.
type Tracer interface {
	// Begin begins a span. Nil means that neither it nor anything that it causes is
	// recorded. s is valid until it returns.
	Begin(s *SpanStart) Span
	// Knows reports whether a trace is recorded and under way: a guest may put a message
	// into such a trace itself, if it has seen its ID, and into no other.
	Knows(trace [16]byte) bool
	// Of is the place in a trace that a Go context holds, zero if it holds none.
	Of(ctx context.Context) TraceContext
	// In is a Go context that holds a place in a trace.
	In(ctx context.Context, t TraceContext) context.Context
}

// traced is a message and the Go context that it is sent in.
type traced struct {
	ctx   context.Context
	value any
	bound bool // see Bound
}

// Traced is a message that belongs to the trace of a Go context: Tell(to,
// host.Traced(ctx, v)). [System.Ask] has a context and does not need it. It may contain a
// [Marked], or be in one. Without [Config.WithTracer] it is v.
func Traced(ctx context.Context, v any) any { return traced{ctx: ctx, value: v} }
