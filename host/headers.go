package host

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

func hasHeader(headers []byte, key string) bool {
	_, ok := abi.FindHeader(headers, key)
	return ok
}

// headerNumber is a header that is a decimal number.
func headerNumber(headers []byte, key string) (uint64, bool) {
	v, ok := abi.FindHeader(headers, key)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	return n, err == nil
}

// Headed is a message with headers: Tell(to, host.Headed{Value: v, Headers: ...}). A
// mailbox may use them (host/mailbox), and the receiver may read them. There are abi.MaxHeaders at most, of
// abi.MaxHeaderKey and abi.MaxHeaderValue bytes of UTF-8.
type Headed struct {
	Value   any
	Headers map[string]string
}

// put writes the headers, sorted, into an envelope.
func (h Headed) put(e *mailbox.Envelope) error {
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

// withHeader returns headers with one header set; false if there are too many.
func withHeader(headers []byte, key, value string) ([]byte, bool) {
	var out []byte
	n := 0
	for {
		k, v, rest, more := abi.NextHeader(headers)
		if !more {
			break
		}
		if string(k) != key {
			out = abi.AppendHeader(out, string(k), string(v))
			n++
		}
		headers = rest
	}
	return abi.AppendHeader(out, key, value), n < abi.MaxHeaders
}

// withoutHeader removes a header from headers, in place.
func withoutHeader(headers []byte, key string) []byte {
	var out []byte
	for rest := headers; ; {
		k, v, next, more := abi.NextHeader(rest)
		if !more {
			return append(headers[:0], out...)
		}
		if string(k) != key {
			out = abi.AppendHeader(out, string(k), string(v))
		}
		rest = next
	}
}
