package cluster

import (
	"encoding/binary"
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/network"
)

// A packet is what one node sends to another. It names both lives, so that nothing of an earlier one counts, confirms what
// has arrived, and has some units of the stream from one to the other: frames, or parts of large ones.

const (
	version    = 1
	headBytes  = 1 + 1 + 5*8
	unitBytes  = 1 + 2*binary.MaxVarintLen64
	flagAnswer = 1 // confirm, even if nothing has come
	flagHello  = 2 // the receiver has confirmed nothing of this session yet
	unitMore   = 1 // the next unit continues the frame
)

// packet is one of them. Its units share its memory.
type packet struct {
	flags          byte
	born, receiver uint64 // the lives of the sender and the receiver
	session        uint64 // of the sender's stream
	confirms       uint64 // all units before this one of the receiver's stream...
	of             uint64 // ...and of this session of it have arrived
	first          uint64 // the number of the first unit
	units          []unit
}

// unit is a frame, or a part of one.
type unit struct {
	to   abi.Ref
	more bool
	part []byte
}

var errPacket = errors.New("cluster: malformed packet")

func appendHead(dst []byte, p *packet) []byte {
	dst = append(dst, version, p.flags)
	for _, n := range [...]uint64{p.born, p.receiver, p.session, p.confirms, p.of} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return binary.AppendUvarint(dst, p.first)
}

func appendUnit(dst []byte, u *unit) []byte {
	flags := byte(0)
	if u.more {
		flags = unitMore
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(u.to))
	dst = binary.AppendUvarint(dst, uint64(len(u.part)))
	return append(dst, u.part...)
}

func decodePacket(b []byte) (*packet, error) {
	if len(b) < headBytes+1 || b[0] != version || b[1] > flagAnswer|flagHello {
		return nil, errPacket
	}
	p := &packet{flags: b[1]}
	b = b[2:]
	for _, n := range [...]*uint64{&p.born, &p.receiver, &p.session, &p.confirms, &p.of} {
		*n, b = binary.LittleEndian.Uint64(b), b[8:]
	}
	var ok bool
	if p.first, b, ok = number(b); !ok {
		return nil, errPacket
	}
	for len(b) > 0 {
		if b[0] > unitMore {
			return nil, errPacket
		}
		u := unit{more: b[0] == unitMore}
		var to, size uint64
		if to, b, ok = number(b[1:]); ok {
			size, b, ok = number(b)
		}
		if !ok || size > uint64(len(b)) {
			return nil, errPacket
		}
		u.to, u.part, b = abi.Ref(to), b[:size:size], b[size:]
		p.units = append(p.units, u)
	}
	return p, nil
}

// number reads an unsigned varint in its shortest encoding.
func number(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}

// maxFrame bounds a frame that is put together from parts, in bytes.
const maxFrame = network.MaxPayload + network.MaxHeaders + 2*network.MaxPath + 128
