package remote

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// group has the children of one node, each below a keeper. It is an actor of the top, so that what they use, and what they guess, is theirs.
type group struct {
	accept  *Accept
	node    uint16
	here    int64 // children, which are on the count
	made    uint64
	fetches map[string]host.Ref // of code, by whose settings it gets and its hash
	busy    atomic.Bool         // one is under way
}

// Start implements host.Behaviour.
func (g *group) Start(*host.Context, *abi.Failure) *abi.Failure { return nil }

// Handle implements host.Behaviour.
func (g *group) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		switch {
		case !ok:
			return nil
		case m.Kind == abi.KindTerminated:
			if !g.fetched(m.Sender) {
				g.here--
				g.accept.Count.Here.Add(-1)
			}
		case m.Kind != abi.KindMessage || m.Correlation == 0 || m.Sender.IsZero():
		default:
			if err := g.begin(ctx, m); err != nil {
				g.accept.refuse(ctx, err)
			}
		}
	}
}

// begin starts a keeper, which answers the request when the child is there.
func (g *group) begin(ctx *host.Context, m host.Message) error {
	a := g.accept
	r, err := decodeRequest(m.Payload)
	switch {
	case err != nil:
		return err
	case r.Parent.Node() != m.Sender.UID().Node():
		return fmt.Errorf("%w: the parent is on another node than who asks", host.ErrDenied)
	case m.Sender.UID().Node() != g.node: // it has not come through the door
		return fmt.Errorf("%w: the children of node %d are here", host.ErrDenied, g.node)
	case g.here >= int64(a.Max):
		return full("cluster.accept.max", a.Max)
	}
	if err := a.member(g.node); err != nil { // also of who has gone past the door
		return err
	}
	p, held, err := a.props(r)
	if v, _ := abi.FindHeader(m.Headers, offering); a.Code != nil && errors.Is(err, ErrLacks) && string(v) == version && len(r.Digest) > 0 {
		return g.fetch(ctx, r, m.Sender.UID().Node())
	}
	if err != nil {
		return err
	}
	held += 2*int64(len(m.Payload)) + weight(&r.Strategy)
	plain := ended(r.Strategy)
	strategy, err := plain.Strategy()
	if err != nil {
		return err
	}
	parent, err := ctx.System().RefOf(r.Parent, host.Ref{})
	if err != nil {
		return err
	}
	if a.Count.Here.Add(1) > int64(a.Total) { // counted first: other groups start children at the same time
		a.Count.Here.Add(-1)
		return full("cluster.accept.total", a.Total)
	}
	if err := g.keep(ctx, &keeper{accept: a, by: m.Sender, parent: parent, name: r.Name, child: p, held: held, of: r.code()}, strategy); err != nil {
		a.Count.Here.Add(-1)
		return err
	}
	g.here++
	return nil
}

// keep starts a keeper, and passes the request on to it.
func (g *group) keep(ctx *host.Context, of *keeper, strategy supervision.Strategy) error {
	g.made++
	k, err := ctx.Spawn(strconv.FormatUint(g.made, 10), host.Behave("remote/keeper", func() host.Behaviour {
		k := *of
		return &k
	}).WithLifetime(supervision.Temporary).WithSupervision(strategy).WithLimits(host.Limits{Children: 1}))
	if err == nil {
		err = ctx.Watch(k)
	}
	if err == nil {
		err = ctx.Forward(k)
	}
	return err
}

// weight is about what a strategy takes in memory beside its texts, in bytes.
func weight(p *supervision.Plain) int64 {
	n := 96 * int64(len(p.First)+len(p.Rules))
	if p.Delays != nil {
		n += 8 * int64(len(p.Delays.Delays))
	}
	return n
}

func full(key string, most int) error {
	return fmt.Errorf("%w: the node has %d children of others already, see %s", host.ErrTooManyChildren, most, key)
}

// Decide implements host.Behaviour.
func (g *group) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return supervision.Stop, nil
}

// CannotRewind implements host.Behaviour.
func (g *group) CannotRewind() string { return "its children end with it" }

// Rewind implements host.Behaviour.
func (g *group) Rewind(*host.Context) bool { return false }

// End implements host.Behaviour.
func (g *group) End(*host.Context, host.End) {
	g.accept.Count.Here.Add(-g.here)
	g.here = 0
}

// code says which code a child has.
type code struct {
	digest      []byte
	module, typ string
}

func (r *request) code() code { return code{r.Digest, r.Module, r.Type} }

// keeper supervises one child, in the place of its parent, by the parent's strategy.
type keeper struct {
	accept     *Accept
	by, parent host.Ref // who stands for the child, and the child's parent
	name       string
	child      host.Props
	held       int64 // bytes that it keeps of the request
	of         code
	release    func() // of the code; nil: it is not kept
	ref        host.Ref
}

// Start implements host.Behaviour.
func (k *keeper) Start(*host.Context, *abi.Failure) *abi.Failure { return nil }

// Handle implements host.Behaviour.
func (k *keeper) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		switch {
		case !ok:
			return nil
		case m.Kind == abi.KindTerminated:
			ctx.Stop(ctx.Self()) // the child has ended, or it ends first
		case m.Kind == abi.KindMessage && k.ref.IsZero() && m.Sender.Equal(k.by):
			k.begin(ctx)
		case m.Kind == abi.KindMessage && m.Sender.Equal(k.ref):
			_ = ctx.Forward(k.parent) // to its parent, as it thinks
		case m.Kind == abi.KindMessage:
			ctx.Head().Refuse(host.ErrDenied)
		}
	}
}

func (k *keeper) begin(ctx *host.Context) {
	var child host.Ref
	err := ctx.Head().Hold(k.held)
	if err == nil && k.accept.Code != nil {
		k.release, err = k.accept.Code.Pin(k.of.digest, k.of.module, k.of.typ)
	}
	if err == nil {
		child, err = ctx.Spawn(k.name, k.child)
	}
	if err == nil {
		err = ctx.Watch(child)
	}
	if err == nil {
		err = ctx.Watch(k.by)
	}
	if err != nil {
		k.accept.refuse(ctx, err)
		ctx.Stop(ctx.Self())
		return
	}
	k.ref = child
	k.accept.Count.Started.Add(1)
	_ = ctx.Reply(answer{Child: child.UID()})
}

// Decide implements host.Behaviour.
func (k *keeper) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour.
func (k *keeper) CannotRewind() string { return "its child ends with it" }

// Rewind implements host.Behaviour.
func (k *keeper) Rewind(*host.Context) bool { return false }

// End implements host.Behaviour.
func (k *keeper) End(*host.Context, host.End) {
	if k.release != nil {
		k.release()
		k.release = nil
	}
}
