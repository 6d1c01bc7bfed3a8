package pubsub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/service"
)

// field is some nodes with the service, under a virtual clock.
type field struct {
	*clustertest.World
	t      *testing.T
	common *common
	nodes  []*site
	grant  any
	bundle string // of the next node
}

// site is one of them.
type site struct {
	*cluster.Node
	field   *field
	self    cluster.Member
	machine *clustertest.Machine
	system  *host.System
	service *service.Running
}

func (s *site) Self() uint16 { return s.self.Number }

func (s *site) Others() (all []uint16) {
	for _, m := range s.Members() {
		if m.Number != s.self.Number {
			all = append(all, m.Number)
		}
	}
	return all
}

// common is what nodes share, in memory.
type common struct {
	mu       sync.Mutex
	last     map[string]change
	revision uint64
	watching []func(string, []byte, uint64)
	down     bool
}

type change struct {
	value []byte
	at    uint64
}

func (c *common) Lease() time.Duration { return 4 * time.Second }

func (c *common) Put(key string, value []byte, revision uint64, _ int64, done func(uint64, bool, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.down:
		go done(0, false, errors.New("down"))
	case c.last[key].at != revision:
		go done(0, false, nil)
	default:
		c.revision++
		at := c.revision
		c.last[key] = change{value, at}
		for _, f := range c.watching {
			f(key, value, at)
		}
		go done(at, true, nil)
	}
}

