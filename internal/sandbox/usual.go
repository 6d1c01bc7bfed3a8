package sandbox

import (
	"encoding/binary"

	"github.com/wasmactors/wasmactors/abi"
)

// A fast path for nearly all messages: between actors, without headers, with less than
// 64 KiB of payload. These functions encode and decode them in one pass. For all others, and
// for whatever is malformed, they give up and the general codec of package abi is used. Their
// results are the same as abi's (TestUsual).
const (
	headSix    = 0x86 // an array of six items
	headUint64 = 0x1b
	headNull   = 0xf6
	headBytes  = 0x40
)

// putUsual encodes e into dst and returns its length; 0 means that it is not a usual one.
func putUsual(dst []byte, e *abi.Envelope) int {
	if len(e.Headers) != 0 || e.Sequence|e.Position != 0 {
		return 0
	}
	return putPlain(dst, e.Kind, e.Time, e.Sender, e.Correlation, e.Payload)
}

// putPlain is putUsual for an envelope without headers and without numbers. It takes the
// fields as arguments because filling a struct would take longer than the rest.
func putPlain(dst []byte, kind abi.Kind, time int64, sender abi.Ref, correlation uint64, payload []byte) int {
	const fixed = 2 + 9 + 9 + 9 + 1 + 3 // at most
	size := len(payload)
	if len(dst) < fixed+size || size > 0xffff || time>>32 <= 0 || sender>>32 == 0 {
		return 0
	}
	h := (*[fixed]byte)(dst)
	h[0], h[1], h[2] = headSix, byte(kind), headUint64
	binary.BigEndian.PutUint64(h[3:11], uint64(time))
	h[11] = headUint64
	binary.BigEndian.PutUint64(h[12:20], uint64(sender))
	at := 21
	switch c := correlation; {
	case c < 24:
		h[20] = byte(c)
	case c>>32 != 0:
		h[20] = headUint64
		binary.BigEndian.PutUint64(h[21:29], c)
		at = 29
	default:
		return 0
	}
	t := (*[4]byte)(dst[at:])
	t[0] = headNull
	switch {
	case size < 24:
		t[1] = headBytes | byte(size)
		at += 2
	case size < 256:
		t[1], t[2] = headBytes|24, byte(size)
		at += 3
	default:
		t[1], t[2], t[3] = headBytes|25, byte(size>>8), byte(size)
		at += 4
	}
	return at + copy(dst[at:], payload)
}

// decodeUsual decodes a send to a ref into c, which is zero or was used for decoding before,
// and returns its length; 0 means that abi must decode it.
func decodeUsual(c *abi.Command, b []byte) int {
	const least = 2 + 9 + 1 + 1 + 1 + 1
	if len(b) < least {
		return 0
	}
	h := (*[least]byte)(b)
	if h[0] != headSix || h[1] != byte(abi.OpSend) || h[2] != headUint64 {
		return 0
	}
	to := binary.BigEndian.Uint64(h[3:11])
	correlation, at := uint64(h[11]), 12
	if correlation >= 24 {
		if correlation != headUint64 || len(b) < least+8 {
			return 0
		}
		if correlation = binary.BigEndian.Uint64(b[12:]); correlation>>32 == 0 {
			return 0
		}
		at = 20
	}
	t := (*[3]byte)(b[at:])
	flags := t[0]
	if to>>32 == 0 || flags > byte(abi.FlagReply) || t[1] != headNull {
		return 0
	}
	size := int(t[2]) - headBytes
	at += 3
	switch {
	case uint(size) < 24:
	case size == 24 && at < len(b) && b[at] >= 24:
		size = int(b[at])
		at++
	case size == 25 && at+1 < len(b) && b[at] != 0:
		size = int(b[at])<<8 | int(b[at+1])
		at += 2
	default:
		return 0
	}
	end := at + size
	if end > len(b) {
		return 0
	}
	if c.Op != abi.OpSend {
		*c = abi.Command{}
	} else if c.ToPath != nil || c.Headers != nil {
		c.ToPath, c.Headers = nil, nil
	}
	c.ToRef, c.Correlation, c.Flags = abi.Ref(to), correlation, uint64(flags)
	c.Payload = b[at:end:end]
	return end
}
