package host

import (
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

// headerOf finds a header.
func headerOf(headers []byte, key string) (value []byte, ok bool) {
	for {
		k, v, rest, more := abi.NextHeader(headers)
		if !more {
			return nil, false
		}
		if string(k) == key {
			return v, true
		}
		headers = rest
	}
}

func hasHeader(headers []byte, key string) bool {
	_, ok := headerOf(headers, key)
	return ok
}

// headerNumber is a header that is a decimal number.
func headerNumber(headers []byte, key string) (uint64, bool) {
	v, ok := headerOf(headers, key)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	return n, err == nil
}

// withHeader is headers with one set; false if there are too many.
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
