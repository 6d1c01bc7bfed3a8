package remote

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// Defaults of an [Accept].
const (
	DefaultMax    = 100
	DefaultTotal  = 1000
	DefaultMemory = 256 << 20 // bytes
)

// Accept says what actors of other nodes may start on this one. Nothing of what a request asks for goes beyond it.
type Accept struct {
	Node Node
	// From are the roles of which a parent's node must have one; empty: any node.
	From []string
	// Max bounds the children that one node has here at a time, Total those of all nodes. 0: the defaults.
	Max, Total int
	// Memory bounds the bytes that the host holds for the children of one node and all below them; 0: DefaultMemory.
	Memory int64
	// Send are the paths that children may send to by path, if their parents may, too. Services are not among them.
	Send []string
	// Limits are the most that a child gets. Zero fields are the host's defaults.
	Limits host.Limits
	// Find finds what is to be started: the props with the code and nothing else, and the types that a child may spawn here if its parent
	// may spawn them. An error refuses the child; it is shown to the parent. ErrLacks says that no module has the code. Any goroutine may call it, and it must not block.
	Find func(digest []byte, module, typ string) (p host.Props, spawn []string, err error)
	// Options reads the options of a spawn; nil: a spawn with options is refused.
	Options func([]byte) (host.SpawnOptions, error)
	// Code takes code that no module here has from the parent's node; nil: such children are refused.
	Code Code
	// Refused is told what of a node was not taken; nil: nobody is. It must not block.
	Refused func(node uint16, why string)
	// Count is told how many children there are; nil: nobody is told.
	Count *Count

	fetching *atomic.Int32 // fetches that are under way
}

// Count counts children of other nodes. The fields may be read at any time.
type Count struct {
	Here             atomic.Int64 // now
	Started, Refused atomic.Uint64
	Fetched          atomic.Uint64 // modules
}

// Props are the props of the door, which System.SpawnService starts under the name [Door].
func (a Accept) Props() host.Props {
	if a.Max <= 0 {
		a.Max = DefaultMax
	}
	if a.Total <= 0 {
		a.Total = DefaultTotal
	}
	if a.Memory <= 0 {
		a.Memory = DefaultMemory
	}
	if a.Count == nil {
		a.Count = &Count{}
	}
	a.fetching = &atomic.Int32{}
	return host.Behave(Door, func() host.Behaviour { return &door{accept: &a} })
}

// member is the node of a parent, if its actors may start children here.
func (a *Accept) member(number uint16) error {
	if !a.Node.Acting() {
		return host.ErrNodeLost
	}
	members := a.Node.Members() // once: the next list may be another one
	i := slices.IndexFunc(members, func(m cluster.Member) bool { return m.Number == number })
	if i < 0 {
		return fmt.Errorf("remote: node %d is not known", number)
	}
	m := members[i]
	if len(a.From) > 0 && !slices.ContainsFunc(a.From, m.HasRole) {
		return fmt.Errorf("%w: cluster.accept.from names roles that node %s has not", host.ErrDenied, m.Name)
	}
	return nil
}

