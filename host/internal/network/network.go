// Package network is where systems on several nodes meet: a carrier takes frames from one to another. A frame is a message
// or a signal for a ref. The engine asks its carrier only when nobody of its own has a ref.
package network

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Carrier takes frames to other nodes. What one node sends to another arrives in order, and each frame once or, if the
// nodes lose each other, not at all. Nodes trust each other. Carry is called by many goroutines at once, by workers too:
// it must not block, nor call the port.
type Carrier interface {
	// Carry takes a message that fits, or else a signal, to the node of a ref; the other is nil. It keeps neither, nor their
	// memory. An error says that it is not taken, and is what the sender gets if it wraps one of host's: host.ErrNodeLost,
	// host.ErrMailboxFull. Any other is host.ErrUnknown.
	Carry(to abi.Ref, m *Message, s *signal.Signal) error
}

// Port is a system as its carrier sees it.
type Port interface {
	// Node is the system's node, 1 to abi.MaxNode.
	Node() uint16
	// Arrive hands over a frame for a ref of the system's node. It keeps nothing of the frame. The error wraps
	// ErrMalformed, or says that the ref is another node's; what becomes of a frame whose receiver does not exist any
	// more is no error. It may be called by any goroutine.
	Arrive(to abi.Ref, frame []byte) error
	// Take hands over what Decode has read of frames, in order, and ignores what is for another node. It keeps nothing of them,
	// nor their memory. Their envelopes come from c, which only one call at a time may use. It may be called by any goroutine.
	Take(all []Arrival, c *mailbox.Cache)
	// Tree is what Home.Tree says.
	Tree(of abi.Ref) (tree any, here bool)
}

// Arrival is what has arrived for a ref: a message, or else a signal.
type Arrival struct {
	To      abi.Ref
	Message Message
	Signal  *signal.Signal // nil: it is the message
}

// Root is the receiver on a node that takes what is addressed by a path: see Message.Below.
func Root(node uint16) abi.Ref { return abi.Ref(node) << 54 }

// ErrMalformed says that a frame is none.
var ErrMalformed = errors.New("network: malformed frame")

// Join gives a *host.System its carrier. The error says that the system has one already, or no node of its own. Package
// host sets it.
var Join func(system any, c Carrier) (Port, error)