func (c *common) Get(key string, done func([]byte, uint64, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.last[key]
	go done(x.value, x.at, nil)
}

func (c *common) Watch(each func(string, []byte, uint64), ready func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, x := range c.last {
		each(key, x.value, x.at)
	}
	ready()
	c.watching = append(c.watching, each)
	return func() {}
}

func fieldOf(t *testing.T, nodes int, credit int) *field {
	t.Helper()
	f := &field{World: clustertest.New(1), t: t, common: &common{last: map[string]change{}}, bundle: "test", grant: Service.Grant(Grant{Publish: []string{">"}, Subscribe: []string{">"}, Subscriptions: 10_000}, service.Bounds{})}
	for range nodes {
		f.add(credit)
	}
	f.pass(time.Second)
	return f
}

func (f *field) add(credit int) *site {
	f.t.Helper()
	s := &site{field: f}
	s.machine = f.Machine(func() uint16 { return s.self.Number })
	var err error
	s.Node, err = cluster.New(cluster.Config{
		Name: fmt.Sprint("n", len(f.nodes)), ID: uint64(len(f.nodes) + 1), Directory: s.machine, Links: s.machine, Clock: s.machine, Since: s.machine.Since, Credit: credit,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	s.Join(func(self cluster.Member, err error) {
		if err != nil {
			f.t.Error(err)
			return
		}
		s.self = self
		if s.system, err = host.New(host.NewConfig(f.bundle).WithNode(self.Number).WithManual().WithClock(s.machine).WithSeed(uint64(self.Number))); err == nil {
			err = s.Attach(s.system)
		}
		if err == nil {
			env := &service.Env{Bundle: f.bundle, Nodes: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Shared: func(context.Context, string) (service.Shared, error) { return f.common, nil }}
			s.service, err = Service.Start(s.system, env, &Settings{Scope: ScopeCluster})
		}
		if err != nil {
			f.t.Error(err)
		}
	})
	f.nodes = append(f.nodes, s)
	f.pass(2 * time.Second)
	if s.service == nil {
		f.t.Fatal("the node has not joined")
	}
	f.t.Cleanup(func() {
		if err := s.system.Close(context.Background()); err != nil {
			f.t.Error(err)
		}
		if err := s.service.Wait(context.Background()); err != nil {
			f.t.Error(err)
		}
	})
	return s
}

func (f *field) pass(d time.Duration) {
	f.t.Helper()
	settle := func() {
		for _, s := range f.nodes {
			if s.system != nil && s.machine.Runs() {
				s.system.RunUntilIdle(1_000_000)
			}
		}
	}
	for end := f.Clock.Now().Add(d); ; {
		settle()
		next, ok := f.Clock.Next()
		if !ok || next.After(end) {
			f.Clock.Advance(end.Sub(f.Clock.Now()))
			settle()
			return
		}
		f.Clock.AdvanceToNext()
	}
}

// got is what a subscriber was sent.
type got struct {
	N      uint64          `cbor:"n"`
	Topic  string          `cbor:"topic"`
	Value  cbor.RawMessage `cbor:"value"`
	Missed uint64          `cbor:"missed"`
}

// listener is an actor that subscribes.
type listener struct {
	at     *site
	ref    host.Ref
	events []got
}

func (s *site) listen(args map[string]any) *listener {
	s.field.t.Helper()
	l := &listener{at: s}
	ref, err := s.system.Spawn("", host.Func(func(ctx *host.Context, m host.Message) error {
		var e struct {
			_    struct{} `cbor:",toarray"`
			Kind string
			Body got
		}
		switch {
		case m.Kind == abi.KindReplyError:
			s.field.t.Errorf("%v", m.Err())
		case m.Kind != abi.KindMessage:
		case m.Sender.IsZero():
			var op []any
			if err := m.Decode(&op); err != nil {
				return err
			}
			return ctx.Ask(s.service.Ref(), op, 1, time.Minute)
		case m.Decode(&e) == nil && e.Kind == "event":
			l.events = append(l.events, e.Body)
			return ctx.Tell(m.Sender, []any{"ack", e.Body.N})
		}
		return nil
	}).WithGrant("pubsub", s.field.grant))
	if err != nil {
		s.field.t.Fatal(err)
	}
	l.ref = ref
	l.ask("subscribe", args)
	return l
}

func (l *listener) ask(op string, args map[string]any) {
	_ = l.at.system.Tell(l.ref, []any{op, args})
	l.at.field.pass(100 * time.Millisecond)
}

// request has an actor of a node ask the service, and returns the answer.
func (s *site) request(op string, args map[string]any, into any) error {
	s.field.t.Helper()
	done, err := false, error(nil)
	ref, e := s.system.Spawn("", host.Func(func(ctx *host.Context, m host.Message) error {
		switch m.Kind {
		case abi.KindReply:
			if done = true; into != nil {
				err = m.Decode(into)
			}
		case abi.KindReplyError, abi.KindAskTimeout:
			done, err = true, m.Err()
		case abi.KindMessage:
			return ctx.Ask(s.service.Ref(), []any{op, args}, 1, time.Minute)
		}
		return nil
	}).WithGrant("pubsub", s.field.grant))
	if e != nil {
		s.field.t.Fatal(e)
	}
	_ = s.system.Tell(ref, "go")
	for range 2000 {
		if s.field.pass(time.Millisecond); done {
			break
		}
		time.Sleep(100 * time.Microsecond) // what is shared answers in a goroutine of its own
	}
	if !done {
		s.field.t.Fatalf("%s: no answer", op)
	}
	s.system.Stop(ref)
	return err
}

func (s *site) publish(topic string, value any, retain bool) (p published) {
	s.field.t.Helper()
	args := map[string]any{"topic": topic, "value": value}
	if retain {
		args["retain"] = true
	}
	if err := s.request("publish", args, &p); err != nil {
		s.field.t.Fatal(err)
	}
	return p
}

// An event reaches the subscribers of all nodes, in order; those of a node that has gone, or has begun anew, are another matter.
func TestTopicsOfACluster(t *testing.T) {
	f := fieldOf(t, 3, 0)
	a, b, c := f.nodes[0], f.nodes[1], f.nodes[2]
	one, two := b.listen(map[string]any{"pattern": "orders.*"}), c.listen(map[string]any{"pattern": "orders.>"})
	own, other := a.listen(map[string]any{"pattern": "orders.eu"}), c.listen(map[string]any{"pattern": "prices.>"})
	for i := range 20 {
		if p := a.publish("orders.eu", i, false); p.Taken != 3 || p.Missed != 0 {
			t.Errorf("%d: %+v", i, p)
		}
	}
	f.pass(time.Second)
	for name, l := range map[string]*listener{"b": one, "c": two, "a": own} {
		if len(l.events) != 20 {
			t.Errorf("%s has %d events", name, len(l.events))
			continue
		}
		for i, e := range l.events {
			var v int
			if _ = cbor.Unmarshal(e.Value, &v); v != i || e.Topic != "orders.eu" || e.Missed != 0 {
				t.Errorf("%s: event %d is %+v", name, i, e)
			}
		}
	}
	if len(other.events) != 0 {
		t.Errorf("%d events that do not match", len(other.events))
	}
	two.ask("unsubscribe", map[string]any{"pattern": "orders.>"})
	if p := a.publish("orders.eu", 0, false); p.Taken != 2 {
		t.Errorf("after one has unsubscribed: %+v", p)
	}
	// A short partition costs time only.
	for _, x := range [][2]*site{{a, b}, {b, a}} {
		f.Cut(x[0].machine, x[1].machine, true)
	}
	before := len(one.events)
	a.publish("orders.cut", 1, false)
	f.pass(2 * time.Second)
	if len(one.events) != before {
		t.Error("there is no partition")
	}
	f.Heal()
	if f.pass(2 * time.Second); len(one.events) != before+1 || one.events[before].Missed != 0 {
		t.Errorf("%d events after %d: %+v", len(one.events), before, one.events[before:])
	}
	// A node that is lost has no subscribers any more, and one that comes has.
	b.machine.Crash()
	f.pass(3 * cluster.DefaultLease)
	if p := a.publish("orders.eu", 0, false); p.Taken != 1 {
		t.Errorf("after a node was lost: %+v", p)
	}
	d := f.add(0)
	late := d.listen(map[string]any{"pattern": "orders.>"})
	if p := c.publish("orders.new", 7, false); p.Taken != 1 {
		t.Errorf("a node that has come: %+v", p)
	}
	if f.pass(time.Second); len(late.events) != 1 || len(own.events) != 22 {
		t.Errorf("%d and %d events", len(late.events), len(own.events))
	}
}

// Nodes of one bundle tell each other; those of another one hear nothing, whatever topics they name.
func TestBundlesHaveTheirOwnTopics(t *testing.T) {
	f := fieldOf(t, 2, 0)
	f.bundle = "other"
	f.add(0)
	f.add(0)
	var all []*listener
	for _, s := range f.nodes {
		all = append(all, s.listen(map[string]any{"pattern": "orders.>"}))
	}
	f.pass(time.Second)
	for i, s := range f.nodes {
		if p := s.publish("orders.eu", i, false); p.Taken != 2 || p.Missed != 0 {
			t.Errorf("node %d: %+v", i+1, p)
		}
	}
	f.pass(time.Second)
	for i, l := range all {
		for _, e := range l.events {
			var from int
			if _ = cbor.Unmarshal(e.Value, &from); from/2 != i/2 {
				t.Errorf("node %d has an event of node %d, which is of another bundle", i+1, from+1)
			}
		}
		if len(l.events) != 2 {
			t.Errorf("node %d has %d events", i+1, len(l.events))
		}
	}
}

// A node gets one copy, whatever subscribes there, and none if nothing does.
func TestOneCopyANode(t *testing.T) {
	f := fieldOf(t, 3, 0)
	a, b, c := f.nodes[0], f.nodes[1], f.nodes[2]
	var all []*listener
	for _, pattern := range []string{"x.y", "x.*", "x.>", ">", "*.y"} {
		for range 4 {
			all = append(all, b.listen(map[string]any{"pattern": pattern}))
		}
	}
	f.pass(time.Second)
	sent := func(to *site) uint64 {
		for _, l := range a.Links() {
			if l.Node.Number == to.self.Number {
				return l.Sent
			}
		}
		return 0
	}
	toB, toC := sent(b), sent(c)
	for range 10 {
		if p := a.publish("x.y", "v", false); p.Taken != 1 || p.Missed != 0 {
			t.Errorf("%+v", p)
		}
	}
	f.pass(time.Second)
	if n := sent(b) - toB; n != 10 {
		t.Errorf("%d copies for 10 events", n)
	}
	if n := sent(c) - toC; n != 0 {
		t.Errorf("%d copies for a node without subscribers", n)
	}
	for i, l := range all {
		if len(l.events) != 10 {
			t.Errorf("subscriber %d has %d events", i, len(l.events))
		}
	}
}

// Of a group one gets each event, on whatever node, in turn.
func TestGroupsOfACluster(t *testing.T) {
	f := fieldOf(t, 3, 0)
	var all []*listener
	for i, n := range []int{2, 1, 1} {
		for range n {
			all = append(all, f.nodes[i].listen(map[string]any{"pattern": "jobs.>", "group": "workers"}))
		}
	}
	each := f.nodes[2].listen(map[string]any{"pattern": "jobs.*"})
	other := f.nodes[1].listen(map[string]any{"pattern": "jobs.>", "group": "audit"})
	f.pass(time.Second)
	const n = 120
	for i := range n {
		if p := f.nodes[i%3].publish("jobs.one", i, false); p.Missed != 0 {
			t.Fatalf("%+v", p)
		}
	}
	f.pass(time.Second)
	seen := map[int]int{}
	for i, l := range all {
		if len(l.events) < n/8 || len(l.events) > n/2 {
			t.Errorf("member %d has %d of %d events", i, len(l.events), n)
		}
		for _, e := range l.events {
			var v int
			_ = cbor.Unmarshal(e.Value, &v)
			seen[v]++
		}
	}
	for i := range n {
		if seen[i] != 1 {
			t.Errorf("event %d has %d receivers", i, seen[i])
		}
	}
	if len(each.events) != n || len(other.events) != n {
		t.Errorf("%d and %d events beside the group", len(each.events), len(other.events))
	}
	// One that ends is passed over.
	all[2].at.system.Stop(all[2].ref)
	f.pass(time.Second)
	for range 12 {
		if p := f.nodes[0].publish("jobs.two", 0, false); p.Missed != 0 {
			t.Errorf("%+v", p)
		}
	}
	f.pass(time.Second)
	total := 0
	for _, i := range []int{0, 1, 3} {
		total += len(all[i].events)
	}
	if want := n - len(all[2].events) + 12; total != want {
		t.Errorf("%d events, not %d", total, want)
	}
}

// What a slow node has no room for is missed, and its subscribers are told.
func TestASlowNode(t *testing.T) {
	f := fieldOf(t, 2, 64<<10)
	a, b := f.nodes[0], f.nodes[1]
	l := b.listen(map[string]any{"pattern": ">"})
	f.pass(time.Second)
	for _, x := range [][2]*site{{a, b}, {b, a}} {
		f.Cut(x[0].machine, x[1].machine, true)
	}
	missed := 0
	for range 20 {
		missed += a.publish("big", make([]byte, 8<<10), false).Missed
	}
	if missed == 0 || missed == 20 {
		t.Fatalf("%d were missed", missed)
	}
	f.Heal()
	f.pass(2 * time.Second)
	a.publish("small", 1, false)
	f.pass(time.Second)
	told := uint64(0)
	for _, e := range l.events {
		told += e.Missed
	}
	if len(l.events) != 21-missed || told != uint64(missed) {
		t.Errorf("%d events, %d missed; the subscriber was told of %d", len(l.events), missed, told)
	}
}

// The last value that was written is on all nodes, in the order of its publisher, and is forgotten on all.
func TestRetainedInACluster(t *testing.T) {
	f := fieldOf(t, 2, 0)
	a, b := f.nodes[0], f.nodes[1]
	l := b.listen(map[string]any{"pattern": "prices.*"})
	if p := a.publish("prices.x", 1, true); p.Taken != 1 {
		t.Errorf("%+v", p)
	}
	a.publish("prices.x", 2, true)
	b.publish("prices.x", 3, true)
	var p page
	for _, s := range f.nodes {
		if err := s.request("retained", map[string]any{"pattern": ">"}, &p); err != nil || len(p.Retained) != 1 || p.Retained[0].Topic != "prices.x" || string(p.Retained[0].Value) != "\x03" {
			t.Errorf("%+v, %v", p, err)
		}
		p = page{}
	}
	if len(l.events) != 3 {
		t.Errorf("%d events", len(l.events))
	}
	late := f.add(0)
	if err := late.request("retained", map[string]any{"pattern": ">"}, &p); err != nil || len(p.Retained) != 1 {
		t.Errorf("a node that has come: %+v, %v", p, err)
	}
	if err := b.request("forget", map[string]any{"topic": "prices.x"}, nil); err != nil {
		t.Error(err)
	}
	for _, s := range f.nodes {
		p = page{}
		if err := s.request("retained", map[string]any{"pattern": ">"}, &p); err != nil || len(p.Retained) != 0 {
			t.Errorf("%+v, %v", p, err)
		}
		if err := s.request("forget", map[string]any{"topic": "prices.x"}, nil); err == nil || !strings.Contains(err.Error(), "nothing is retained") {
			t.Error(err)
		}
	}
	if p := a.publish("prices.x", 9, true); p.Taken != 1 {
		t.Errorf("after it was forgotten: %+v", p)
	}
	f.common.mu.Lock()
	f.common.down = true
	f.common.mu.Unlock()
	if err := a.request("publish", map[string]any{"topic": "prices.y", "value": 1, "retain": true}, nil); err == nil || !strings.Contains(err.Error(), "do not answer") {
		t.Errorf("without those that keep them: %v", err)
	}
	if p := a.publish("prices.z", 1, false); p.Taken != 1 {
		t.Errorf("events go on: %+v", p)
	}
}

// Values of one topic that are retained at once are written in the order in which they were published, or left out for newer ones.
func TestRetainedInOrder(t *testing.T) {
	f := fieldOf(t, 1, 0)
	s := f.nodes[0]
	answers := 0
	ref, err := s.system.Spawn("", host.Func(func(ctx *host.Context, m host.Message) error {
		switch m.Kind {
		case abi.KindReply:
			answers++
		case abi.KindMessage:
			for i := range 20 {
				if err := ctx.Ask(s.service.Ref(), []any{"publish", map[string]any{"topic": "t", "value": i, "retain": true}}, uint64(i+1), time.Minute); err != nil {
					return err
				}
			}
		default:
			t.Errorf("%v", m.Err())
			answers++
		}
		return nil
	}).WithGrant("pubsub", f.grant))
	if err != nil {
		t.Fatal(err)
	}
	_ = s.system.Tell(ref, "go")
	for range 5000 {
		if f.pass(time.Millisecond); answers == 20 {
			break
		}
		time.Sleep(100 * time.Microsecond)
	}
	var p page
	if err := s.request("retained", map[string]any{"pattern": "t"}, &p); err != nil || answers != 20 || len(p.Retained) != 1 || string(p.Retained[0].Value) != "\x13" {
		t.Errorf("%d answers, %+v, %v", answers, p, err)
	}
}

// A node with more patterns than are told gets all events.
func TestManyPatterns(t *testing.T) {
	b := newBroker(10, 1)
	n := &farNode{number: 2}
	b.meet(n)
	var m relayed
	m.All = true
	for i := range mostPatterns + 500 {
		m.More = append(m.More, fmt.Sprint("t", i))
	}
	if !b.interested(2, &m) || len(n.patterns) > mostPatterns+1 {
		t.Errorf("%d patterns", len(n.patterns))
	}
	if !b.interested(2, &relayed{All: true, Any: true}) || len(n.patterns) != 1 || len(b.far.match("any.topic")) != 1 {
		t.Errorf("%d patterns", len(n.patterns))
	}
	if !b.interested(2, &relayed{All: true}) || len(b.far.match("any.topic")) != 0 || b.far.count != 0 {
		t.Error("they are still there")
	}
}

// Only the relay of another node is believed, and what it says is checked.
func TestRelaysOfOthers(t *testing.T) {
	f := fieldOf(t, 2, 0)
	a, b := f.nodes[0], f.nodes[1]
	l := a.listen(map[string]any{"pattern": ">"})
	relay, err := a.system.Lookup("/system/" + relayName)
	if err != nil {
		t.Fatal(err)
	}
	forged := []any{
		relayed{Kind: relayEvent, N: 1, Topic: "x", Value: cbor.RawMessage{1}, Plain: true}, relayed{Kind: relayInterest, All: true, Any: true}, relayed{Kind: 9}, host.Raw{0xff}, "text",
	}
	for _, s := range f.nodes { // actors of this node and of the other
		ref, err := s.system.Spawn("stranger", host.Func(func(ctx *host.Context, m host.Message) error {
			for _, x := range forged {
				_ = ctx.Tell(relay, x)
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		_ = s.system.Tell(ref, "go")
	}
	f.pass(time.Second)
	if len(l.events) != 0 {
		t.Errorf("%d events of strangers", len(l.events))
	}
	if p := a.publish("x", 1, false); p.Taken != 1 {
		t.Errorf("%+v: nobody else subscribes", p)
	}
	// A relay that says what none says.
	from, err := b.system.Lookup("/system/" + relayName)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []relayed{
		{Kind: relayEvent, N: 2, Topic: "a..b", Value: cbor.RawMessage{1}, Plain: true}, {Kind: relayEvent, N: 3, Topic: "x", Value: append(cbor.RawMessage{0x5a, 0, 0, 0xc0, 1}, make([]byte, MaxValue+1)...), Plain: true},
		{Kind: relayInterest, More: []string{"a..b"}}, {Kind: relayInterest, Groups: []groupCount{{Key: groupKey{Pattern: "x", Group: strings.Repeat("g", MaxGroup+1)}, N: 1}}},
		{Kind: relayInterest, Groups: []groupCount{{Key: groupKey{Pattern: "x", Group: "g"}, N: -1}}},
	} {
		_ = b.system.TellFrom(from, relay, x)
	}
	f.pass(time.Second)
	if p := a.publish("x", 1, false); p.Taken != 1 || len(l.events) != 2 {
		t.Errorf("%+v, %d events", p, len(l.events))
	}
}

// What a member has written that no node writes is no retained value.
func TestKeptOfOthers(t *testing.T) {
	k := &kept{broker: newBroker(10, 4<<10), prefix: "b."}
	for _, key := range []string{"b.", "b.a..b", "b.~", "b.~zz", "b.~61", "c.a", "a", "b.a~2", "b.a.b"} {
		if name, ok := k.topicOf(key); ok {
			t.Errorf("%q is the topic %q", key, name)
		}
		k.changed(key, []byte{1}, 1)
	}
	for _, name := range []string{"a", "a.b", "ä.~", "x-y_z.1"} {
		if got, ok := k.topicOf(k.key(name)); !ok || got != name {
			t.Errorf("%q: %q %v", name, got, ok)
		}
	}
	k.changed(k.key("large"), make([]byte, MaxValue+1), 2)
	for i := range 100 {
		k.changed(k.key(fmt.Sprint("t", i)), make([]byte, 100), uint64(i+3))
	}
	if k.broker.bytes > 4<<10 || k.broker.values.Len() == 0 {
		t.Errorf("%d bytes in %d values", k.broker.bytes, k.broker.values.Len())
	}
	k.changed(k.key("t0"), nil, 1) // it is late
	if k.broker.values.Get("t0") == nil {
		t.Error("a late removal counts")
	}
	k.changed(k.key("t0"), nil, 1000)
	if k.broker.values.Get("t0") != nil {
		t.Error("it is still there")
	}
}
