package router

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// A router may have routees on other nodes of a cluster. This package knows no cluster: package host/cluster/routees tells it what
// there is.

// Elsewhere says which routees a group has besides those of its paths. Any goroutine may call its methods.
type Elsewhere interface {
	// Watch has changed called when the routees may be others, until stop is called. changed does not block.
	Watch(changed func()) (stop func())
	// Routees are those of now, in the order in which the logic gets them. No two have one name. system is the name of the router's
	// system, without a node.
	Routees(system string) []Far
}

// Far is the path of a routee, which may have a node: wasm://shop@3/user/a.
type Far struct {
	// Name is what the routee is called: /user/a@b for one on node b. It stays when the node returns under another number.
	Name string
	Path string
}

// Nodes says where the routees of a pool may run. Any goroutine may call its methods.
type Nodes interface {
	// Watch has changed called when the nodes may be others, until stop is called. changed does not block.
	Watch(changed func()) (stop func())
	// Spots are the nodes of now; of those that are equally suited the first gets the next routee.
	Spots() []Spot
	// Worker makes the props of a routee that runs on a node.
	Worker(parent host.Ref, node string) (host.Props, error)
}

// Spot is a node.
type Spot struct {
	Node string
	Zone string // where it is, such as a room or a building; "": not known
}

// WithElsewhere gives a group routees on other nodes. What is waiting there is not known here, so neither SmallestMailbox nor
// a bound of ConsistentHashing's load can be its logic.
func (c Config) WithElsewhere(e Elsewhere) Config { c.elsewhere = e; return c }

// WithNodes has the routees of a pool run on several nodes, at most most on one (0: any number): each in the zone that has the
// fewest, and there on the node that has the fewest. The pool has the size that it was given, or as many as the nodes take. A routee
// that ends is begun anew: at once on another node, or on the same one after a second, later up to 30 s. Worker's props take the
// place of the pool's. Such a pool has neither a resizer nor a logic that looks at mailboxes, see [Config.WithElsewhere].
func (c Config) WithNodes(n Nodes, most int) Config { c.nodes, c.most = n, most; return c }

// checkNodes says what cannot be together with routees on other nodes.
func (c Config) checkNodes() (errs []error) {
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("router: "+format, args...)) }
	switch {
	case c.elsewhere == nil && c.nodes == nil:
		return nil
	case c.nodes != nil && !c.pool:
		add("a group starts no routees on nodes")
	case c.elsewhere != nil && c.pool:
		add("the routees of a pool are its own")
	case c.resizer != nil:
		add("a pool over several nodes cannot have a resizer: what waits on other nodes is not known")
	case c.most < 0:
		add("at most %d routees on a node, must be at least 0", c.most)
	case c.make == nil:
	default:
		switch l := c.make(0).(type) {
		case smallest, *balancing:
			add("the logic looks at mailboxes, and those of other nodes are not known")
		case *hashing:
			if l.Load != 0 {
				add("what waits on other nodes is not known, so it cannot be bounded")
			}
		}
	}
	return errs
}

// opRenew is what the router tells itself when nodes have come or gone.
const opRenew = "renew"

// Delays between attempts to start routees on nodes.
const (
	leastRefill = time.Second
	mostRefill  = 30 * time.Second
)

// refillTimer is the key of the timer of attempts; questions have lesser ones.
const refillTimer = 1 << 62

// overNodes is what a head knows of several nodes.
type overNodes struct {
	stop  func()             // of the watch
	stale atomic.Bool        // nodes have come or gone
	far   map[string]farPath // of a group: its routees elsewhere, by name

	on      map[abi.Ref]string // of a pool: the nodes of its routees
	avoided map[string]bool    // of a pool: nodes on which a routee has ended since the last attempt
	delay   time.Duration      // before the next attempt
	last    time.Time          // when a routee has ended
	waits   bool               // for the timer
}

// farPath is the path of a routee elsewhere, and its place among those.
type farPath struct {
	path string
	at   int
}

// beginOverNodes has the head told of nodes that come and go.
func (h *head) beginOverNodes(ctx *host.Context) {
	var watch func(func()) func()
	switch {
	case h.elsewhere != nil:
		watch = h.elsewhere.Watch
	case h.nodes != nil:
		watch = h.nodes.Watch
	default:
		return
	}
	o := &overNodes{on: map[abi.Ref]string{}, avoided: map[string]bool{}, delay: leastRefill}
	h.over = o
	sys, self := ctx.System(), ctx.Self()
	o.stale.Store(true)
	o.stop = watch(func() {
		if !o.stale.Swap(true) {
			_ = sys.TryTell(self, headed(nil, Header, opRenew)) // if there is no room, the next message does it
		}
	})
}

