package nodekit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/testkit"
	"github.com/wasmactors/wasmactors/host/testkit/nodekit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with what it is asked.
func echo(ctx *host.Context, m host.Message) error {
	var v any
	if err := m.Decode(&v); err != nil {
		return err
	}
	return ctx.Reply(v)
}

func echoes(n *nodekit.Node) { n.Kit.Spawn("echo", host.Func(echo)) }

// Actors of one node reach those of another, watch them, and learn that their node is gone.
func TestNodes(t *testing.T) {
	c := nodekit.New(t, []string{"a", "b", "c"}, echoes)
	p := c.Node("a").Kit.Probe("asker")
	far := c.Node("b").Kit.At("/user/echo")
	p.Ask(far, 5)
	p.Expect(5)
	p.Watch(far)
	begun := c.Node("a").Kit.Now()
	c.Kill("b")
	c.Node("a").Kit.Await(time.Minute, "the end of b is seen", func() bool { return len(p.Waiting()) > 0 })
	if why := p.ExpectTerminated(far); !strings.Contains(why, "node") {
		t.Errorf("it has ended: %s", why)
	}
	if waited := c.Node("a").Kit.Now().Sub(begun); waited > 2*nodekit.Lease {
		t.Errorf("that was seen after %v", waited)
	}
	c.Start("b")
	again := c.Node("b").Kit.At("/user/echo")
	if again.UID() == far.UID() {
		t.Error("another life has the same refs")
	}
	c.Settle(time.Minute)
	p.Ask(again, 6)
	p.Expect(6)
}

// A part within the lease delays messages; one beyond it costs the smaller side its nodes.
func TestParts(t *testing.T) {
	lives := map[string]int{}
	c := nodekit.New(t, []string{"a", "b", "c"}, func(n *nodekit.Node) {
		lives[n.Name()]++
		echoes(n)
	})
	p := c.Node("a").Kit.Probe("asker")
	p.Ask(c.Node("c").Kit.At("/user/echo"), 1)
	p.Expect(1)
	far := c.Node("c").Kit.At("/user/echo")
	c.Part("a -> c")
	p.Ask(far, 2)
	p.ExpectNone(nodekit.Lease / 2)
	c.Heal()
	p.Expect(2)

	old := c.Node("c").Kit
	c.Part("a, b | c")
	c.Advance(3 * nodekit.Lease)
	if got := len(c.Node("a").Cluster.Members()); got != 2 {
		t.Errorf("a sees %d nodes", got)
	}
	c.Heal()
	c.Await(time.Minute, "c has joined again", func() bool { return c.Node("c").Kit != old })
	c.Settle(time.Minute)
	if fmt.Sprint(lives) != "map[a:1 b:1 c:2]" {
		t.Errorf("lives: %v", lives)
	}
	p.Ask(c.Node("c").Kit.At("/user/echo"), 3)
	p.Expect(3)
}

// A node that stands still within its lease goes on as if nothing had been; one that does so for longer is lost, and joins again.
func TestPauses(t *testing.T) {
	c := nodekit.New(t, []string{"a", "b", "c"}, echoes)
	p := c.Node("a").Kit.Probe("asker")
	far := c.Node("b").Kit.At("/user/echo")
	c.Pause("b", 500*time.Millisecond) // for more than a second a question would not wait
	p.Ask(far, 1)
	p.ExpectNone(400 * time.Millisecond)
	p.Expect(1)

	old := c.Node("b").Kit
	c.Pause("b", 3*nodekit.Lease)
	c.Await(time.Minute, "b has joined again", func() bool { return c.Node("b").Kit != old })
	c.Settle(time.Minute)
	p.Ask(c.Node("b").Kit.At("/user/echo"), 2)
	p.Expect(2)
}

