package network

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Home is the system that something arrives at. Its methods are for any goroutine.
type Home interface {
	// Deliver gives a message to whoever has a ref; ErrUnknown: nobody has it, which is a dead letter then.
	Deliver(to abi.Ref, e *mailbox.Envelope) error
	// ByPath gives a message to all that a path names, and makes a dead letter of it if it names none.
	ByPath(root abi.Ref, elements []string, e *mailbox.Envelope)
	// Signal gives a signal to whoever has a ref; false if nobody has it.
	Signal(to abi.Ref, m signal.Signal) bool
	// Strayed notes that an actor has named a ref of nobody, on another node.
	Strayed(by, to abi.Ref)
	// Had reports whether somebody had a ref recently.
	Had(to abi.Ref) bool
	// Tree is something that is the same for all actors below one of the top, and for no other, and nil for who is no actor; and whether
	// somebody of this node has the ref at all. It does not wait.
	Tree(of abi.Ref) (tree any, here bool)
	// RefOf is the full ref of an actor of this node.
	RefOf(uid abi.Ref) ref.Ref
}

var (
	errAlone  = errors.New("host: the system has no node number: set Config.WithNode")
	errJoined = errors.New("host: the system has a carrier already")
)

// Join gives the system its carrier.
func (o *Outlet) Join(c Carrier, h Home) (Port, error) {
	switch {
	case o.node == 0:
		return nil, errAlone
	case !o.carrier.CompareAndSwap(nil, &c):
		return nil, errJoined
	}
	return port{o, h}, nil
}

// port is a Port of a system that has joined.
type port struct {
	*Outlet
	home Home
}

// Node implements Port.
func (p port) Node() uint16 { return p.node }

// Tree implements Port.
func (p port) Tree(of abi.Ref) (tree any, here bool) { return p.home.Tree(of) }

// Arrive implements Port.
func (p port) Arrive(to abi.Ref, frame []byte) error {
	m, g, err := Decode(frame)
	if err != nil {
		return err
	}
	return p.take(to, m, g, nil)
}

// Take implements Port.
func (p port) Take(all []Arrival, c *mailbox.Cache) {
	for i := range all {
		_ = p.take(all[i].To, &all[i].Message, all[i].Signal, c)
	}
}

func (p port) take(to abi.Ref, m *Message, g *signal.Signal, c *mailbox.Cache) error {
	if to.Node() != p.node {
		return fmt.Errorf("%w: it is on node %d, not on %d", errs.ErrUnknown, to.Node(), p.node)
	}
	if g != nil && g.Kind == signal.Strayed {
		p.home.Strayed(to, g.From)
		return nil
	}
	if g != nil {
		arrived := *g
		if g.Kind == signal.Unanswered {
			arrived.Path, arrived.Err = "", ErrorOf(g.Code, g.Reason)
			if kind, ok := g.Code.FailureKind(); ok {
				arrived.Err = &errs.TurnError{Ref: p.refOf(g.From, g.Path), Failure: &abi.Failure{Kind: kind, Reason: g.Reason}}
			}
		}
		if !p.home.Signal(to, arrived) && g.Kind == signal.Watch {
			p.strayed(g.From, to)
		}
		return nil
	}
	e, by := m.Envelope(c, p.time), m.Sender
	e.Flags &^= mark.Ours // another host answers only in the name of an actor that was asked
	if m.Via != 0 {
		by = m.Via
	}
	if to == Root(p.node) {
		var elements []string
		if at := e.Attached; at != nil {
			elements = strings.Split(at.Below, "/")
			e.Attached = nil
		}
		p.home.ByPath(to, elements, e)
	} else if p.home.Deliver(to, e) == errs.ErrUnknown && m.Kind == abi.KindMessage { // it is a dead letter here, and the asker is told
		p.strayed(by, to)
	}
	return nil
}

// refOf is the ref of an actor that another node speaks of, with the path that it says. One of an earlier release says none, and
// the text says where the actor is.
func (p port) refOf(uid abi.Ref, path string) ref.Ref {
	switch {
	case uid == 0 || uid.Node() == p.node:
		return p.home.RefOf(uid)
	case path != "":
		return ref.Of(uid, path)
	}
	return ref.Of(uid, fmt.Sprintf("the actor on node %d that was asked", uid.Node()))
}

// strayed tells the node of an actor that the actor has named a ref of nobody, unless somebody had it recently.
func (p port) strayed(by, to abi.Ref) {
	if !p.home.Had(to) {
		p.Signal(by, &signal.Signal{Kind: signal.Strayed, From: to})
	}
}
