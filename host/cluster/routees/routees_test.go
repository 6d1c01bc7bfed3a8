package routees

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/cluster/remote"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/supervision"
)

// net is some nodes in virtual time.
type net struct {
	*clustertest.World
	t     *testing.T
	lives []*life
	got   map[string]int // messages by the node that has handled them
}

type life struct {
	net     *net
	name    string
	zone    string
	machine *clustertest.Machine
	node    *cluster.Node
	system  *host.System
	over    bool
}

func newNet(t *testing.T) *net {
	return &net{World: clustertest.New(7), t: t, got: map[string]int{}}
}

// start starts a node with an actor /user/a, which says who it is, if it has the role back. Its door takes children of others if takes.
func (n *net) start(name, role string, takes bool) *life { return n.startIn("", name, role, takes) }

func (n *net) startIn(zone, name, role string, takes bool) *life {
	l := &life{net: n, name: name, zone: zone}
	number := uint16(0)
	l.machine = n.Machine(func() uint16 { return number })
	n.lives = append(n.lives, l)
	c, err := cluster.New(cluster.Config{
		Name: name, Roles: []string{role}, Zone: zone, Lease: 4 * time.Second, ID: uint64(len(n.lives)), Directory: l.machine, Links: l.machine, Clock: l.machine, Since: l.machine.Since,
		Lost: func(error) { l.over = true },
	})
	if err != nil {
		n.t.Fatal(err)
	}
	l.node = c
	c.Join(func(m cluster.Member, err error) {
		if err != nil {
			n.t.Error(err)
			return
		}
		number = m.Number
		if l.system, err = host.New(host.NewConfig("sim").WithNode(m.Number).WithManual().WithClock(l.machine).WithSeed(uint64(m.Number))); err == nil {
			err = c.Attach(l.system)
		}
		if err == nil && takes {
			_, err = l.system.SpawnService(remote.Door, remote.Accept{Node: c, Find: func([]byte, string, string) (host.Props, []string, error) {
				return host.Func(l.says), nil, nil
			}}.Props())
		}
		if err == nil && role == "back" {
			_, err = l.system.Spawn("a", host.Func(l.says))
		}
		if err != nil {
			n.t.Error(err)
		}
	})
	n.pass(5 * time.Second)
	return l
}

func (l *life) says(ctx *host.Context, m host.Message) error {
	if m.Kind != abi.KindMessage {
		return nil
	}
	var text string
	if m.Decode(&text) == nil && text == "end" {
		ctx.Stop(ctx.Self())
		return nil
	}
	l.net.got[l.name]++
	return ctx.Reply(l.name)
}

func (n *net) settle() {
	for again := true; again; {
		again = false
		for _, l := range n.lives {
			if l.system != nil && l.machine.Runs() && !l.over && l.system.RunUntilIdle(10_000) > 0 {
				again = true
			}
		}
	}
}

func (n *net) pass(d time.Duration) {
	end := n.Clock.Now().Add(d)
	for {
		n.settle()
		next, ok := n.Clock.Next()
		if !ok || next.After(end) {
			break
		}
		n.Clock.AdvanceToNext()
	}
	n.Clock.Advance(end.Sub(n.Clock.Now()))
	n.settle()
}

func (l *life) spawn(name string, c router.Config) host.Ref {
	ref, err := l.system.Spawn(name, c.Props())
	if err != nil {
		l.net.t.Fatal(err)
	}
	l.net.pass(time.Second)
	return ref
}

// ask asks the router n times, and returns who has answered how often.
func (l *life) ask(to host.Ref, n int, key func(int) string) map[string]int {
	l.net.t.Helper()
	by := map[string]int{}
	for i := range n {
		v := any("who")
		if key != nil {
			v = router.Keyed(key(i), v)
		}
		p, err := l.system.Request(to, v)
		if err != nil {
			by[err.Error()]++
			continue
		}
		l.net.pass(100 * time.Millisecond)
		var who string
		if err := answer(p, &who); err != nil {
			who = err.Error()
		}
		by[who]++
	}
	return by
}

// answer reads what has been answered by now.
func answer(p *host.Pending, v any) error {
	select {
	case m := <-p.Answer():
		if err := m.Err(); err != nil {
			return err
		}
		return m.Decode(v)
	default:
		p.Cancel()
		return errors.New("no answer")
	}
}

func (n *net) want(got, want map[string]int) {
	n.t.Helper()
	if !maps.Equal(got, want) {
		n.t.Errorf("%v, want %v", got, want)
	}
}