// Keys live on one node each, and answer elsewhere when it is lost.
func TestKeys(t *testing.T) {
	keys := host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Reply(uint64(ctx.Self().UID().Node())) })
	c := nodekit.New(t, []string{"a", "b", "c"}, func(n *nodekit.Node) {
		n.Kit.Spawn("carts", shard.New("carts", n.Cluster, keyed.New(keys).WithField("key")).WithShards(16).WithRole("back").Props())
	}, nodekit.Roles("b", "back"), nodekit.Roles("c", "back"), nodekit.Kits(testkit.ExpectFor(time.Minute)))
	p := c.Node("a").Kit.Probe("asker")
	where := func() string {
		var answer testkit.Received
		for range 20 { // questions to a node that is lost end with an error
			p.AskFor(c.Node("a").Kit.At("/user/carts"), map[string]string{"key": "ann"}, time.Minute)
			if answer = p.Expect(testkit.Any()); answer.Err() == nil {
				break
			}
		}
		var number uint16
		if err := answer.Decode(&number); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b", "c"} {
			if c.Node(name).Cluster.Self().Number == number {
				return name
			}
		}
		t.Fatalf("it is on node %d", number)
		return ""
	}
	first := where()
	if again := where(); again != first {
		t.Errorf("it is on %s, and on %s", first, again)
	}
	c.Kill(first)
	if next := where(); next == first {
		t.Errorf("it is still on %s", next)
	}
}

// One seed gives one history, and a node leaves without anybody waiting for it.
func TestHistories(t *testing.T) {
	history := func(seed uint64) (out []string) {
		c := nodekit.New(t, []string{"a", "b"}, echoes, nodekit.Seed(seed), nodekit.Kits(testkit.ExpectFor(time.Minute)))
		for _, n := range c.Nodes() {
			out = append(out, fmt.Sprint(n.Name(), n.Kit.At("/user/echo").UID(), n.Kit.Now().UnixNano()))
		}
		begun := c.Node("a").Kit.Now()
		c.Leave("b")
		c.Await(time.Minute, "a is alone", func() bool { return len(c.Node("a").Cluster.Members()) == 1 })
		passed := c.Node("a").Kit.Now().Sub(begun)
		if passed > time.Second {
			t.Errorf("that took %v", passed)
		}
		return append(out, passed.String())
	}
	one, again, other := history(1), history(1), history(2)
	if !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Errorf("%v\n%v\n%v", one, again, other)
	}
}

// harness is a test that may fail.
type harness struct {
	testing.TB
	said string
}

func (h *harness) Helper() {}
func (h *harness) Fatalf(format string, args ...any) {
	h.said = fmt.Sprintf(format, args...)
	panic(h)
}
func (h *harness) Fatal(args ...any) { h.Fatalf("%s", fmt.Sprint(args...)) }

// What cannot be is said: nodes that do not exist, kits of nodes that have ended, waits where none may be.
func TestMistakes(t *testing.T) {
	for name, x := range map[string]struct {
		names []string
		f     func(c *nodekit.Cluster)
		start func(n *nodekit.Node)
		opts  []nodekit.Option
		want  string
	}{
		"twice":     {names: []string{"a", "a"}, want: "comes once"},
		"directory": {names: []string{"directory"}, want: "is not directory"},
		"role":      {names: []string{"a"}, opts: []nodekit.Option{nodekit.Roles("z", "x")}, want: `no node "z"`},
		"nobody":    {names: []string{"a"}, f: func(c *nodekit.Cluster) { c.Kill("z") }, want: `no node "z"`},
		"part":      {names: []string{"a", "b"}, f: func(c *nodekit.Cluster) { c.Part("a") }, want: "one side"},
		"part with": {names: []string{"a", "b"}, f: func(c *nodekit.Cluster) { c.Part("a | z") }, want: `no node "z"`},
		"ended": {names: []string{"a", "b"}, f: func(c *nodekit.Cluster) {
			k := c.Node("b").Kit
			c.Kill("b")
			k.Run()
		}, want: "this system has ended: its node b was killed"},
		"killed twice": {names: []string{"a", "b"}, f: func(c *nodekit.Cluster) { c.Kill("b"); c.Kill("b") }, want: "does not run"},
		"runs":         {names: []string{"a", "b"}, f: func(c *nodekit.Cluster) { c.Start("b") }, want: "runs"},
		"a wait":       {names: []string{"a"}, start: func(n *nodekit.Node) { n.Kit.Advance(time.Second) }, want: "cannot wait"},
		"never":        {names: []string{"a"}, f: func(c *nodekit.Cluster) { c.Await(time.Second, "the sun rises", func() bool { return false }) }, want: "the sun rises: a runs and sees 1 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &harness{TB: t}
			func() {
				defer func() {
					if r := recover(); r != nil && r != any(h) {
						panic(r)
					}
				}()
				start := x.start
				if start == nil {
					start = echoes
				}
				c := nodekit.New(h, x.names, start, x.opts...)
				x.f(c)
			}()
			if !strings.Contains(h.said, x.want) {
				t.Errorf("%q, not %q", h.said, x.want)
			}
		})
	}
}
