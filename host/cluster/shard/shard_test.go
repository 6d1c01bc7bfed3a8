package shard

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// three is a cluster of three nodes that may have shards, at rest.
func three(t *testing.T) *sim { return threeWithout(t, 0) }

// threeWithout leaves out a rule.
func threeWithout(t *testing.T, g guard) *sim {
	t.Helper()
	s := newSim(4, map[string]int{}, broken{guard: g})
	s.calm = true
	t.Cleanup(func() {
		if s.close(); s.failure != "" {
			t.Error(s.failure)
		}
	})
	for range 3 {
		s.start()
	}
	s.pass(5 * time.Second)
	return s
}

// owner is the node that has a key.
func (s *sim) owner(key string) *life {
	l := s.up()[0]
	var p Place
	s.ask(l, l.order("where", wish{Key: key}), &p)
	for _, o := range s.up() {
		if o.number == p.Node {
			return o
		}
	}
	return nil
}

// outcome has Go code on a node ask a region, and returns how that ends.
func (s *sim) outcome(l *life, to host.Ref, v any) error {
	p, err := l.system.Request(to, v)
	if err != nil {
		return err
	}
	s.pass(5 * time.Second)
	select {
	case m := <-p.Answer():
		return m.Err()
	default:
		return errors.New("no answer")
	}
}

func seen(key string) note { return note{Op: "ask", Key: key} }

// Messages that a region is said to have passed on, but has not, are refused, whoever sends them.
func TestMadeUpTokens(t *testing.T) {
	s := three(t)
	o := s.owner("k1")
	l := s.up()[0]
	if l == o {
		l = s.up()[1]
	}
	shard := Of("k1", shards)
	for _, x := range []tag{
		{false, shard, 1, l.region.UID(), "k1"},
		{false, shard, 0, l.region.UID(), "k1"},
		{true, shard, 0, l.region.UID(), "k1"},
		{true, shard, 1, o.region.UID(), "k1"},
	} {
		if err := s.outcome(l, o.region, host.Below(o.region, x.String()).Message(seen("k1"))); err == nil || !strings.Contains(err.Error(), "moved") {
			t.Errorf("%v: %v", x, err)
		}
	}
	for _, below := range []string{"m0:1", ":", "m0:1:2:", "m0:01:2:k", "x0:1:2:k1", fmt.Sprint("m", shards, ":1:2:k1"), "m0:1:2:" + strings.Repeat("k", 300)} {
		if err := s.outcome(l, o.region, host.Below(o.region, below).Message(seen("k1"))); err == nil {
			t.Errorf("%q was taken", below)
		}
	}
	if n := s.stats["begun"]; n != 0 {
		t.Errorf("%d actors were started", n)
	}
	s = threeWithout(t, guardToken)
	o = s.owner("k1")
	if err := s.outcome(o, o.region, host.Below(o.region, tag{false, shard, 1, 2, "k1"}.String()).Message(seen("k1"))); err != nil {
		t.Errorf("without the rule the test would not notice: %v", err)
	}
}