// renew goes by the nodes that there are now.
func (h *head) renew(ctx *host.Context) {
	switch {
	case h.over == nil || !h.over.stale.Swap(false):
	case h.elsewhere != nil:
		h.renewElsewhere(ctx)
	case h.nodes != nil:
		h.over.delay = leastRefill
		clear(h.over.avoided)
		h.fill(ctx)
	}
}

func (h *head) renewElsewhere(ctx *host.Context) {
	all := h.elsewhere.Routees(ctx.System().Name())
	all = all[:min(len(all), MaxRoutees-len(h.paths))]
	before, far := h.over.far, map[string]farPath{}
	for i, f := range all {
		far[f.Name] = farPath{f.Path, i}
	}
	gone := func(name string) bool { return before[name].path != far[name].path }
	h.missing = slices.DeleteFunc(h.missing, gone)
	h.routees = slices.DeleteFunc(h.routees, func(r Routee) bool { return gone(r.Name) })
	for _, f := range all {
		if before[f.Name].path != f.Path {
			h.missing = append(h.missing, f.Name)
		}
	}
	h.over.far = far
	h.refresh(ctx)
	h.changed()
}

// elsewhereAt is where the routee of a name is, if it is one of those elsewhere.
func (h *head) elsewhereAt(name string) (f farPath, ok bool) {
	if h.over != nil {
		f, ok = h.over.far[name]
	}
	return f, ok
}

// target is the path of a routee that is called so.
func (h *head) target(name string) string {
	if f, ok := h.elsewhereAt(name); ok {
		return f.path
	}
	return name
}

// place is where a routee that has a path comes among the others.
func (h *head) place(name string) int {
	if f, ok := h.elsewhereAt(name); ok {
		return len(h.paths) + f.at
	}
	return slices.Index(h.paths, name)
}

// nodeOf is the node in the name of a pool's routee, NODE~n.
func nodeOf(name string) string { return name[:max(strings.LastIndexByte(name, '~'), 0)] }

// fill starts routees on nodes until there are enough, or none has room.
func (h *head) fill(ctx *host.Context) {
	spots := h.nodes.Spots()
	zones := map[string]string{}
	for _, x := range spots {
		zones[x.Node] = x.Zone
	}
	on, in, own := map[string]int{}, map[string]int{}, 0
	count := func(node string) {
		on[node]++
		in[zones[node]]++
		own++
	}
	for _, r := range h.routees {
		if r.own() {
			count(h.over.on[r.Ref.UID()])
		}
	}
	for own < h.size {
		free := slices.DeleteFunc(slices.Clone(spots), func(x Spot) bool { return h.over.avoided[x.Node] || h.most > 0 && on[x.Node] >= h.most })
		if len(free) == 0 {
			break
		}
		node := slices.MinFunc(free, func(a, b Spot) int {
			return cmp.Or(cmp.Compare(in[a.Zone], in[b.Zone]), cmp.Compare(on[a.Node], on[b.Node]))
		}).Node
		if err := h.spawnOn(ctx, node); err != nil {
			h.avoid(ctx, node)
			continue
		}
		count(node)
	}
	h.changed()
}

// spawnOn makes a routee on a node.
func (h *head) spawnOn(ctx *host.Context, node string) error {
	worker, err := h.nodes.Worker(ctx.Self(), node)
	if err != nil {
		return err
	}
	for {
		h.next++
		name := fmt.Sprintf("%s~%d", node, h.next-1)
		if !abi.ValidName([]byte(name)) {
			return fmt.Errorf("router: the name of node %s is too long for routees", node)
		}
		ref, err := ctx.Spawn(name, worker)
		switch {
		case err == host.ErrNameTaken:
			continue
		case err != nil:
			return err
		}
		h.over.on[ref.UID()] = node
		h.join(Routee{Ref: ref, Name: name, sys: ctx.System()})
		return ctx.Watch(ref)
	}
}

// endedOn handles the end of a routee; leaves says that the pool has removed it.
func (h *head) endedOn(ctx *host.Context, ref host.Ref, leaves bool) {
	if node := h.over.on[ref.UID()]; node != "" && !leaves {
		h.avoid(ctx, node)
	}
	delete(h.over.on, ref.UID())
	h.fill(ctx)
}

// avoid has no routee started on a node, on which one has ended, before the next attempt.
func (h *head) avoid(ctx *host.Context, node string) {
	o, now := h.over, ctx.Now()
	if now.Sub(o.last) > 2*mostRefill {
		o.delay = leastRefill
	}
	o.avoided[node], o.last = true, now
	if !o.waits {
		o.waits = ctx.After(refillTimer, o.delay, 0, nil) == nil
		o.delay = min(2*o.delay, mostRefill)
	}
}

// retry is the time for the next attempt.
func (h *head) retry(ctx *host.Context) {
	h.over.waits = false
	clear(h.over.avoided)
	h.fill(ctx)
}
