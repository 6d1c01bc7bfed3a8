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
	withDoubts = 2 // packets are the same, and entries of the directory may have a doubt, which others cannot read
	headBytes  = 1 + 1 + 5*8
	unitBytes  = 1 + 2*binary.MaxVarintLen64
	flagAnswer = 1 // confirm, even if nothing has come
	flagHello  = 2 // the receiver has confirmed nothing of this session yet
	unitMore   = 1 // the next unit continues the frame
)

// NamesBundles is the version of the protocol since which tables of kinds are those of a bundle, see package shard. Packets and
// entries of nodes are as before.
const NamesBundles = 3

// namesFailed is the newest version of the protocol: what says that an actor has ended, or that its turn has failed, has the actor's
// path. Nodes that do not understand it get signals without.
const namesFailed = 4

// packet is one of them. Its units share its memory.
type packet struct {
	flags          byte
	born, receiver uint64 // the lives of the sender and the receiver
	session        uint64 // of the sender's stream
	confirms       uint64 // all units before this one of the receiver's stream...
	of             uint64 // ...and of this session of it have arrived
	first          uint64 // the number of the first unit
	units          []byte // encoded, each of them whole
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
	return append(appendUnitHead(dst, u.to, u.more, len(u.part)), u.part...)
}

// appendUnitHead appends what comes before a part of so many bytes.
func appendUnitHead(dst []byte, to abi.Ref, more bool, size int) []byte {
	flags := byte(0)
	if more {
		flags = unitMore
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(to))
	return binary.AppendUvarint(dst, uint64(size))
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
	p.units = b
	for len(b) > 0 {
		if _, b, ok = nextUnit(b); !ok {
			return nil, errPacket
		}
	}
	return p, nil
}

// nextUnit reads the first of some units, and returns what follows it.
func nextUnit(b []byte) (u unit, rest []byte, ok bool) {
	if b[0] > unitMore {
		return unit{}, nil, false
	}
	u.more = b[0] == unitMore
	to, b, ok := number(b[1:])
	if !ok {
		return unit{}, nil, false
	}
	size, b, ok := number(b)
	if !ok || size > uint64(len(b)) {
		return unit{}, nil, false
	}
	u.to, u.part = abi.Ref(to), b[:size:size]
	return u, b[size:], true
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