// Orders count from regions only, and those of a region for what it has to say.
func TestOrdersOfOthers(t *testing.T) {
	s := three(t)
	o := s.owner("k1")
	shard := Of("k1", shards)
	for _, l := range s.up() {
		s.ask(l, keyed.For("k1", seen("k1")), new(string))
	}
	before := fmt.Sprintf("%+v %+v", o.state.table, o.state.own[shard].phase)
	for _, l := range s.up() {
		stranger, err := l.system.Spawn("stranger", host.Func(func(ctx *host.Context, m host.Message) error {
			for op := opLook; op <= opLast; op++ {
				for _, token := range []uint64{0, 1, 7} {
					_ = ctx.Tell(o.region, order{op, shard, o.state.own[shard].epoch, token}.message())
				}
			}
			for _, key := range []string{"", ":", ":0", ":1", ":ffffffffffffffff"} {
				_ = ctx.Tell(o.region, host.Headed{Value: wish{On: true}, Headers: map[string]string{Header: "drain" + key}})
				_ = ctx.Tell(o.region, host.Headed{Value: wish{Key: "k1", Node: l.number}, Headers: map[string]string{Header: "move" + key}})
			}
			return ctx.Tell(o.region, host.Headed{Value: host.Raw{0xff}, Headers: map[string]string{Header: "1"}})
		}))
		if err != nil {
			t.Fatal(err)
		}
		_ = l.system.Tell(stranger, "go")
	}
	s.pass(5 * time.Second)
	for _, l := range s.up() { // Go code is no region, and that of another node has no key of this one's
		if l != o {
			_ = l.system.Tell(o.region, l.order("drain", wish{On: true}))
		}
		_ = l.system.Tell(o.region, order{opTake, shard, o.state.own[shard].epoch, 1}.message())
	}
	s.pass(5 * time.Second)
	x := &o.state.own[shard] // as while what waits is handed over
	x.phase = handing
	_ = o.system.Tell(o.region, order{opHanded, shard, x.epoch, 0}.message())
	s.pass(time.Millisecond)
	if x.phase != handing {
		t.Error("Go code has ended the handing over")
	}
	x.phase = serving
	s.pass(time.Second)
	if now := fmt.Sprintf("%+v %+v", o.state.table, o.state.own[shard].phase); now != before {
		t.Errorf("%s\nbefore %s", now, before)
	}
	for _, l := range s.up() {
		s.ask(l, keyed.For("k1", seen("k1")), new(string))
	}
}

// A kind that lives keeps its number of shards; when it lives no more it may have another.
func TestChangingShards(t *testing.T) {
	s := three(t)
	l := s.up()[2]
	l.system.Stop(l.region)
	s.pass(time.Second)
	c := New("carts", l.node, keyed.New(host.Native(func() host.Actor { return &worker{life: l} }))).WithShards(shards + 1)
	var err error
	if l.region, err = l.system.Spawn("carts", c.props(func(r *region) { l.state = r })); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Second)
	if err := s.outcome(l, l.region, keyed.For("k1", seen("k1"))); err == nil || err.Error() != ErrShards.Error() {
		t.Fatal(err)
	}
	for _, o := range s.up()[:2] {
		o.machine.Crash()
	}
	s.pass(3 * lease)
	if err := s.outcome(l, l.region, keyed.For("k1", seen("k1"))); err != nil {
		t.Fatal(err)
	}
	for _, p := range l.state.table.places {
		if p.epoch < 2 {
			t.Errorf("epoch %d: it has gone back", p.epoch)
		}
	}
}

// The shards of a region that is stopped on a node that goes on have new owners at once.
func TestARegionStops(t *testing.T) {
	s := three(t)
	o := s.owner("k1")
	s.ask(o, keyed.For("k1", seen("k1")), new(string))
	o.system.Stop(o.region)
	s.pass(time.Second)
	for _, l := range s.up() {
		if l != o {
			s.ask(l, keyed.For("k1", seen("k1")), new(string))
		}
	}
}

// A node that is drained has no shards any more, and no question fails meanwhile. It gets some again when it is not.
func TestDrain(t *testing.T) {
	s := three(t)
	l := s.owner("k1")
	for k := range keys {
		s.ask(s.up()[k%3], keyed.For(fmt.Sprint("k", k), seen(fmt.Sprint("k", k))), new(string))
	}
	var x State
	s.ask(l, l.order("drain", wish{On: true}), &x)
	for range 30 { // numbered, so that a loss is a failure
		s.act()
		s.pass(20 * time.Millisecond)
	}
	s.pass(10 * time.Second)
	if s.ask(l, l.order("state", wish{}), &x); x.Owned != 0 || x.Keys != 0 || x.Pending {
		t.Errorf("%+v", x)
	}
	s.ask(l, l.order("drain", wish{}), &x)
	s.pass(10 * time.Second)
	if s.ask(l, l.order("state", wish{}), &x); x.Owned == 0 || x.Pending {
		t.Errorf("%+v", x)
	}
}

