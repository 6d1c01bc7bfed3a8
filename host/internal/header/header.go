// Package header finds and changes single headers of messages.
package header

import (
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

func Has(headers []byte, key string) bool {
	_, ok := abi.FindHeader(headers, key)
	return ok
}

// Number is a header that is a decimal number.
func Number(headers []byte, key string) (uint64, bool) {
	v, ok := abi.FindHeader(headers, key)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	return n, err == nil
}

// With returns headers with one header set; false if there are too many.
func With(headers []byte, key, value string) ([]byte, bool) {
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

// Without removes a header from headers, in place.
func Without(headers []byte, key string) []byte {
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

// Type is the header with the type, if it is valid.
func Type(headers []byte) string {
	if len(headers) == 0 {
		return ""
	}
	v, ok := abi.FindHeader(headers, abi.HeaderType)
	if !ok || len(v) > abi.MaxMessageName+6 {
		return ""
	}
	value := string(v)
	if _, _, valid := abi.CutMessageType(value); !valid {
		return ""
	}
	return value
}

// Stated are headers with the deadline that the host states, or with none, whatever they have said: in the room of into. They have
// one byte if there are none.
func Stated(into, headers []byte, due int64, known bool) []byte {
	out := append(into[:0], emptyMap)
	for rest := headers; ; {
		k, _, next, more := abi.NextHeader(rest)
		if !more {
			break
		}
		if string(k) != abi.HeaderDeadline {
			if len(rest) == len(headers) {
				rest = rest[1:] // the head of the map
			}
			out = append(out, rest[:len(rest)-len(next)]...)
			out[0]++
		}
		rest = next
	}
	if known && out[0] < emptyMap+abi.MaxHeaders {
		var digits [20]byte
		out = abi.AppendHeader(out, abi.HeaderDeadline, string(strconv.AppendInt(digits[:0], due, 10)))
	}
	return out
}

// emptyMap is the head of a map without entries; one of 23 at most has one byte.
const emptyMap = 0xa0
