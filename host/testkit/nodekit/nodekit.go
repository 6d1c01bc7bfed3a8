// Package nodekit tests Go code on several nodes of a cluster: the real nodes of package cluster over a simulated network, in one virtual
// time and under a seed. Nodes are killed, started, paused and parted as a test says.
//
//	c := nodekit.New(t, []string{"a", "b"}, func(n *nodekit.Node) {
//		n.Kit.Spawn("echo", host.Func(echo))
//	})
//	p := c.Node("a").Kit.Probe("asker")
//	p.Ask(c.Node("b").Kit.At("/user/echo"), 5)
//	p.Expect(5)
//	c.Kill("b")
//
// Each node has a kit of package testkit for each of its lives. All that a kit waits for lets all nodes run.
package nodekit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/simnet"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/testkit"
)

// Lease is how long a node may act without renewing its entry, and how long others wait for one that is silent.
const Lease = cluster.DefaultLease

const (
	// joinTime is how long nodes have to join, in virtual time.
	joinTime = 30 * time.Second
	// joinAgain is after which time a node that could not join tries again.
	joinAgain = time.Second
)

// Option changes how a cluster is made.
type Option func(*Cluster)

// Seed chooses other random numbers, for nodes, actors and the network; the default is 1.
func Seed(seed uint64) Option { return func(c *Cluster) { c.seed = seed } }

// Roles are those of a node.
func Roles(name string, roles ...string) Option {
	return func(c *Cluster) { c.roles[name] = append(c.roles[name], roles...) }
}

// Zone is that of a node.
func Zone(name, zone string) Option { return func(c *Cluster) { c.zones[name] = zone } }

// Kits are options of all kits: limits, strategies, how long expectations wait.
func Kits(opts ...testkit.Option) Option {
	return func(c *Cluster) { c.opts = append(c.opts, opts...) }
}

// Cluster is several nodes under test. It and its nodes are for the goroutine of the test.
type Cluster struct {
	t     testing.TB
	seed  uint64
	roles map[string][]string
	zones map[string]string
	opts  []testkit.Option
	start func(*Node)
	group *testkit.Group
	world *simnet.World
	nodes []*Node
	parts []simnet.Part
}

// Node is a node, whether it runs or not. Kit and Cluster are those of its present life.
type Node struct {
	Kit     *testkit.Kit
	Cluster *cluster.Node

	name    string
	of      *Cluster
	machine *simnet.Machine
	self    cluster.Member
	lives   uint64
	state   state
	err     error  // why it could not join
	pauses  uint64 // so far
}

// state is what a node does.
type state uint8

const (
	ended   state = iota
	joining       // it asks for a number
	joined        // it has one, and is to get a system
	runs          // it has a system
	lost          // it must not act any more, and is to join again
)

// New starts nodes, and waits until each has joined and sees all others. start is called for each life of a node when its kit is there: it
// spawns the actors that the node has. It must not wait for anything, since nodes that were lost and have joined again are started in the
// middle of whatever a test waits for. Names have letters, digits, _ and -. The nodes end with the test.
func New(t testing.TB, names []string, start func(*Node), opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t, seed: 1, roles: map[string][]string{}, zones: map[string]string{}, start: start, group: testkit.NewGroup()}
	for _, f := range opts {
		f(c)
	}
	c.world = simnet.On(c.group.Clock(), c.seed)
	c.group.Between(c.tend)
	for i, name := range names {
		if name == "" || strings.Trim(name, simnet.NameLetters) != "" || name == simnet.Directory || slices.Contains(names[:i], name) {
			t.Fatalf("nodekit: the node %q: a name has letters, digits, _ and -, is not %s, and comes once", name, simnet.Directory)
		}
		c.nodes = append(c.nodes, &Node{name: name, of: c})
	}
	for _, name := range append(keysOf(c.roles), keysOf(c.zones)...) {
		c.Node(name)
	}
	for _, n := range c.nodes {
		c.begin(n)
	}
	c.Settle(joinTime)
	t.Cleanup(func() {
		for _, n := range c.nodes {
			c.over(n, "the test is over")
		}
	})
	return c
}

