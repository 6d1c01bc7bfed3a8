package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/routees"
	"github.com/wasmactors/wasmactors/host/router"
)

// Routing makes an entry of the manifest a router: a pool of actors of the entry's type, or a
// group of actors that are named by their paths.
type Routing struct {
	Logic        string
	Pool         int      // 0: a group
	To           []string // of a group
	Resizer      *router.Resizer
	Hashing      router.Hashing
	Within       time.Duration
	Interval     time.Duration
	Questions    int
	Bytes        int64
	Managers     []string
	Admitted     []string
	Nodes        string      // the role of the nodes on which the routees are, "*": of all; empty: this node
	PerNode      int         // most routees of a pool on one of them; 0: any number
	own          router.Make // an embedder's logic
	line, column int
}

// logics are the ways to spread messages, by their names, and the keys of routing that go with
// each.
var logics = map[string]struct {
	make func(r *Routing) router.Make
	keys []string
}{
	"round-robin":      {make: func(*Routing) router.Make { return router.RoundRobin }},
	"random":           {make: func(*Routing) router.Make { return router.Random }},
	"smallest-mailbox": {make: func(*Routing) router.Make { return router.SmallestMailbox }},
	"balancing":        {make: func(*Routing) router.Make { return router.Balancing }},
	"broadcast":        {make: func(*Routing) router.Make { return router.Broadcast }},
	"scatter-gather": {
		func(r *Routing) router.Make { return router.ScatterGather(r.Within) },
		[]string{"within", "questions", "bytes"},
	},
	"tail-chopping": {
		func(r *Routing) router.Make { return router.TailChopping(r.Within, r.Interval) },
		[]string{"within", "interval", "questions", "bytes"},
	},
	"consistent-hashing": {
		func(r *Routing) router.Make { return router.ConsistentHashing(r.Hashing) },
		[]string{"header", "field", "virtual-nodes", "load"},
	},
}

// make is how the router spreads messages.
func (r *Routing) make() router.Make {
	if r.own != nil {
		return r.own
	}
	return logics[r.Logic].make(r)
}

func logicNames() []string { return slices.Sorted(maps.Keys(logics)) }

const onePath = `^/user(/[^/\s*?]+)+$`

var routingShape = object("details of a router",
	optional("header", pattern(none, "consistent-hashing: the header with the key; default: "+router.HeaderKey, "a header's name of 1 to 64 characters", `^[ -~]{1,64}$`)),
	optional("field", text(none, "consistent-hashing: the key of the map that a message is, whose value is its key")),
	optional("virtual-nodes", integer("consistent-hashing: points of each routee on the ring; default: 10", 1, router.MaxVirtualNodes)),
	optional("load", number("consistent-hashing: how many times the mean one routee may have waiting, above 1; beyond it a message goes to the next; default: any number", 1, 1000)),
	optional("within", duration("scatter-gather, tail-chopping: time for an answer; default: 5s")),
	optional("interval", duration("tail-chopping: time until another is asked; default: 10ms")),
	optional("questions", count("scatter-gather, tail-chopping: questions under way, of which one sender has a quarter at most; default: 1000", 100_000)),
	optional("bytes", sizeIn("scatter-gather, tail-chopping: bytes of questions that may be sent again, likewise; default: 16MiB", 1, 1<<40)),
	optional("nodes", pattern(none, "the routees are on the nodes of the cluster with this role, * for all nodes: those of a pool, as cluster.accept allows there; of a group the actors at its paths on each; default: on this node", "a role, or *", `^(\*|[A-Za-z0-9_.~-]{1,64})$`)),
	optional("per-node", count("pool, with nodes: how many of them may be on one node; default: any number", router.MaxRoutees)),
	optional("manage", list("paths of actors that may manage it: broadcast, add and remove routees, change their number", pattern(none, "a path", pathWhat, pathRule))),
	optional("admit", list("paths of actors that those may add as routees", pattern(none, "a path", pathWhat, pathRule))),
)