// A group has a routee on each node with the role, as long as it is there.
func TestGroup(t *testing.T) {
	n := newNet(t)
	front, b1, b2 := n.start("f", "front", false), n.start("b1", "back", false), n.start("b2", "back", false)
	r := front.spawn("r", router.Group(router.RoundRobin).WithElsewhere(Group(front.node, "back", "/user/a")))
	n.want(front.ask(r, 6, nil), map[string]int{"b1": 3, "b2": 3})

	b3 := n.start("b3", "back", false)
	n.want(front.ask(r, 6, nil), map[string]int{"b1": 2, "b2": 2, "b3": 2})

	b1.machine.Crash()
	n.pass(20 * time.Second)
	n.want(front.ask(r, 6, nil), map[string]int{"b2": 3, "b3": 3})

	near := b2.spawn("r", router.Group(router.RoundRobin).WithElsewhere(Group(b2.node, "back", "/user/a")))
	n.want(b2.ask(near, 6, nil), map[string]int{"b2": 3, "b3": 3})

	again := n.start("b1", "back", false)
	n.want(front.ask(r, 6, nil), map[string]int{"b1": 2, "b2": 2, "b3": 2})
	_, _ = b3, again
}

// What goes to all goes to each node; who asks all takes the first answer.
func TestGroupsThatAskAll(t *testing.T) {
	n := newNet(t)
	front := n.start("f", "front", false)
	n.start("b1", "back", false)
	n.start("b2", "back", false)
	for name, make := range map[string]router.Make{"all": router.Broadcast, "gather": router.ScatterGather(0), "chop": router.TailChopping(0, 0)} {
		clear(n.got)
		r := front.spawn(name, router.Group(make).WithElsewhere(Group(front.node, "back", "/user/a")))
		by := front.ask(r, 4, nil)
		if by["b1"]+by["b2"] != 4 {
			t.Errorf("%s: %v", name, by)
		}
		if all := n.got["b1"] == 4 && n.got["b2"] == 4; !all && name != "chop" {
			t.Errorf("%s: %v", name, n.got)
		}
	}
}

// A key goes to the same node after that has come back under another number.
func TestKeysReturnToTheirNode(t *testing.T) {
	n := newNet(t)
	front := n.start("f", "front", false)
	b1 := n.start("b1", "back", false)
	n.start("b2", "back", false)
	n.start("b3", "back", false)
	r := front.spawn("r", router.Group(router.ConsistentHashing(router.Hashing{})).WithElsewhere(Group(front.node, "back", "/user/a")))
	place := func() (all []string) {
		for i := range 20 {
			for who := range front.ask(r, 1, func(int) string { return fmt.Sprint("key", i) }) {
				all = append(all, who)
			}
		}
		return all
	}
	first := place()
	if !slices.Contains(first, "b1") {
		t.Fatalf("no key is on b1: %v", first)
	}
	b1.machine.Crash()
	n.pass(20 * time.Second)
	for i, who := range place() {
		if who == "b1" || first[i] != "b1" && who != first[i] {
			t.Errorf("key %d has moved from %s to %s", i, first[i], who)
		}
	}
	n.start("b1", "back", false)
	if again := place(); !slices.Equal(first, again) {
		t.Errorf("%v, then %v", first, again)
	}
}

func poolOf(l *life, size, most int) router.Config {
	return router.Pool(size, host.Props{}, router.RoundRobin).WithNodes(Pool(l.node, "back", "/user/r", func(parent host.Ref, node string) (host.Props, error) {
		return remote.Props(l.node, remote.Place{Role: "back", Node: node}, remote.Child{Type: "w", Parent: parent, Supervision: supervision.Default()})
	}), most)
}

func (l *life) routees(r host.Ref) (all []string) {
	l.net.t.Helper()
	p, err := l.system.Request(r, host.Headed{Headers: map[string]string{router.Header: "routees"}})
	if err != nil {
		l.net.t.Fatal(err)
	}
	l.net.settle()
	if err := answer(p, &all); err != nil {
		l.net.t.Fatal(err)
	}
	return all
}

// The routees of a pool are where the fewest are; those of a lost node are begun on others, and a node that comes gets what is missing.
func TestPool(t *testing.T) {
	n := newNet(t)
	front, b1 := n.start("f", "front", false), n.start("b1", "back", true)
	n.start("b2", "back", true)
	r := front.spawn("r", poolOf(front, 6, 4))
	n.pass(5 * time.Second)
	n.want(front.ask(r, 12, nil), map[string]int{"b1": 6, "b2": 6})

	b1.machine.Crash()
	n.pass(20 * time.Second) // four on b2 are all that it takes
	n.want(front.ask(r, 12, nil), map[string]int{"b2": 12})
	if all := front.routees(r); len(all) != 4 {
		t.Errorf("routees %v", all)
	}
	n.start("b3", "back", true)
	n.pass(5 * time.Second)
	n.want(front.ask(r, 12, nil), map[string]int{"b2": 8, "b3": 4})
}