func keysOf[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Node is the node with a name.
func (c *Cluster) Node(name string) *Node {
	c.t.Helper()
	i := slices.IndexFunc(c.nodes, func(n *Node) bool { return n.name == name })
	if i < 0 {
		c.t.Fatalf("nodekit: there is no node %q", name)
	}
	return c.nodes[i]
}

// Nodes are all nodes, in the order of their names in [New].
func (c *Cluster) Nodes() []*Node { return slices.Clone(c.nodes) }

// Advance lets time pass on all nodes.
func (c *Cluster) Advance(d time.Duration) {
	c.t.Helper()
	c.until(d, func() bool { return false })
}

// Await lets time pass on all nodes until a condition holds, for d at most; then the test fails.
func (c *Cluster) Await(d time.Duration, what string, is func() bool) {
	c.t.Helper()
	c.await(what, d, is)
}

// Kill ends a node at once, as a loss of power does: nothing that it does from then on reaches anybody. Its kit ends. The stop
// functions of its actors are called still, which those of a real node are not.
func (c *Cluster) Kill(name string) {
	c.t.Helper()
	n := c.Node(name)
	c.mustRun(n)
	c.over(n, "its node "+name+" was killed")
}

// Leave has a node leave: it says so to the others, which do not wait for its lease. What its regions of keys have is to be drained before, if that
// is wanted.
func (c *Cluster) Leave(name string) {
	c.t.Helper()
	n := c.Node(name)
	c.mustRun(n)
	left := false
	n.Cluster.Leave(func(error) { left = true })
	c.await("the node "+name+" has left", joinTime, func() bool { return left })
	c.over(n, "its node "+name+" has left")
}

// Settle lets time pass until all nodes that have not ended act and see each other, for d at most; then the test fails.
func (c *Cluster) Settle(d time.Duration) {
	c.t.Helper()
	c.await("each node sees all others", d, c.whole)
}

// Start begins a new life of a node that has ended, and waits until it has joined. Others may not see it yet, see [Cluster.Settle].
func (c *Cluster) Start(name string) {
	c.t.Helper()
	n := c.Node(name)
	if n.state != ended {
		c.t.Fatalf("nodekit: the node %s runs", name)
	}
	c.begin(n)
	c.await("the node "+name+" has joined", joinTime, func() bool { return n.state == runs })
}

// Pause has a node stand still for a time, as SIGSTOP does: its clock goes on, and what it is sent waits. Beyond [Lease] it is lost: then its
// kit ends, and it joins again as another life.
func (c *Cluster) Pause(name string, d time.Duration) {
	c.t.Helper()
	n := c.Node(name)
	c.mustRun(n)
	n.pauses++
	life, number := n.lives, n.pauses
	n.machine.Pause()
	c.group.Clock().AfterFunc(d, func() {
		if n.lives == life && n.pauses == number {
			n.machine.Resume()
		}
	})
}

// Part parts nodes: "a, b | c" are two sides that do not reach each other, "a -> b" does not let a reach b. The directory is where more than
// half of all nodes are, or where the part says: "a, directory | b". Parts add up until [Cluster.Heal].
func (c *Cluster) Part(text string) {
	c.t.Helper()
	p, err := simnet.ParsePart(text)
	if err != nil {
		c.t.Fatalf("nodekit: %v", err)
	}
	for _, name := range slices.Concat(p.Sides...) {
		if name != simnet.Directory {
			c.Node(name)
		}
	}
	c.parts = append(c.parts, p)
	c.cut()
}

// Heal ends all parts.
func (c *Cluster) Heal() { c.parts = nil; c.cut() }

func (c *Cluster) cut() {
	var all []simnet.Named
	for _, n := range c.nodes {
		if n.state != ended {
			all = append(all, simnet.Named{Name: n.name, Machine: n.machine})
		}
	}
	c.world.CutBy(c.parts, len(c.nodes), all)
}

// Name is the node's.
func (n *Node) Name() string { return n.name }

// Log is the replicated log of the cluster, as this node reaches it: for package journal.
func (n *Node) Log() cluster.Log { return n.machine.Log() }

// Clock is the clock of the node's machine.
func (n *Node) Clock() host.Clock { return n.machine }

// Sharing is how services of the node reach what all nodes share, for service.Env.
func (n *Node) Sharing() service.Sharing {
	machine, node := n.machine, n.Cluster
	return func(_ context.Context, name string) (service.Shared, error) {
		return machine.Shared(name, Lease, node.Acting), nil
	}
}

func (c *Cluster) mustRun(n *Node) {
	c.t.Helper()
	if n.state == ended {
		c.t.Fatalf("nodekit: the node %s does not run", n.name)
	}
}

// begin begins a life of a node.
func (c *Cluster) begin(n *Node) {
	n.lives++
	n.state, n.self, n.err = joining, cluster.Member{}, nil
	n.machine = c.world.ExactMachine(func() uint16 { return n.self.Number })
	c.cut()
	c.join(n)
}

// id is one that no other life has.
func (c *Cluster) id(n *Node) uint64 {
	return c.seed<<32 ^ uint64(slices.Index(c.nodes, n)+1)<<20 ^ n.lives
}

// join has a node ask for a number.
func (c *Cluster) join(n *Node) {
	life := n.lives
	node, err := cluster.New(cluster.Config{
		Name: n.name, Roles: c.roles[n.name], Zone: c.zones[n.name], Lease: Lease, Brief: Lease / 2, ID: c.id(n),
		Directory: n.machine, Links: n.machine, Clock: n.machine, Since: n.machine.Since,
		Lost: func(error) {
			if n.lives == life {
				n.state = lost
			}
		},
	})
	if n.err = err; err != nil {
		return
	}
	n.Cluster = node
	node.Join(func(self cluster.Member, err error) {
		switch {
		case n.lives != life || n.state != joining:
		case err == nil:
			n.self, n.state = self, joined
		case errors.Is(err, cluster.ErrLost), errors.Is(err, cluster.ErrName):
			machine := n.machine
			machine.AfterFunc(joinAgain, func() {
				if n.lives == life && n.machine == machine {
					c.join(n)
				}
			})
		default:
			n.err = err
		}
	})
}

// tend starts the systems of nodes that have joined, and has those that were lost join again.
func (c *Cluster) tend() (any bool) {
	for _, n := range c.nodes {
		switch {
		case n.state == ended || !n.machine.Runs():
		case n.state == joined:
			n.state = runs
			c.boot(n)
			any = true
		case n.state == lost:
			c.over(n, "its node "+n.name+" was lost: it did not renew its lease")
			c.begin(n)
			any = true
		}
	}
	return any
}

// boot gives a node its kit.
func (c *Cluster) boot(n *Node) {
	c.t.Helper()
	machine := n.machine
	number := n.self.Number
	own := []testkit.Option{
		testkit.In(c.group, machine, machine.Runs), testkit.Seed(c.id(n)),
		testkit.Configured(func(cfg host.Config) host.Config { return cfg.WithNode(number) }),
	}
	n.Kit = testkit.New(c.t, append(own, c.opts...)...)
	if err := n.Cluster.Attach(n.Kit.System()); err != nil {
		c.t.Fatalf("nodekit: the node %s: %v", n.name, err)
	}
	c.start(n)
}

// over ends a life of a node.
func (c *Cluster) over(n *Node, why string) {
	c.t.Helper()
	if n.state == ended {
		return
	}
	n.state = ended
	n.machine.Bury()
	if n.Kit != nil {
		n.Kit.End(why)
	}
}

// whole reports whether all nodes that have not ended act, and see each other.
func (c *Cluster) whole() bool {
	var all []*Node
	for _, n := range c.nodes {
		if n.err != nil {
			c.t.Fatalf("nodekit: the node %s cannot join: %v", n.name, n.err)
		}
		if n.state != ended {
			all = append(all, n)
		}
	}
	return !slices.ContainsFunc(all, func(n *Node) bool {
		return n.state != runs || !n.Cluster.Acting() || slices.ContainsFunc(all, func(o *Node) bool {
			_, seen := n.Cluster.Member(o.self.Number)
			return !seen
		})
	})
}

func (c *Cluster) await(what string, d time.Duration, is func() bool) {
	c.t.Helper()
	if !c.until(d, is) {
		c.t.Fatalf("nodekit: it did not come about within %v that %s: %s", d, what, c)
	}
}

// until lets time pass until a condition holds, for d at most.
func (c *Cluster) until(d time.Duration, is func() bool) bool {
	c.t.Helper()
	return c.group.Until(c.t, d, is)
}

// String says what the nodes do.
func (c *Cluster) String() string {
	var parts []string
	for _, n := range c.nodes {
		text := n.name + " " + [...]string{"has ended", "joins", "joins", "runs", "was lost"}[n.state]
		if n.state != ended && !n.machine.Runs() {
			text = n.name + " stands still"
		}
		if n.state == runs {
			text += fmt.Sprintf(" and sees %d nodes", len(n.Cluster.Members()))
		}
		parts = append(parts, text)
	}
	for _, p := range c.parts {
		parts = append(parts, "part "+p.Text)
	}
	return strings.Join(parts, ", ")
}