var resizerShape = object("lets the size of a pool follow its load",
	optional("lower", count("the fewest routees; default: 1", router.MaxRoutees)),
	optional("upper", count("the most; default: 10", router.MaxRoutees)),
	optional("pressure", integer("when a routee is under pressure. 0: busy; 1: busy with something waiting; more: so many wait; default: 1", 0, 1<<24)),
	optional("ramp-up", number("part of the routees that is added when all are under pressure; default: 0.2", 0, 100)),
	optional("backoff-threshold", number("part under pressure below which routees are removed; 0: never; default: 0.3", 0, 1)),
	optional("backoff-rate", number("part that is removed then; default: 0.1", 0, 1)),
	optional("messages", count("messages between two looks; default: 10", 1<<30)),
)

// routingFields are the keys of an actor that make it a router.
func routingFields() []field {
	return []field{
		optional("pool", count("how many actors of the type the name stands for; the name is that of their router", router.MaxRoutees)),
		optional("to", list("instead of a type: paths of actors that the name stands for; the name is that of their router", pattern(none, "a path", "the path of one actor such as /user/a/b", onePath))),
		optional("router", enumWith(wordsLogics, "pool, to: which of them gets a message; default: round-robin", logicNames()...)),
		optional("routing", routingShape),
		optional("resizer", resizerShape),
	}
}

// routing reads the keys that make an actor a router; nil: it is none.
func (c *checker) routing(name string, v view) *Routing {
	r := &Routing{Logic: v.text("router"), Pool: int(v.count("pool", 0)), To: v.texts("to")}
	if r.Logic == "" {
		r.Logic = "round-robin"
	}
	r.own = c.words.Logics[r.Logic]
	d := v.object("routing")
	r.Hashing = router.Hashing{Header: d.text("header"), Field: d.text("field"), VirtualNodes: d.whole("virtual-nodes", 0), Load: d.number("load", 0)}
	r.Within, r.Interval = d.duration("within", 0), d.duration("interval", 0)
	r.Questions, r.Bytes = int(d.count("questions", 0)), int64(d.size("bytes", 0))
	r.Managers, r.Admitted = d.texts("manage"), d.texts("admit")
	r.Nodes, r.PerNode = d.text("nodes"), int(d.count("per-node", 0))
	r.Resizer = c.resizer(v.object("resizer"))
	pool, to := v.get("pool"), v.get("to")
	switch {
	case !pool.given() && !to.given():
		for _, k := range []string{"router", "routing", "resizer"} {
			if x := v.get(k); x.given() {
				c.At(x.n, "%s needs pool (actors of the type) or to (paths of actors)", k)
			}
		}
		return nil
	case pool.given() && to.given():
		c.At(to.n, "either pool or to, not both")
		return nil
	case to.given() && len(r.To) == 0:
		c.At(to.n, "to must name one actor at least")
	}
	r.line, r.column = pool.at(to)
	c.wrongKeys(r, d)
	c.withoutMeaning(name, v, to.given(), r)
	c.overNodes(r, v, d)
	if x := d.get("load"); x.given() && r.Hashing.Load <= 1 {
		c.At(x.n, "routing.load must be above 1, which is the mean")
	}
	return r
}

// at is the place of the one that is given.
func (v view) at(other view) (line, column int) {
	n := v.n
	if n == nil {
		n = other.n
	}
	return n.Line, n.Column
}

// overNodes reports what cannot be said of a router whose routees are on several nodes.
func (c *checker) overNodes(r *Routing, v, d view) {
	if x := d.get("per-node"); x.given() && (r.Nodes == "" || r.Pool == 0) {
		c.At(x.n, "routing.per-node needs pool and routing.nodes: it is for pools on several nodes")
	}
	if r.Nodes == "" {
		return
	}
	const unknown = "what waits on other nodes (routing.nodes) is not known"
	if r.Logic == "smallest-mailbox" || r.Logic == "balancing" {
		c.At(v.get("router").n, "router: %s cannot be combined with routing.nodes: what waits on other nodes is not known", r.Logic)
	}
	if load := d.get("load"); load.given() {
		c.At(load.n, "routing.load: %s", unknown)
	}
	if x := v.get("resizer"); x.given() && r.Pool > 0 {
		c.At(x.n, "resizer: %s", unknown)
	}
	if r.Pool == 0 {
		return
	}
	for _, k := range []string{"lifetime", "crashed-message", "mailbox", "dispatcher", "durable"} {
		if x := v.get(k); x.given() {
			c.At(x.n, "%s cannot be combined with routing.nodes: it does not reach actors on other nodes", k)
		}
	}
	if x := v.object("supervision"); x.given() {
		if _, err := c.peekSupervision(x).Plain(); err != nil {
			c.At(x.n, "supervision: a routee on another node (routing.nodes) is supervised there, without the router: %v", err)
		}
	}
}