// A routee that ends is begun anew, also when all have ended, and after the router was restarted.
func TestPoolsAreFilled(t *testing.T) {
	n := newNet(t)
	front := n.start("f", "front", false)
	n.start("b1", "back", true)
	r := front.spawn("r", poolOf(front, 3, 0))
	n.pass(5 * time.Second)
	for range 3 {
		if err := front.system.Tell(r, "end"); err != nil {
			t.Fatal(err)
		}
	}
	n.pass(500 * time.Millisecond)
	if all := front.routees(r); len(all) != 0 {
		t.Errorf("begun at once: %v", all)
	}
	n.want(front.ask(r, 1, nil), map[string]int{router.ErrNoRoutee.Error(): 1})
	n.pass(5 * time.Second)
	n.want(front.ask(r, 6, nil), map[string]int{"b1": 6})
	if err := front.system.Operate().Restart(r); err != nil {
		t.Fatal(err)
	}
	n.pass(10 * time.Second)
	n.want(front.ask(r, 6, nil), map[string]int{"b1": 6})
	if all := front.routees(r); len(all) != 3 {
		t.Errorf("routees %v", all)
	}
}

// A node that refuses does not keep the others from having the routees, and is asked less and less often.
func TestNodesThatRefuse(t *testing.T) {
	n := newNet(t)
	front := n.start("f", "front", false)
	n.start("b1", "back", true)
	n.start("b2", "back", false)
	r := front.spawn("r", poolOf(front, 2, 0))
	n.pass(60 * time.Second)
	before := front.routees(r)
	n.pass(15 * time.Second)
	if len(before) == 0 || len(front.routees(r)) == 0 {
		t.Errorf("routees %v, %v", before, front.routees(r))
	}
	if by := front.ask(r, 10, nil); by["b1"] == 0 {
		t.Errorf("%v", by)
	}
}

// A pool is made larger and smaller by hand.
func TestAdjust(t *testing.T) {
	n := newNet(t)
	front := n.start("f", "front", false)
	n.start("b1", "back", true)
	n.start("b2", "back", true)
	r := front.spawn("r", poolOf(front, 2, 0))
	n.pass(5 * time.Second)
	for _, c := range []struct{ by, want int }{{3, 5}, {-4, 1}, {1, 2}} {
		if err := front.system.Tell(r, host.Headed{Value: c.by, Headers: map[string]string{router.Header: "adjust"}}); err != nil {
			t.Fatal(err)
		}
		n.pass(5 * time.Second)
		if all := front.routees(r); len(all) != c.want {
			t.Errorf("adjusted by %d: %v", c.by, all)
		}
	}
}

// The routees of a pool are apart by zones first: a zone of one node has as many as one of three, as far as it may.
func TestZones(t *testing.T) {
	for _, c := range []struct {
		size, most int
		want       map[string]int
	}{
		{2, 0, map[string]int{"east": 1, "west": 1}},
		{6, 0, map[string]int{"east": 3, "west": 3}},
		{6, 2, map[string]int{"east": 2, "west": 4}},
	} {
		n := newNet(t)
		front := n.start("f", "front", false)
		n.startIn("east", "e1", "back", true)
		for i := range 3 {
			n.startIn("west", fmt.Sprint("w", i), "back", true)
		}
		r := front.spawn("r", poolOf(front, c.size, c.most))
		n.pass(5 * time.Second)
		zones := map[string]int{}
		for who, times := range front.ask(r, c.size, nil) {
			for _, l := range n.lives {
				if l.name == who {
					zones[l.zone] += times
				}
			}
		}
		n.want(zones, c.want)
	}
}

// A node without an actor at the path is a routee, and who asks is told.
func TestAPathWithoutAnActor(t *testing.T) {
	n := newNet(t)
	front := n.start("f", "front", false)
	n.start("b1", "back", false)
	r := front.spawn("r", router.Group(router.RoundRobin).WithElsewhere(Group(front.node, "back", "/user/nobody")))
	if all := front.routees(r); len(all) != 1 {
		t.Errorf("routees %v", all)
	}
	n.want(front.ask(r, 2, nil), map[string]int{host.ErrUnknown.Error(): 2})
}

// What cannot be together is refused.
func TestCheck(t *testing.T) {
	n := newNet(t)
	l := n.start("f", "front", false)
	group, pool := Group(l.node, "", "/user/a"), Pool(l.node, "", "/user/r", nil)
	for name, c := range map[string]router.Config{
		"a pool with routees elsewhere": router.Pool(1, host.Func(l.says), router.RoundRobin).WithElsewhere(group),
		"a group with nodes":            router.Group(router.RoundRobin).WithNodes(pool, 0),
		"smallest mailbox":              router.Group(router.SmallestMailbox).WithElsewhere(group),
		"balancing":                     router.Pool(1, host.Props{}, router.Balancing).WithNodes(pool, 0),
		"a bounded load":                router.Group(router.ConsistentHashing(router.Hashing{Load: 2})).WithElsewhere(group),
		"a resizer":                     router.Pool(1, host.Props{}, router.RoundRobin).WithNodes(pool, 0).WithResizer(router.DefaultResizer()),
		"fewer than none":               router.Pool(1, host.Props{}, router.RoundRobin).WithNodes(pool, -1),
	} {
		if c.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, c := range []router.Config{
		router.Group(router.Broadcast).WithElsewhere(group), router.Pool(1, host.Props{}, router.RoundRobin).WithNodes(pool, 1),
		router.Group(router.ConsistentHashing(router.Hashing{})).WithElsewhere(group),
	} {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
}