// An actor that does not come to rest keeps its shard where it is, and is stopped if its node is drained.
func TestBusyKeysStay(t *testing.T) {
	s := three(t)
	o := s.owner("k1")
	next := s.up()[0]
	if next == o {
		next = s.up()[1]
	}
	s.ask(o, keyed.For("k1", note{Op: "busy", Key: "k1", For: time.Hour}), nil)
	var p Place
	s.ask(o, o.order("move", wish{Key: "k1", Node: next.number}), &p)
	s.pass(patience + time.Second)
	if s.stats["given up or back"] == 0 {
		t.Error("the move was not given up")
	}
	s.ask(o, keyed.For("k1", seen("k1")), new(string))
	if s.stats["begun"] != 1 {
		t.Errorf("%d starts", s.stats["begun"])
	}
	s.ask(o, o.order("drain", wish{On: true}), new(State))
	s.pass(4*patience + pause<<3)
	if s.owner("k1") == o {
		t.Error("it is there still")
	}
}

// A singleton acts on one node, without a message, and on another one after the lease if its node is lost.
func TestSingleton(t *testing.T) {
	s := newSim(4, map[string]int{}, broken{})
	t.Cleanup(func() {
		if s.close(); s.failure != "" {
			t.Error(s.failure)
		}
	})
	for range 3 {
		s.start()
	}
	s.pass(2 * time.Second)
	for _, l := range s.up() {
		c := New("clock", l.node, keyed.New(host.Native(func() host.Actor { return &worker{life: l} }))).WithRole("back").WithSingleton("one")
		ref, err := l.system.Spawn("clock", c.props(func(*region) {}))
		if err != nil {
			t.Fatal(err)
		}
		l.region = ref
	}
	s.pass(2 * time.Second)
	if n := len(s.living["one"]); n != 1 {
		t.Fatalf("%d are there", n)
	}
	for _, l := range s.up() { // whatever key a message names
		s.ask(l, keyed.For("other", note{Op: "ask", Key: "one"}), new(string))
		if err := s.outcome(l, l.region, host.Below(l.region, "other").Message(seen("other"))); err == nil {
			t.Error("there is another one")
		}
	}
	first := s.living["one"][0].life
	_ = first.system.Tell(first.region, note{Op: "end", Key: "one"})
	s.pass(100 * time.Millisecond)
	if n := len(s.living["one"]); n != 0 {
		t.Fatalf("%d are there", n)
	}
	s.pass(2 * time.Second)
	if n := len(s.living["one"]); n != 1 || s.living["one"][0].life != first {
		t.Fatalf("%d are there", n)
	}
	first.machine.Crash()
	s.pass(lease)
	if n := len(s.living["one"]); n != 1 {
		t.Fatalf("%d are there", n)
	}
	s.pass(lease)
	if n := len(s.living["one"]); n != 2 || s.living["one"][1].life == first { // the first one's machine has crashed
		t.Fatalf("%d are there", n)
	}
	for _, l := range s.up() {
		s.ask(l, note{Op: "ask", Key: "one"}, new(string))
	}
}

// Shares are in proportion to the weights, and a region that comes or goes moves its own shards only.
func TestRendezvous(t *testing.T) {
	tab := &table{places: make([]place, MaxShards)}
	for i := range 4 {
		tab.hosts = append(tab.hosts, hosting{Ref: abi.Ref(i+1)<<54 | abi.Ref(i*77+5), Born: uint64(i), Weight: 1 + i%2*2})
	}
	count := func(t *table) (all []abi.Ref) {
		for s := range t.places {
			all = append(all, t.ideal(s))
		}
		return all
	}
	before := count(tab)
	for _, h := range tab.hosts {
		n := 0
		for _, r := range before {
			if r == h.Ref {
				n++
			}
		}
		if want := MaxShards * h.Weight / 8; math.Abs(float64(n-want)) > 0.1*MaxShards/4 {
			t.Errorf("%d shards with weight %d, want about %d", n, h.Weight, want)
		}
	}
	less := tab.clone()
	lost := less.hosts[1].Ref
	less.hosts = slices.Delete(less.hosts, 1, 2)
	for s, r := range count(less) {
		if before[s] != lost && r != before[s] {
			t.Fatalf("shard %d has moved", s)
		}
	}
	tab.hosts[0].Leaving = true
	if slices.Contains(count(tab), tab.hosts[0].Ref) {
		t.Error("one that leaves gets shards")
	}
	tab.places[3].pin = 1
	if tab.ideal(3) == tab.hosts[0].Ref {
		t.Error("one that leaves gets a shard by hand")
	}
	if tab.places[3].pin = 3; tab.ideal(3).Node() != 3 {
		t.Error("a pin has no effect")
	}
}

