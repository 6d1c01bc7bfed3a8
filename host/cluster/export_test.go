package cluster

import (
	"github.com/wasmactors/wasmactors/abi"
)

// Packet is a packet of one unit, for tests.
func Packet(from, to Member, session, first uint64, ref abi.Ref, more bool, frame []byte) []byte {
	b := appendHead(nil, &packet{born: from.Born, receiver: to.Born, session: session, first: first})
	return appendUnit(b, &unit{to: ref, more: more, part: frame})
}

// MaxFrame is maxFrame.
const MaxFrame = maxFrame
