package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// What arrives from other nodes.

func init() { network.Join = join }

var (
	errAlone  = errors.New("host: the system has no node number: set Config.WithNode")
	errJoined = errors.New("host: the system has a carrier already")
)

func join(system any, c network.Carrier) (network.Port, error) {
	s := system.(*System)
	switch {
	case s.cfg.Node == 0:
		return nil, errAlone
	case !s.carrier.CompareAndSwap(nil, &c):
		return nil, errJoined
	}
	return port{s}, nil
}

// port implements network.Port.
type port struct{ s *System }

func (p port) Node() uint16 { return p.s.cfg.Node }

func (p port) Arrive(to abi.Ref, frame []byte) error {
	m, g, err := network.Decode(frame)
	if err != nil {
		return err
	}
	return p.take(to, m, g, nil)
}

func (p port) Take(all []network.Arrival, c *mailbox.Cache) {
	for i := range all {
		_ = p.take(all[i].To, &all[i].Message, all[i].Signal, c)
	}
}

func (p port) take(to abi.Ref, m *network.Message, g *signal.Signal, c *mailbox.Cache) error {
	s := p.s
	if to.Node() != s.cfg.Node {
		return fmt.Errorf("%w: it is on node %d, not on %d", ErrUnknown, to.Node(), s.cfg.Node)
	}
	if g != nil && g.Kind == signal.Strayed {
		if a := s.here(to); a != nil {
			a.strayed(nil, g.From)
		}
		return nil
	}
	if g != nil {
		arrived := *g
		if g.Kind == signal.Unanswered {
			arrived.Err = network.ErrorOf(g.Code, g.Reason)
			if kind, ok := g.Code.FailureKind(); ok {
				arrived.Err = &TurnError{Ref: farRef(s, g.From), Failure: &abi.Failure{Kind: kind, Reason: g.Reason}}
			}
		}
		if !s.signal(nil, to, arrived) && g.Kind == signal.Watch {
			p.strayed(g.From, to)
		}
		return nil
	}
	e, by := m.Envelope(c, &s.time), m.Sender
	e.Flags &^= mark.Ours // another host answers only in the name of an actor that was asked
	if m.Via != 0 {
		by = m.Via
	}
	if to == network.Root(s.cfg.Node) {
		p.byPath(to, e)
	} else if s.deliver(nil, to, e) == ErrUnknown && m.Kind == abi.KindMessage { // it is a dead letter here, and the asker is told
		p.strayed(by, to)
	}
	return nil
}

// farRef is refOf of an actor that another node speaks of. Its path is not known here unless it is of this node: the text says where it is.
func farRef(s *System, uid abi.Ref) Ref {
	if uid == 0 || uid.Node() == s.cfg.Node {
		return s.refOf(uid)
	}
	return newRef(uid, fmt.Sprintf("the actor on node %d that was asked", uid.Node()))
}

// strayed tells the node of an actor that the actor has named a ref of nobody, unless somebody had it recently.
func (p port) strayed(by, to abi.Ref) {
	if _, ok := p.s.recent.Find(to); !ok {
		p.s.signalAway(by, &signal.Signal{Kind: signal.Strayed, From: to})
	}
}

// byPath delivers a message that another node has addressed by a path. Who is there may answer, which is what the
// asker has asked this node for.
func (p port) byPath(root abi.Ref, e *mailbox.Envelope) {
	s, below, elements := p.s, "", []string(nil)
	if at := e.Attached; at != nil {
		elements = strings.Split(at.Below, "/")
		e.Attached = nil
	}
	var to []*actor
	if e.Flags&mark.Control == 0 && !glob.HasMeta(strings.Join(elements, "")) {
		if a, name := s.findDoor(elements); a != nil {
			to, below = []*actor{a}, name
		}
	} else {
		to = s.nodes.Match(elements)
	}
	if len(to) == 0 {
		s.refuse(nil, DeadUnknown, ErrUnknown, root, "/"+strings.Join(elements, "/"), e)
	}
	for _, a := range to {
		one := message.CloneEnvelope(e)
		one.Flags, one.Value = e.Flags, e.Value
		if below != "" {
			one.Attached = &mailbox.Attached{Below: below}
		}
		s.delegate(nil, one, root, a.uid)
		_ = s.deliverTo(nil, a, one)
	}
	e.Free()
}
