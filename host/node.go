package host

import (
	"errors"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// A system on one of several nodes. Its refs contain its node. Whatever is for a ref that nobody of its own has is given
// to the carrier, if there is one: so messages and signals between actors of one node cost what they cost without.

// carrierOf is the carrier for a ref, nil if the ref is of this node or there is no carrier.
func (s *System) carrierOf(to abi.Ref) network.Carrier {
	if c := s.carrier.Load(); c != nil && to.Node() != s.cfg.Node && to.Node() != 0 {
		return *c
	}
	return nil
}

// leaving are messages that nobody sends at the moment.
var leaving = sync.Pool{New: func() any { return new(network.Message) }}

// sendAway gives a message for a ref of another node to the carrier; it is ErrUnknown if nobody carries it. The envelope
// stays the caller's.
func (s *System) sendAway(to abi.Ref, e *mailbox.Envelope) error {
	c := s.carrierOf(to)
	if c == nil {
		return ErrUnknown
	}
	m := leaving.Get().(*network.Message)
	defer leaving.Put(m)
	*m = network.Of(e, &s.time)
	fits, err := m.Fits(), error(nil)
	if fits {
		err = c.Carry(to, m, nil)
	}
	*m = network.Message{}
	if !fits {
		return ErrTooLarge
	}
	if err == nil || errors.Is(err, ErrNodeLost) || errors.Is(err, ErrMailboxFull) {
		return err
	}
	return ErrUnknown
}

// signalAway gives a signal for a ref of another node to the carrier; false if nobody carries it.
func (s *System) signalAway(to abi.Ref, m *signal.Signal) bool {
	c := s.carrierOf(to)
	if c == nil {
		return false
	}
	far := *m
	if m.Err != nil {
		far.Code, far.Reason = codeOf(m.Err)
		far.Err = nil
	}
	return c.Carry(to, nil, &far) == nil
}

// codeOf is an error as it travels.
func codeOf(err error) (signal.Code, string) {
	if failed := (*TurnError)(nil); errors.As(err, &failed) && failed.Failure != nil {
		return signal.Failed + signal.Code(failed.Failure.Kind), failed.Failure.Reason
	}
	return network.CodeOf(err), err.Error()
}

// elsewhere is where a message for the text of a ref, or the full path, of an actor on another node goes: to a ref, or to
// the other node, for the path below. ok is false if it is not on another node, or nobody carries messages there.
func (s *System) elsewhere(text string) (to abi.Ref, below string, ok bool) {
	node, elements, to, ok := ref.Far(text)
	if to == 0 {
		to, below = network.Root(node), strings.Join(elements, "/")
	}
	return to, below, ok && s.carrierOf(to) != nil
}