// wrongKeys reports keys of routing that do not apply to the logic.
func (c *checker) wrongKeys(r *Routing, d view) {
	for _, k := range []string{"header", "field", "virtual-nodes", "load", "within", "interval", "questions", "bytes"} {
		x := d.get(k)
		if !x.given() || slices.Contains(logics[r.Logic].keys, k) {
			continue
		}
		var goes []string
		for _, name := range logicNames() {
			if slices.Contains(logics[name].keys, k) {
				goes = append(goes, name)
			}
		}
		c.At(x.n, "routing.%s needs router: %s", k, strings.Join(goes, " or "))
	}
	if x := d.get("admit"); x.given() && len(r.Managers) == 0 {
		c.At(x.n, "routing.admit needs manage: it limits what the managers may add")
	}
}

// withoutMeaning reports keys of an actor that do not apply to a router.
func (c *checker) withoutMeaning(name string, v view, group bool, r *Routing) {
	type reason struct{ key, why string }
	reasons := []reason{
		{"children", "a router's children are its routees, which may spawn their own"},
		{"resend", "the answers of its routees would have to be waited for"},
	}
	if group {
		if r.Logic == "balancing" {
			c.At(v.get("router").n, "router: balancing needs pool: the actors of a group have mailboxes of their own")
		}
		for _, k := range []string{"type", "args", "crashed-message", "lifetime", "capabilities", "supervision", "mailbox", "dispatcher"} {
			reasons = append(reasons, reason{k, "the actors that it sends to have their own"})
		}
		reasons = append(reasons, reason{"resizer", "it makes no actors"})
	} else if r.Logic == "balancing" {
		reasons = append(reasons, reason{"mailbox", "its routees share a queue"})
	}
	for _, x := range reasons {
		if n := v.get(x.key); n.given() {
			c.At(n.n, "%s has no meaning for the router %s: %s", x.key, name, x.why)
		}
	}
	if x := v.object("capabilities").get("metrics"); x.given() && !group {
		c.At(x.n, "capabilities.metrics are for single actors, not for those of a pool")
	}
}

// resizer reads the resizer of a pool; nil: it has none.
func (c *checker) resizer(v view) *router.Resizer {
	r := router.DefaultResizer()
	r.Lower, r.Upper = int(v.count("lower", uint64(r.Lower))), int(v.count("upper", uint64(r.Upper)))
	r.Pressure, r.Every = v.whole("pressure", r.Pressure), int(v.count("messages", uint64(r.Every)))
	r.RampUp, r.BackoffThreshold, r.BackoffRate = v.number("ramp-up", r.RampUp), v.number("backoff-threshold", r.BackoffThreshold), v.number("backoff-rate", r.BackoffRate)
	if !v.given() {
		return nil
	}
	if err := r.Check(); err != nil {
		c.At(v.n, "%s", strings.TrimPrefix(err.Error(), "router: "))
	}
	return &r
}

// routingText is what the manifest says about routing, to be compared.
func routingText(v view) string {
	var parts []string
	for _, f := range routingFields() {
		parts = append(parts, canonical(v.get(f.Name).n))
	}
	return strings.Join(parts, " ")
}

