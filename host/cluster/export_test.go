package cluster

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/network"
)

// Packet is a packet of one unit, for tests.
func Packet(from, to Member, session, first uint64, ref abi.Ref, more bool, frame []byte) []byte {
	b := appendHead(nil, &packet{born: from.Born, receiver: to.Born, session: session, first: first})
	return appendUnit(b, &unit{to: ref, more: more, part: frame})
}

// AppendUnit appends a unit to a packet.
func AppendUnit(packet []byte, ref abi.Ref, more bool, frame []byte) []byte {
	return appendUnit(packet, &unit{to: ref, more: more, part: frame})
}

// Bounds.
const (
	MaxFrame     = maxFrame
	MostArrivals = mostArrivals
	MostArrived  = mostArrived
)

// Receive takes a packet, as the links have it taken.
func (n *Node) Receive(from uint16, packet []byte) { n.receive(from, packet) }

// SwapPort puts something before the system.
func (n *Node) SwapPort(f func(network.Port) network.Port) {
	n.mu.Lock()
	defer n.unlock()
	n.port = f(n.port)
}

// Handing reports whether a goroutine hands over what has arrived.
func (n *Node) Handing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running && len(n.arrivals) == 0
}

// NamesFailed is the version since which signals have paths.
const NamesFailed = namesFailed

// Frames are the whole frames of a packet, for tests.
func Frames(packet []byte) (frames [][]byte) {
	p, err := decodePacket(packet)
	if err != nil {
		return nil
	}
	for rest := p.units; len(rest) > 0; {
		var u unit
		if u, rest, _ = nextUnit(rest); !u.more {
			frames = append(frames, u.part)
		}
	}
	return frames
}

// Shares is how many trees have something of what this node has for others.
func (n *Node) Shares() (all int) {
	n.mu.Lock()
	defer n.unlock()
	for _, p := range n.pairs {
		all += len(p.shares)
	}
	return all
}
