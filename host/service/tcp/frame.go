package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/wasmactors/wasmactors/host/service"
)

// Framing says how a stream of bytes is cut into messages, in both directions. The zero value does not cut: messages are
// whatever has arrived.
type Framing struct {
	Kind      string `cbor:"kind"`      // "", Lines, Length or Fixed
	Delimiter []byte `cbor:"delimiter"` // Lines: what ends one, 1 to 8 bytes; none: a line feed, before which a carriage return is dropped
	Size      int    `cbor:"size"`      // Length: bytes of the prefix, 1, 2 or 4, 0 for a varint (LEB128); Fixed: bytes of a message
	Little    bool   `cbor:"little"`    // Length: the least significant byte comes first
	Limit     int    `cbor:"limit"`     // bytes of a message; default DefaultFrame, at most MaxMessage
}

// Kinds of framing.
const (
	Lines  = "lines"
	Length = "length"
	Fixed  = "fixed"
)

// Bounds of messages, in bytes.
const (
	MaxMessage   = 60 << 10 // what fits into the inbox of a guest of our SDK
	DefaultFrame = 16 << 10
)

func (f *Framing) check() error {
	bad := func(text string) error { return service.Errorf(service.BadRequest, "framing: %s", text) }
	if f.Limit == 0 {
		f.Limit = DefaultFrame
		if f.Kind == Fixed {
			f.Limit = MaxMessage
		}
	}
	switch {
	case f.Limit < 1 || f.Limit > MaxMessage:
		return bad(fmt.Sprintf("limit is 1 to %d bytes", MaxMessage))
	case f.Kind != Lines && len(f.Delimiter) > 0:
		return bad("only lines have a delimiter")
	case f.Kind != Length && f.Little:
		return bad("only a length has an order")
	}
	switch f.Kind {
	case "":
		if f.Size != 0 {
			return bad("without a kind there is no size")
		}
	case Lines:
		if f.Size != 0 || len(f.Delimiter) > 8 {
			return bad("lines have a delimiter of at most 8 bytes, and no size")
		}
	case Length:
		if f.Size != 0 && f.Size != 1 && f.Size != 2 && f.Size != 4 {
			return bad("size of a length is 1, 2 or 4 bytes, or 0 for a varint")
		}
	case Fixed:
		if f.Size < 1 || f.Size > f.Limit {
			return bad("size is 1 to limit bytes")
		}
	default:
		return bad("kind is lines, length or fixed")
	}
	return nil
}

var (
	errFrameLimit  = errors.New("a message of the peer is larger than the limit of the framing")
	errFrameLength = errors.New("the length of a message of the peer is not a valid varint")
)

// decoder finds messages in what has arrived.
type decoder struct {
	f       *Framing
	scanned int // bytes in which no delimiter is
}

// next is the first message of b, and how many bytes of b it takes, its frame included; 0: it is not complete. An error is
// final.
func (d *decoder) next(b []byte) (message []byte, used int, err error) {
	switch d.f.Kind {
	case Lines:
		return d.line(b)
	case Fixed:
		if len(b) < d.f.Size {
			return nil, 0, nil
		}
		return b[:d.f.Size], d.f.Size, nil
	}
	n, head := uint64(0), d.f.Size
	switch {
	case head == 0:
		n, head = binary.Uvarint(b)
		if head < 0 || head == 0 && len(b) >= binary.MaxVarintLen64 {
			return nil, 0, errFrameLength
		}
		if head == 0 {
			return nil, 0, nil
		}
	case len(b) < head:
		return nil, 0, nil
	default:
		for i := range head {
			at := i
			if d.f.Little {
				at = head - 1 - i
			}
			n = n<<8 | uint64(b[at])
		}
	}
	if n > uint64(d.f.Limit) {
		return nil, 0, errFrameLimit
	}
	if uint64(len(b)-head) < n {
		return nil, 0, nil
	}
	return b[head : head+int(n)], head + int(n), nil
}

func (d *decoder) line(b []byte) (message []byte, used int, err error) {
	end := d.f.Delimiter
	if len(end) == 0 {
		end = []byte{'\n'}
	}
	from := max(d.scanned-len(end)+1, 0)
	i := bytes.Index(b[from:], end)
	if i < 0 {
		if d.scanned = len(b); len(b) > d.f.Limit+len(end) {
			return nil, 0, errFrameLimit
		}
		return nil, 0, nil
	}
	d.scanned = 0
	message, used = b[:from+i], from+i+len(end)
	if len(d.f.Delimiter) == 0 {
		message = bytes.TrimSuffix(message, []byte{'\r'})
	}
	if len(message) > d.f.Limit {
		return nil, 0, errFrameLimit
	}
	return message, used, nil
}

// rest is the error of an end of the stream behind which b is left.
func (d *decoder) rest(b []byte) error {
	if len(b) == 0 {
		return io.EOF
	}
	return fmt.Errorf("the peer has ended within a message: %w", io.ErrUnexpectedEOF)
}

// wrap appends a message in its frame.
func (f *Framing) wrap(dst, message []byte) ([]byte, error) {
	switch {
	case f.Kind == "":
		return append(dst, message...), nil
	case len(message) > f.Limit:
		return dst, service.Errorf(service.TooLarge, "a message has %d bytes, and the limit of the framing is %d", len(message), f.Limit)
	case f.Kind == Fixed && len(message) != f.Size:
		return dst, service.Errorf(service.BadRequest, "a message has %d bytes, and the framing wants %d", len(message), f.Size)
	case f.Kind == Fixed:
		return append(dst, message...), nil
	case f.Kind == Lines:
		end := f.Delimiter
		if len(end) == 0 {
			end = []byte{'\n'}
		}
		if bytes.Contains(message, end) {
			return dst, service.Errorf(service.BadRequest, "a line contains its delimiter")
		}
		return append(append(dst, message...), end...), nil
	case f.Size == 0:
		dst = binary.AppendUvarint(dst, uint64(len(message)))
	case uint64(len(message))>>(8*f.Size) != 0:
		return dst, service.Errorf(service.TooLarge, "a length of %d bytes cannot say %d", f.Size, len(message))
	default:
		for i := range f.Size {
			shift := 8 * (f.Size - 1 - i)
			if f.Little {
				shift = 8 * i
			}
			dst = append(dst, byte(len(message)>>shift))
		}
	}
	return append(dst, message...), nil
}
