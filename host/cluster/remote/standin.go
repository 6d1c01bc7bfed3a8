package remote

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/supervision"
)

// standIn stands for a child of its parent that runs on another node. What comes before the child is there waits in the stash.
type standIn struct {
	node    Node
	place   Place
	typ     string
	request *request // what the actor is started with: so it is on its account

	offer    offer
	asks     []cluster.Member // nodes to be asked, the present one first
	door     host.Ref         // of the present one
	requests int              // that it has had
	step     uint64           // what is under way: correlations are steps
	child    host.Ref         // zero: it is not there yet
	over     bool
	last     error // why the last node does not take it
}

// Steps; those of the nth node, from 1, begin at 4n: no correlation is 0.
const (
	finding  = 0
	starting = 1
	fetching = 2 // the node fetches the code
	reading  = 3 // of the code, here
	steps    = 4
)

// kept is why a child ends whose parent does, as the host says it.
const kept = "the parent stops"

// Start implements host.Behaviour.
func (s *standIn) Start(ctx *host.Context, cause *abi.Failure) *abi.Failure {
	if cause != nil { // it is restarted by hand: the child is not known any more
		s.miss(ctx, ErrUnknown)
		return nil
	}
	s.request = &request{}
	if err := ctx.Args(s.request); err != nil {
		s.miss(ctx, err)
		return nil
	}
	s.asks, s.step = candidates(s.node.Members(), s.place, ctx.Self().Path()), steps
	s.find(ctx)
	return nil
}

// find asks the next node whether it has a door.
func (s *standIn) find(ctx *host.Context) {
	for len(s.asks) > 0 {
		m := s.asks[0]
		err := ctx.At(ref.Root(ctx.System().Name(), m.Number)+"/system/"+Door).Identify(s.step+finding, findTime)
		if err == nil {
			return
		}
		s.next(err)
	}
	switch {
	case s.last != nil:
		s.miss(ctx, fmt.Errorf("%w: %w", ErrNoNode, s.last))
	case s.place.Node != "":
		s.miss(ctx, fmt.Errorf("%w: there is no node %s with the role that is asked for", ErrNoNode, s.place.Node))
	default:
		s.miss(ctx, fmt.Errorf("%w: no node has the role %q", ErrNoNode, s.place.Role))
	}
}

// next passes over the node that is asked, which does not take the child.
func (s *standIn) next(why error) {
	s.last = fmt.Errorf("node %s: %w", s.asks[0].Name, why)
	s.asks = s.asks[1:]
	s.step += steps
	s.requests = 0
}

// miss ends the spawn in vain.
func (s *standIn) miss(ctx *host.Context, why error) {
	s.over = true
	ctx.Head().NotSpawned(s.typ, why)
}

// Handle implements host.Behaviour.
func (s *standIn) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		switch {
		case !ok:
			return nil
		case m.Kind == abi.KindMessage:
			if !s.give(ctx, m) {
				s.mail(ctx)
			}
		case m.Kind == abi.KindTerminated:
			if m.Sender.Equal(s.child) {
				var why string
				_ = m.Decode(&why)
				if why == kept { // the parent here does not stop, what kept the child there does: the node ends, or an operator ends the group
					why = cluster.NodeGone
				}
				s.over = true
				ctx.Head().Leave(why)
			}
		case s.over || !s.child.IsZero():
		case m.Correlation == s.step+finding:
			s.found(ctx, m)
		case m.Correlation == s.step+starting:
			s.started(ctx, m)
		case m.Correlation == s.step+fetching:
			s.outcome(ctx, m)
		case m.Correlation == s.step+reading:
			s.wasRead(ctx, m)
		}
	}
}

// mail passes a message on, or has it wait.
func (s *standIn) mail(ctx *host.Context) {
	switch {
	case s.over:
		ctx.Head().Refuse(host.ErrStopped)
	case !s.child.IsZero():
		_ = ctx.Head().Pass(s.child)
	default:
		if err := ctx.Stash(); err != nil {
			ctx.Head().Refuse(fmt.Errorf("%w: too much waits for a child that is being started on another node", host.ErrMailboxFull))
		}
	}
}

// found handles what a node answers to the question for its door.
func (s *standIn) found(ctx *host.Context, m host.Message) {
	if m.Kind != abi.KindReply || m.Sender.UID().Node() != s.asks[0].Number {
		s.next(errNoDoor)
		s.find(ctx)
		return
	}
	s.door = m.Sender
	s.send(ctx)
}

// send sends the request to the node that is asked.
func (s *standIn) send(ctx *host.Context) {
	headers := map[string]string{Header: version}
	if s.offer.read != nil && s.requests+1 < mostRequested {
		headers[offering] = version
	}
	s.requests++
	v := host.Headed{Value: host.Raw(s.request.encode(ctx.Self().Name())), Headers: headers}
	if err := ctx.Ask(s.door, v, s.step+starting, startTime); err != nil {
		s.next(err)
		s.find(ctx)
	}
}

var errNoDoor = errors.New("it accepts no children of other nodes, or is of an earlier version")

// started handles what a node answers to the request. Only what says that nothing was started leads to the next node: so there is one
// child for a spawn at most.
func (s *standIn) started(ctx *host.Context, m host.Message) {
	a, ok := answer{}, false
	if m.Kind == abi.KindReply {
		a, ok = decodeAnswer(m.Payload)
	}
	switch {
	case ok && a.Fetched:
		s.next(errMalformed)
		s.find(ctx)
	case ok && a.Fetch != 0:
		s.fetching(ctx, a.Fetch)
	case !ok:
		why := m.Err()
		if why == nil {
			why = errors.New(m.Kind.String())
		}
		s.miss(ctx, fmt.Errorf("%w: node %s: %w", ErrUnknown, s.asks[0].Name, why))
	case a.Refused != "":
		s.next(errors.New(a.Refused))
		s.find(ctx)
	case a.Child.Node() != s.asks[0].Number || m.Sender.UID().Node() != a.Child.Node():
		s.miss(ctx, fmt.Errorf("%w: node %s names an actor of another node", ErrUnknown, s.asks[0].Name))
	default:
		child, err := ctx.System().RefOf(a.Child, host.Ref{})
		if err == nil {
			err = ctx.Watch(child)
		}
		if err != nil {
			s.miss(ctx, err)
			return
		}
		s.child, s.request, s.asks = child, nil, nil
		ctx.Unstash()
	}
}

// Decide implements host.Behaviour.
func (s *standIn) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour.
func (s *standIn) CannotRewind() string { return "it stands for an actor of another node" }

// Rewind implements host.Behaviour.
func (s *standIn) Rewind(*host.Context) bool { return false }

// End implements host.Behaviour. The child's node watches this actor.
func (s *standIn) End(*host.Context, host.End) {}