// circles reports groups that send to themselves, possibly through others.
func (c *checker) circles(m *Manifest) {
	to := map[string]*Actor{}
	m.Walk(func(path string, a *Actor) {
		if a.Routing != nil && a.Routing.Pool == 0 {
			to[path] = a
		}
	})
	for _, start := range slices.Sorted(maps.Keys(to)) {
		seen := map[string]bool{}
		var reaches func(path string) bool
		reaches = func(path string) bool {
			a := to[path]
			if a == nil || seen[path] {
				return false
			}
			seen[path] = true
			for _, next := range a.Routing.To {
				if next == start || reaches(next) {
					return true
				}
			}
			return false
		}
		if reaches(start) {
			r := to[start].Routing
			c.Found = append(c.Found, Diagnostic{File: c.File, Line: r.line, Column: r.column, Message: fmt.Sprintf("the router %s sends to itself, in the end: a message would never arrive", start)})
		}
	}
}

// kind is what a router is shown as.
func (r *Routing) kind() string { return "router/" + r.Logic }

// Shown is what the entry is, for a person: its type, or what its router does.
func (a *Actor) Shown() string {
	typ := a.Module + "/" + a.Type
	switch r := a.Routing; {
	case a.Keyed != nil && a.Keyed.Single:
		return "a singleton of the cluster, " + typ
	case a.Keyed != nil:
		return "keyed, for each key an actor " + typ
	case r == nil:
		return typ
	case r.Pool == 0:
		return fmt.Sprintf("%s to %s%s", r.kind(), strings.Join(r.To, ", "), r.where())
	case r.Resizer != nil:
		return fmt.Sprintf("%s, a pool of %d to %d of %s", r.kind(), min(r.Pool, r.Resizer.Lower), r.Resizer.Upper, typ)
	default:
		return fmt.Sprintf("%s, a pool of %d of %s%s", r.kind(), r.Pool, typ, r.where())
	}
}

// where says on which nodes the routees are, if not on this one.
func (r *Routing) where() string {
	switch r.Nodes {
	case "":
		return ""
	case "*":
		return " on all nodes"
	}
	return " on nodes with the role " + r.Nodes
}

// routed makes the props of a router. Its supervision is also that which its routees apply to their own
// children.
func (b *Bundle) routed(a *Actor) host.Props {
	r := a.Routing
	var c router.Config
	make, over := r.make(), r.Nodes != "" && b.node != nil
	role := strings.TrimPrefix(r.Nodes, "*")
	l := a.Limits
	l.Tree = host.TreeLimits{}
	switch {
	case r.Pool > 0 && over:
		c = router.Pool(r.Pool, host.Props{}, make).WithNodes(routees.Pool(b.node, role, a.Name, b.onNode(a, l)), r.PerNode)
	case r.Pool > 0:
		c = router.Pool(r.Pool, b.single(a).WithLimits(l).WithLifetime(a.Lifetime), make).WithSupervision(a.Supervision)
	case over:
		c = router.Group(make).WithElsewhere(routees.Group(b.node, role, r.To...))
	default:
		c = router.Group(make, r.To...)
	}
	if r.Resizer != nil {
		c = c.WithResizer(*r.Resizer)
	}
	limits := host.Limits{Mailbox: a.Limits.Mailbox, MailboxBytes: a.Limits.MailboxBytes, Tree: a.Limits.Tree}
	return c.WithName(r.kind()).WithManagers(r.Managers...).WithAdmitted(r.Admitted...).
		WithQuestions(r.Questions, r.Bytes).WithLimits(limits).Props().WithSignificant(a.Significant)
}

// danglingRoutees reports paths of routers that match no actor of the bundle.
func (c *checker) danglingRoutees(actor view, paths []string, spawners map[string]bool) {
	if !actor.object("routing").has("nodes") { // those on other nodes may be of other bundles
		for _, p := range actor.items("to") {
			c.danglingAt(p.n, "to", paths, spawners)
		}
	}
	for _, p := range actor.object("keyed").items("manage") {
		c.danglingAt(p.n, "keyed.manage", paths, spawners)
	}
	for _, p := range actor.object("routing").items("manage") {
		c.danglingAt(p.n, "routing.manage", paths, spawners)
	}
	for _, p := range actor.object("routing").items("admit") {
		c.danglingAt(p.n, "routing.admit", paths, spawners)
	}
}
