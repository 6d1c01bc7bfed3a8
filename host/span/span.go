// Package span has the traces of messages: places in a trace, spans, and what records them. It knows no actors; host/tracing
// has a recorder for OpenTelemetry.
package span

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Headers that carry a trace, as W3C Trace Context names them.
const (
	HeaderParent = "traceparent"
	HeaderState  = "tracestate"
)

// MaxState bounds what is carried of a tracestate, in bytes; a longer one is dropped.
// W3C Trace Context asks for 512 at least.
const MaxState = 512

// Context is a place in a trace, as in W3C Trace Context. The zero value is none.
type Context struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte   // 1: sampled
	State   string // tracestate, at most MaxState bytes
}

// IsValid reports whether it is a place in a trace at all.
func (t Context) IsValid() bool { return t.TraceID != [16]byte{} && t.SpanID != [8]byte{} }

// Sampled reports whether the trace is recorded.
func (t Context) Sampled() bool { return t.Flags&TraceSampled != 0 }

const (
	TraceSampled    = 1
	traceFlags      = 3  // those that are passed on: sampled, random
	TraceParentSize = 55 // of version 00
)

// ParseParent reads a traceparent. Of a later version it reads the parts that it knows; false
// means that the text is not valid.
func ParseParent(text []byte) (t Context, ok bool) {
	if len(text) < TraceParentSize || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return Context{}, false
	}
	version, ok := unhex(text[0], text[1])
	switch {
	case !ok || version == 0xff:
		return Context{}, false
	case version == 0 && len(text) != TraceParentSize:
		return Context{}, false
	case len(text) > TraceParentSize && text[TraceParentSize] != '-':
		return Context{}, false
	}
	flags, ok := unhex(text[53], text[54])
	if !ok || !unhexAll(t.TraceID[:], text[3:35]) || !unhexAll(t.SpanID[:], text[36:52]) || !t.IsValid() {
		return Context{}, false
	}
	t.Flags = flags & traceFlags
	return t, true
}

// AppendTraceParent appends it as a traceparent of version 00, 55 bytes.
func (t Context) AppendTraceParent(dst []byte) []byte {
	dst = append(dst, "00-"...)
	dst = hex.AppendEncode(dst, t.TraceID[:])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, t.SpanID[:])
	return append(dst, '-', '0', '0'+t.Flags&traceFlags)
}

// String is the traceparent, "" if there is none.
func (t Context) String() string {
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

// Kind is what a span is about.
type Kind uint8

// The kinds of spans.
const (
	Turn  Kind = iota + 1 // an actor handles a message
	Start                 // an incarnation begins
	Send                  // a message comes in from outside
	Ask                   // somebody outside asks, until there is an answer
)

var spanNames = [...]string{"none", "turn", "start", "send", "ask"}

// String is the kind's name.
func (k Kind) String() string {
	if int(k) < len(spanNames) {
		return spanNames[k]
	}
	return spanNames[0]
}

// Begun is what is known of a span when it begins.
type Begun struct {
	Kind   Kind
	Parent Context // zero: it is the root of a trace
	// Link is the turn whose failure an incarnation follows, zero if there is none.
	Link        Context
	At          time.Time // by the system's clock
	Ref         ref.Ref   // the actor that handles the message, begins, or is sent to
	Type        string    // its type, "" if it is not an actor
	Incarnation uint64
	Message     abi.Kind // turn
	Sender      ref.Ref  // turn: its path may be unknown
	Bytes       int      // turn, send, ask: of the payload
	Question    bool     // turn: somebody waits for the answer
}

// Ended is what is known when it has ended.
type Ended struct {
	At      time.Time
	Failure *abi.Failure // turn, start: it has failed. Shared, not to be changed
	Fuel    uint64       // turn of a guest
	Err     error        // send, ask: what came of it
}

// Span is what a [Tracer] records.
type Span interface {
	// Context is the parent for spans of what this span causes.
	Context() Context
	// End is called once. What it is given is valid until it returns.
	End(e *Ended)
}

// Tracer records what messages cause. Workers call it, so it must be quick and never wait;
// all methods are for any goroutine. Package host/tracing has one for OpenTelemetry.
//
// Whether a trace is recorded is decided at its root, where a message comes in from
// outside, a timer fires or an actor begins. A trace that is not recorded costs nothing later on.
type Tracer interface {
	// Begin begins a span. Nil means that neither it nor anything that it causes is
	// recorded. s is valid until it returns.
	Begin(s *Begun) Span
	// Knows reports whether a trace is recorded and under way: a guest may put a message
	// into such a trace itself, if it has seen its ID, and into no other.
	Knows(trace [16]byte) bool
	// Of is the place in a trace that a Go context holds, zero if it holds none.
	Of(ctx context.Context) Context
	// In is a Go context that holds a place in a trace.
	In(ctx context.Context, t Context) context.Context
}