// props are those of the child that is asked for, and how many bytes its options take as long as it lives.
func (a *Accept) props(r *request) (p host.Props, held int64, err error) {
	p, spawn, err := a.Find(r.Digest, r.Module, r.Type)
	if err != nil {
		return p, 0, err
	}
	limits := r.Limits.narrow(a.Limits)
	p = p.WithLimits(limits).WithCapabilities(host.Capabilities{Send: both(a.Send, r.Send, matchPath), Spawn: both(spawn, r.Spawn, glob.Match)})
	if len(r.Args) > 0 {
		p = p.WithArgs(host.Raw(r.Args))
	}
	if len(r.Options) == 0 {
		return p, 0, nil
	}
	if a.Options == nil {
		return p, 0, fmt.Errorf("%w: this node does not support spawn options", host.ErrBadProps)
	}
	o, err := a.Options(r.Options)
	switch {
	case err != nil:
		return p, 0, fmt.Errorf("%w: %w", host.ErrBadProps, err)
	case o.MailboxLimits.Messages > limits.Mailbox || o.MailboxLimits.Bytes > limits.MailboxBytes || o.MailboxWait > host.MaxSpawnWait:
		return p, 0, fmt.Errorf("%w: the mailbox may not be larger than this node allows", host.ErrBadProps)
	case o.Dispatcher.Throughput() > host.DefaultThroughput:
		return p, 0, fmt.Errorf("%w: dispatcher.throughput: %d, at most %d for children of other nodes", host.ErrBadProps, o.Dispatcher.Throughput(), host.DefaultThroughput)
	}
	if o.MailboxLimits.Messages > 0 {
		limits.Mailbox = o.MailboxLimits.Messages
	}
	if o.MailboxLimits.Bytes > 0 {
		limits.MailboxBytes = o.MailboxLimits.Bytes
	}
	p = p.WithLimits(limits).WithLifetime(o.Lifetime).WithCrashedMessage(o.Crashed).WithMailbox(o.Mailbox).WithDispatcher(o.Dispatcher)
	if o.Supervision != nil {
		p = p.WithSupervision(*o.Supervision)
	}
	return p, max(o.Held, 0), nil
}

// both are the patterns of each list that the other one covers for certain: the same text is there, or they have no wildcard and match.
func both(a, b []string, match func(pattern, text string) bool) (all []string) {
	add := func(from, by []string) {
		for _, x := range from {
			covered := slices.ContainsFunc(by, func(y string) bool { return y == x || !glob.HasMeta(x) && match(y, x) })
			if covered && !slices.Contains(all, x) {
				all = append(all, x)
			}
		}
	}
	add(a, b)
	add(b, a)
	return all
}

func matchPath(pattern, path string) bool {
	return glob.MatchAnyPath(glob.CompilePaths([]string{pattern}), strings.Split(strings.TrimPrefix(path, "/"), "/"))
}

// door takes the requests, and passes each to the group of the parent's node.
type door struct {
	accept *Accept
}

// Start implements host.Behaviour.
func (d *door) Start(*host.Context, *abi.Failure) *abi.Failure { return nil }

// Handle implements host.Behaviour.
func (d *door) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		if v, _ := abi.FindHeader(m.Headers, Header); m.Kind != abi.KindMessage || m.Correlation == 0 || string(v) != version || m.Sender.IsZero() {
			ctx.Head().Unhandled()
			continue
		}
		group, err := d.group(ctx, m.Sender.UID().Node())
		if err == nil {
			err = ctx.Head().Pass(group)
		}
		if err != nil {
			d.accept.refuse(ctx, err)
		}
	}
}

func (a *Accept) refuse(ctx *host.Context, why error) {
	a.Count.Refused.Add(1)
	_ = ctx.Reply(refusal(why))
}

// group is the actor that has the children of a node.
func (d *door) group(ctx *host.Context, number uint16) (host.Ref, error) {
	if err := d.accept.member(number); err != nil {
		return host.Ref{}, err
	}
	name, sys := Door+"."+strconv.Itoa(int(number)), ctx.System()
	g, err := sys.Lookup("/system/" + name) // each time: the one before may have been stopped
	if err != nil {
		a := d.accept
		g, err = sys.SpawnService(name, host.Behave("remote/group", func() host.Behaviour { return &group{accept: a, node: number} }).
			WithLimits(host.Limits{Children: a.Max + mostFetches, Watches: 2*a.Max + mostFetches, Tree: host.TreeLimits{Memory: a.Memory}}).
			WithSupervision(supervision.Stopping().WithOtherwise(supervision.Stop).WithDecider(nil)))
	}
	return g, err
}

// Decide implements host.Behaviour.
func (d *door) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour.
func (d *door) CannotRewind() string { return "" }

// Rewind implements host.Behaviour.
func (d *door) Rewind(*host.Context) bool { return true }

// End implements host.Behaviour.
func (d *door) End(*host.Context, host.End) {}