// No more shards move at a time than are allowed.
func TestMovesAreBounded(t *testing.T) {
	tab := &table{places: make([]place, 64)}
	v := &view{self: hosting{Ref: 1<<54 | 9, Born: 1, Weight: 1}, hosts: true, plans: true, shards: 64, moves: 3, guarded: true, returns: true,
		gone: func(hosting) bool { return false }, held: func(int) bool { return false }}
	tab = tab.next(v)
	tab.hosts = append(tab.hosts, hosting{Ref: 2<<54 | 7, Born: 2, Weight: 1})
	for range 3 {
		tab = tab.next(v)
		moving := 0
		for _, p := range tab.places {
			if p.from != 0 {
				moving++
			}
		}
		if moving != 3 {
			t.Fatalf("%d move", moving)
		}
	}
}

func TestCheck(t *testing.T) {
	good := New("a", &cluster.Node{}, keyed.New(host.Func(nil)))
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{
		New("", &cluster.Node{}, keyed.New(host.Func(nil))), New("a", nil, keyed.New(host.Func(nil))), good.WithShards(0), good.WithShards(MaxShards + 1),
		good.WithWeight(0), good.WithWeight(MaxWeight + 1), good.WithMoves(0), good.WithPatience(0), good.WithBuffer(0, 1), good.WithBuffer(1, 0),
	} {
		if c.Check() == nil {
			t.Errorf("%+v", c)
		}
	}
}

func FuzzTable(f *testing.F) {
	tab := &table{hosts: []hosting{{Ref: 1<<54 | 3, Born: 4, Weight: 1}, {Ref: 2<<54 | 3, Born: 4, Weight: 2, Leaving: true}}, places: make([]place, 3)}
	tab.places[0] = place{owner: tab.hosts[0].Ref, from: tab.hosts[1].Ref, epoch: 9}
	tab.places[1] = place{owner: tab.hosts[1].Ref, epoch: 2, pin: 2}
	f.Add(tab.encode())
	f.Add((&table{places: make([]place, 1)}).encode())
	f.Add(tab.closed((&Config{bundle: "shop"}).mark()).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := decodeTable(cluster.Entry{Value: b, Revision: 1})
		if err != nil {
			return
		}
		y, err := decodeTable(cluster.Entry{Value: x.encode(), Revision: 1})
		if err != nil || !x.same(y) {
			t.Fatalf("%+v\n%+v\n%v", x, y, err)
		}
		for s := range min(len(x.places), 4) {
			x.ideal(s)
		}
	})
}

func FuzzTag(f *testing.F) {
	f.Add("m0:1:2:name")
	f.Add(tag{true, 4095, math.MaxUint64, math.MaxUint64, "a.b"}.String())
	f.Fuzz(func(t *testing.T, s string) {
		x, ok := parseTag(s)
		if ok && x.String() != s {
			t.Fatalf("%q is %+v", s, x)
		}
		if ok && !isTag(s) {
			t.Fatalf("%q", s)
		}
	})
}

func FuzzOrder(f *testing.F) {
	f.Add([]byte(order{opTake, 7, 1 << 40, 1 << 63}.message().Value.(host.Raw)))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeOrder(b)
		if err != nil {
			return
		}
		if again, err := decodeOrder(o.message().Value.(host.Raw)); err != nil || again != o {
			t.Fatalf("%+v %+v %v", o, again, err)
		}
	})
}

// A shard that is asked for before the news of its move has come is handed over when it comes, and not when it is asked for again.
func TestATakeBeforeTheNews(t *testing.T) {
	s := three(t)
	l := s.owner("k1")
	s.Faults.Behind, s.Faults.Most = 500, 20*time.Millisecond
	for range 20 {
		s.ask(l, l.order("drain", wish{On: true}), nil)
		s.pass(again - 50*time.Millisecond)
		if slices.ContainsFunc(l.state.table.places, func(p place) bool { return p.owner == l.region.UID() || p.from == l.region.UID() }) {
			t.Fatalf("a drain takes more than %v", again)
		}
		s.ask(l, l.order("drain", wish{}), nil)
		s.pass(5 * time.Second)
	}
}
