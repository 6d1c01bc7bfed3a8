package trail

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Layout of the headers of a trace, as the host writes them: a map whose first entry is
// the traceparent.
const (
	traceKeyAt   = 1
	traceValueAt = traceKeyAt + 1 + len(span.HeaderParent) + 2
	HeadSize     = traceValueAt + span.TraceParentSize
)

const traceHead = "\x6btraceparent\x78\x37" // a text of 11 bytes, then one of 55

// Has reports whether headers are those of a message within a trace.
func Has(headers []byte) bool {
	return len(headers) >= HeadSize && string(headers[traceKeyAt:traceValueAt]) == traceHead
}

// IsSampled reports whether the headers say that the trace is recorded.
func IsSampled(headers []byte) bool {
	return Has(headers) && (headers[HeadSize-1]-'0')&span.TraceSampled != 0
}

// Of is the place that headers name.
func Of(headers []byte) span.Context {
	if !Has(headers) {
		return span.Context{}
	}
	t, _ := span.ParseParent(headers[traceValueAt:HeadSize])
	if key, value, _, ok := abi.NextHeader(headers[HeadSize:]); ok && string(key) == span.HeaderState {
		t.State = string(value)
	}
	return t
}

// Append writes the headers of a place.
func Append(dst []byte, t *span.Context) []byte {
	dst = append(append(dst, 0xa1), traceHead...)
	dst = t.AppendTraceParent(dst)
	if t.State != "" && len(t.State) <= span.MaxState {
		dst = abi.AppendHeader(dst, span.HeaderState, t.State)
	}
	return dst
}

// headOf is the part of headers that names a trace; its first
// byte, the count, is too large if there are others.
func headOf(headers []byte) []byte {
	if !Has(headers) {
		return nil
	}
	if key, _, rest, ok := abi.NextHeader(headers[HeadSize:]); ok && string(key) == span.HeaderState {
		return headers[:len(headers)-len(rest)]
	}
	return headers[:HeadSize]
}

// headCount is the number of entries in headers that traceHeadOf has returned.
func headCount(head []byte) int {
	switch {
	case len(head) == 0:
		return 0
	case len(head) == HeadSize:
		return 1
	}
	return 2
}

// TraceHeaders is how many headers a message within a trace may have: one less than the maximum,
// to leave room for the number that a resender may add.
const TraceHeaders = abi.MaxHeaders - 1

// Mark appends headers with the trace of head, and without any other trace. If there is
// no room for the trace it is left out.
func Mark(dst, head, headers []byte) []byte {
	others, kept := 0, 0
	for rest := headers; ; {
		key, _, next, ok := abi.NextHeader(rest)
		if !ok {
			break
		}
		if !IsTraceKey(key) {
			others++
		}
		rest = next
	}
	switch kept = headCount(head); {
	case kept+others <= TraceHeaders:
	case kept > 1 && others < TraceHeaders: // the tracestate can be left out
		kept, head = 1, head[:HeadSize]
	default:
		kept = 0
	}
	if kept+others == 0 {
		return dst
	}
	at := len(dst)
	if kept > 0 {
		dst = append(dst, head...)
	} else {
		dst = append(dst, 0)
	}
	dst[at] = 0xa0 | byte(kept+others)
	for rest := headers; ; {
		key, _, next, ok := abi.NextHeader(rest)
		if !ok {
			return dst
		}
		if !IsTraceKey(key) {
			entry := rest[:len(rest)-len(next)]
			if len(rest) == len(headers) {
				entry = entry[1:] // the head of the map
			}
			dst = append(dst, entry...)
		}
		rest = next
	}
}

func IsTraceKey(key []byte) bool {
	return string(key) == span.HeaderParent || string(key) == span.HeaderState
}

// Head puts a trace before the headers of a message.
func Head(e *mailbox.Envelope, t *span.Context) {
	if len(e.Headers) == 0 {
		e.Headers = Append(e.Headers, t)
		return
	}
	e.Headers = Mark(nil, Append(nil, t), e.Headers)
}
