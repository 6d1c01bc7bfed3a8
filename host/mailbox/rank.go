package mailbox

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// ranker reads the level of a message. It reads only the headers, of which there
// are abi.MaxHeaders at most, and the first bytes of the payload; it allocates nothing.
// The sender has written both, so any content yields a level that exists.
type ranker struct {
	header    string
	types     map[string]int
	last      int
	otherwise int
	presence  bool // the header alone makes it level 0
}

func (r *ranker) levelOf(e *host.Envelope) int {
	if r.last == 0 {
		return 0
	}
	if len(r.header) > 0 && len(e.Headers) > 0 {
		if v, ok := abi.FindHeader(e.Headers, r.header); ok {
			if r.presence {
				return 0
			}
			if n, ok := levelIn(v); ok {
				return min(n, r.last)
			}
		}
	}
	if len(r.types) > 0 {
		if name := typeOf(e.Payload); name != nil {
			if n, ok := r.types[string(name)]; ok {
				return min(max(n, 0), r.last)
			}
		}
	}
	return r.otherwise
}

// levelIn reads a decimal number of one to three digits.
func levelIn(v []byte) (n int, ok bool) {
	if len(v) == 0 || len(v) > 3 {
		return 0, false
	}
	for _, d := range v {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + int(d-'0')
	}
	return n, true
}

// typeOf is the text that is the payload, or the first element of an array
// that is the payload; nil if there is none, or if it is longer than a type's name. The payload is not
// checked any further.
func typeOf(p []byte) []byte {
	if len(p) > 0 && p[0] > 0x80 && p[0] <= 0x97 { // an array of 1 to 23
		p = p[1:]
	}
	if len(p) == 0 {
		return nil
	}
	n, head := int(p[0])-0x60, 1
	switch {
	case n >= 0 && n < 24:
	case p[0] == 0x78 && len(p) > 1:
		n, head = int(p[1]), 2
	default:
		return nil
	}
	if n > MaxTypeName || len(p) < head+n {
		return nil
	}
	return p[head : head+n : head+n]
}
