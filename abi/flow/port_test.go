package flow

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// net is some graphs in actors that send each other messages, in virtual time.
type net struct {
	t     testing.TB
	now   time.Time
	nodes map[abi.Ref]*node
	order []*node
	wire  []parcel
	lose  func(p parcel) bool
	sent  map[abi.Ref]int
}

type parcel struct {
	from, to abi.Ref
	payload  []byte
}

type node struct {
	n           *net
	ref         abi.Ref
	g           *Graph
	incarnation uint64
	watching    map[abi.Ref]bool
	errs        []error
	got         []parcel // without a graph: what has come
}

func (d *node) Send(to abi.Ref, payload []byte) {
	d.n.sent[d.ref]++
	d.n.wire = append(d.n.wire, parcel{d.ref, to, append([]byte(nil), payload...)})
}
func (d *node) Watch(ref abi.Ref) error { d.watching[ref] = true; return nil }
func (d *node) Unwatch(ref abi.Ref)     { delete(d.watching, ref) }
func (d *node) Incarnation() uint64     { return d.incarnation }

func newNet(t testing.TB) *net {
	return &net{t: t, now: epoch, nodes: map[abi.Ref]*node{}, sent: map[abi.Ref]int{}}
}

// node adds an actor; with a zero stream it is played by the test.
func (n *net) node(ref abi.Ref, s Stream) *node {
	d := &node{n: n, ref: ref, watching: map[abi.Ref]bool{}}
	n.nodes[ref], n.order = d, append(n.order, d)
	if s.build != nil {
		d.g = s.Start(d, n.now)
	}
	n.run()
	return d
}

// restart begins another incarnation.
func (d *node) restart(s Stream) {
	d.incarnation++
	d.watching = map[abi.Ref]bool{}
	d.g = s.Start(d, d.n.now)
	d.n.run()
}

// stop ends an actor: what comes for it is lost, and its watchers are told.
func (n *net) stop(ref abi.Ref) {
	delete(n.nodes, ref)
	for _, d := range n.order {
		if d.watching[ref] && d.g != nil {
			delete(d.watching, ref)
			d.g.Terminated(ref, "boom")
		}
	}
	n.run()
}

func (n *net) run() {
	n.t.Helper()
	for turns := 0; ; turns++ {
		if turns > 100_000 {
			n.t.Fatal("no end")
		}
		more := false
		for _, d := range n.order {
			if d.g != nil {
				more = d.g.Run(n.now, 50) || more
			}
		}
		if len(n.wire) == 0 {
			if !more {
				return
			}
			continue
		}
		p := n.wire[0]
		n.wire = n.wire[1:]
		d := n.nodes[p.to]
		switch {
		case d == nil || n.lose != nil && n.lose(p):
		case d.g == nil:
			d.got = append(d.got, p)
		default:
			if err := d.g.Receive(Letter{From: p.from, Payload: p.payload}); err != nil {
				d.errs = append(d.errs, err)
			}
		}
	}
}

func (n *net) pass(d time.Duration) {
	n.t.Helper()
	for end := n.now.Add(d); ; {
		next := end
		for _, d := range n.order {
			if d.g != nil && n.nodes[d.ref] == d {
				if at, ok := d.g.Next(); ok && at.Before(next) {
					next = at
				}
			}
		}
		n.now = next
		n.run()
		if next.Equal(end) {
			return
		}
	}
}

// says sends a message from an actor that the test plays.
func (d *node) says(to abi.Ref, op, id uint64, put func(w *abi.Writer)) {
	w := abi.NewWriter(nil)
	begin(w, op, id)
	if put == nil {
		w.Null()
	} else {
		put(w)
	}
	d.Send(to, w.Bytes())
	d.n.run()
}

func number(n uint64) func(w *abi.Writer) { return func(w *abi.Writer) { w.Uint(n) } }

func wants(credit uint64, name string) func(w *abi.Writer) {
	return func(w *abi.Writer) { w.Array(2); w.Uint(credit); w.Text(name) }
}

func elements(before uint64, vs ...int64) func(w *abi.Writer) {
	return func(w *abi.Writer) {
		w.Array(1 + len(vs))
		w.Uint(before)
		for _, v := range vs {
			w.Int(v)
		}
	}
}

// heard describes what has come to an actor that the test plays, and takes it.
func (d *node) heard() string {
	d.n.t.Helper()
	var all []string
	for _, p := range d.got {
		m, err := decode(p.payload)
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		text := fmt.Sprint([...]string{"", "offer", "take", "more", "cancel", "elements", "end", "stop"}[m.op], " ", m.id)
		switch m.op {
		case opOffer:
			text += " " + m.name
		case opTake:
			text += fmt.Sprint(" ", m.count, " ", m.name)
		case opMore:
			text += fmt.Sprint(" ", m.count)
		case opElements:
			text += fmt.Sprint(" ", m.count, ":")
			for range m.n {
				text += fmt.Sprint(" ", m.r.Int())
			}
		default:
			text += " " + strings.TrimPrefix(m.reason, "flow: ")
		}
		all = append(all, strings.TrimSpace(text))
	}
	d.got = nil
	return strings.Join(all, "; ")
}

func (d *node) hears(want string) {
	d.n.t.Helper()
	if got := d.heard(); got != want {
		d.n.t.Errorf("came %q\nwant %q", got, want)
	}
}

// idle checks that a graph has nothing left of its connections.
func (d *node) idle() {
	d.n.t.Helper()
	ps := &d.g.ports
	if len(ps.all) != 0 || len(ps.offers) != 0 || len(ps.dirty) != 0 || len(d.watching) != 0 {
		d.n.t.Errorf("left: %d streams, %d offers, %d batches, watches %v", len(ps.all), len(ps.offers), len(ps.dirty), d.watching)
	}
	if over, _ := d.g.Over(); !over {
		d.n.t.Errorf("%d links are open", d.g.live)
	}
	if _, left := d.g.Next(); left {
		d.n.t.Error("a timer is left")
	}
}

func count(first, last int64) Source[int64] {
	return Map(Range(int(first), int(last)), func(n int) int64 { return int64(n) })
}

type result struct {
	got  []int64
	over bool
	err  error
}

func (r *result) sink() Sink[int64] {
	return Drain(func(*Graph) (func(int64) error, func(error)) {
		return func(v int64) error { r.got = append(r.got, v); return nil }, func(err error) { r.over, r.err = true, err }
	})
}

// N18: a stream from one actor through a second one to a third, taken and offered.
func TestN18_StreamsAcrossActors(t *testing.T) {
	n, r := newNet(t), &result{}
	a := n.node(1, Serve("numbers", count(1, 100), Ints))
	c := n.node(3, To(FlatConcat(Take(Offers(4), 1), func(o Offer) Source[int64] { return TakeFrom(o.From, o.Name, Ints, Window{}) }), r.sink()))
	b := n.node(2, To(Map(TakeFrom(1, "numbers", Ints, Window{}), func(v int64) int64 { return 2 * v }), GiveTo(3, "doubled", Ints)))
	if !r.over || r.err != nil || len(r.got) != 100 || r.got[0] != 2 || r.got[99] != 200 {
		t.Fatalf("%d elements, over: %v, %v", len(r.got), r.over, r.err)
	}
	b.idle()
	c.idle()
	if len(a.g.ports.all) != 0 || len(a.watching) != 0 {
		t.Error("a stream is left")
	}
	// It can be taken again, by several.
	for ref := abi.Ref(4); ref < 7; ref++ {
		r := &result{}
		n.node(ref, To(TakeFrom(1, "numbers", Ints, Window{}), r.sink())).idle()
		if len(r.got) != 100 || !r.over || r.err != nil {
			t.Errorf("%d elements, over: %v, %v", len(r.got), r.over, r.err)
		}
	}
	a.g.Switch().Shutdown()
	n.run()
	a.idle()
	for _, d := range n.order {
		if len(d.errs) > 0 {
			t.Errorf("%d: %v", d.ref, d.errs)
		}
	}
}

// N02: a taker asks for 4 at first, for 16 at most by default, and never gets more than it has asked for.
func TestN02_CreditAcrossActors(t *testing.T) {
	n := newNet(t)
	peer := n.node(9, Stream{})
	k := &cup[int64]{}
	d := n.node(1, To(TakeFrom(9, "x", Ints, Window{}), k.sink()))
	id := d.g.ports.last
	peer.hears(fmt.Sprintf("take %d 4 x", id))
	ask := func() { k.in.pull(); n.run() }
	peer.says(1, opElements, id, elements(0, 1, 2, 3, 4))
	peer.hears("") // nothing was taken yet
	ask()
	peer.hears("")
	ask() // two of four are free: they are asked for at once
	peer.hears(fmt.Sprintf("more %d 6", id))
	ask()
	ask()
	peer.hears(fmt.Sprintf("more %d 8", id))
	sent := uint64(4)
	for range 12 { // whenever it has to wait the window grows
		ask()
		peer.says(1, opElements, id, elements(sent, 1))
		sent++
	}
	if k := d.g.ports.all[0].(*taking[int64]); k.window != DefaultMost || int(k.granted-k.received)+k.q.n > DefaultMost {
		t.Errorf("the window is %d, %d are asked for", k.window, k.granted-k.received)
	}

	// The giver, for its part, sends what there is credit for, in one message.
	n = newNet(t)
	peer = n.node(9, Stream{})
	d = n.node(1, Serve("x", count(1, 9), Ints))
	peer.says(1, opTake, 5, wants(0, "x"))
	peer.hears("")
	peer.says(1, opMore, 5, number(2))
	peer.hears("elements 5 0: 1 2")
	peer.says(1, opMore, 5, number(1)) // older: nothing happens
	peer.hears("")
	peer.says(1, opMore, 5, number(5))
	peer.hears("elements 5 2: 3 4 5")
	peer.says(1, opMore, 5, number(1000))
	peer.hears("elements 5 5: 6 7 8 9; end 5")
	if len(d.g.ports.all) != 0 {
		t.Error("the stream is left")
	}
}

// Peers that break the rules: each has its error, the stream ends for both, and nothing is left.
func TestHostileTakers(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(peer *node)
		want string
		err  error
	}{
		{"2^63 at once", func(p *node) { p.says(1, opTake, 5, wants(1<<63, "x")) }, "end 5 the peer asks for more than 65536 elements", nil},
		{"2^63 later", func(p *node) { p.says(1, opTake, 5, wants(1, "x")); p.heard(); p.says(1, opMore, 5, number(1<<63)) },
			"end 5 the peer asks for more than 65536 elements", nil},
		{"no such stream", func(p *node) { p.says(1, opTake, 5, wants(1, "y")) }, "end 5 no such stream", ErrUnknown},
		{"twice", func(p *node) {
			p.says(1, opTake, 5, wants(1, "x"))
			p.heard()
			p.says(1, opTake, 5, wants(1, "x"))
			p.says(1, opCancel, 5, nil)
		}, "", ErrUnknown},
		{"more of nothing", func(p *node) { p.says(1, opMore, 5, number(1)) }, "end 5 no such stream", ErrUnknown},
		{"cancel of nothing", func(p *node) { p.says(1, opCancel, 5, nil) }, "", ErrUnknown},
		{"cancel twice", func(p *node) {
			p.says(1, opTake, 5, wants(1, "x"))
			p.heard()
			p.says(1, opCancel, 5, nil)
			p.says(1, opCancel, 5, nil)
		}, "", ErrUnknown},
		{"elements for nothing", func(p *node) { p.says(1, opElements, 5, elements(0, 1)) }, "cancel 5 no such stream", ErrUnknown},
		{"an end of nothing", func(p *node) { p.says(1, opEnd, 5, nil) }, "", ErrUnknown},
		{"an offer that nobody hears", func(p *node) { p.says(1, opOffer, 0, func(w *abi.Writer) { w.Text("z") }) }, "cancel 0 z", ErrUnknown},
		{"an unknown operation", func(p *node) { p.says(1, 99, 5, nil) }, "", ErrMessage},
		{"a credit that is a text", func(p *node) { p.says(1, opMore, 5, func(w *abi.Writer) { w.Text("9") }) }, "", ErrMessage},
		{"a name of 256 bytes", func(p *node) { p.says(1, opTake, 5, wants(1, strings.Repeat("x", 256))) }, "", ErrMessage},
		{"a stop", func(p *node) { p.says(1, opStop, 0, nil) }, "", ErrForbidden},
	} {
		n := newNet(t)
		peer := n.node(9, Stream{})
		d := n.node(1, Serve("x", count(1, 9), Ints))
		c.do(peer)
		if got := peer.heard(); got != c.want {
			t.Errorf("%s: came %q, want %q", c.name, got, c.want)
		}
		if err := errors.Join(d.errs...); !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		d.g.Switch().Shutdown()
		n.run()
		if len(d.g.ports.all) != 0 {
			t.Errorf("%s: a stream is left", c.name)
		}
		d.idle()
	}
}

func TestHostileGivers(t *testing.T) {
	const id = 1
	for _, c := range []struct {
		name string
		do   func(peer *node)
		want string
		err  error
	}{
		{"without credit", func(p *node) { p.says(1, opElements, id, elements(0, 1, 2, 3, 4, 5)) }, "cancel 1 the peer has sent elements that it was not asked for", ErrNoCredit},
		{"twice without credit", func(p *node) {
			p.says(1, opElements, id, elements(0, 1, 2, 3, 4, 5))
			p.heard()
			p.says(1, opElements, id, elements(0, 1, 2, 3, 4, 5))
		}, "cancel 1 no such stream", ErrNoCredit},
		{"a gap", func(p *node) { p.says(1, opElements, id, elements(1, 1)) }, "cancel 1 elements got lost", ErrLost},
		{"not an integer", func(p *node) {
			p.says(1, opElements, id, func(w *abi.Writer) { w.Array(2); w.Uint(0); w.Text("x") })
		}, "cancel 1 an element cannot be decoded", ErrElement},
		{"more behind it", func(p *node) {
			p.says(1, opElements, id, func(w *abi.Writer) { elements(0, 1)(w); w.Int(1) })
		}, "cancel 1 an element cannot be decoded", ErrElement},
		{"ends twice", func(p *node) { p.says(1, opEnd, id, nil); p.says(1, opEnd, id, nil) }, "", nil},
		{"elements behind the end", func(p *node) { p.says(1, opEnd, id, nil); p.says(1, opElements, id, elements(0, 1)) }, "cancel 1 no such stream", nil},
		{"a failure", func(p *node) {
			p.says(1, opElements, id, elements(0, 1))
			p.says(1, opEnd, id, func(w *abi.Writer) { w.Text("no") })
		}, "", &PeerError{9, "no"}},
	} {
		n := newNet(t)
		peer := n.node(9, Stream{})
		k := &cup[int64]{}
		d := n.node(1, To(TakeFrom(9, "x", Ints, Window{}), k.sink()))
		peer.heard()
		c.do(peer)
		if got := peer.heard(); got != c.want {
			t.Errorf("%s: came %q, want %q", c.name, got, c.want)
		}
		k.in.pull()
		n.run()
		if !k.over || c.err == nil != (k.err == nil) || c.err != nil && k.err.Error() != c.err.Error() {
			t.Errorf("%s: over: %v, %v, want %v", c.name, k.over, k.err, c.err)
		}
		d.idle()
	}
}

// Nobody else's messages have an effect on a stream.
func TestStreamsOfOthers(t *testing.T) {
	n := newNet(t)
	peer, thief := n.node(9, Stream{}), n.node(8, Stream{})
	d := n.node(1, Serve("x", count(1, 9), Ints))
	peer.says(1, opTake, 5, wants(2, "x"))
	peer.hears("elements 5 0: 1 2")
	thief.says(1, opMore, 5, number(9))
	thief.says(1, opCancel, 5, nil)
	thief.hears("end 5 no such stream")
	peer.hears("")
	peer.says(1, opMore, 5, number(3))
	peer.hears("elements 5 2: 3")
	thief.says(1, opTake, 5, wants(1, "x")) // the same number, of another actor
	thief.hears("elements 5 0: 1")
	if len(d.errs) != 2 || d.errs[0] != ErrUnknown || d.errs[1] != ErrUnknown {
		t.Error(d.errs)
	}
	// What is for one actor only.
	n.node(2, To(count(1, 9), GiveTo(9, "y", Ints)))
	peer.hears("offer 0 y")
	thief.says(2, opTake, 7, wants(1, "y"))
	thief.hears("end 7 no such stream")
	peer.says(2, opTake, 7, wants(1, "y"))
	peer.hears("elements 7 0: 1")
	k := &cup[int64]{}
	n.node(3, To(TakeFrom(9, "x", Ints, Window{}), k.sink()))
	thief.says(3, opElements, 1, elements(0, 1))
	thief.says(3, opEnd, 1, nil)
	k.in.pull()
	n.run()
	if len(k.got) != 0 || k.over {
		t.Errorf("%v, over: %v", k.got, k.over)
	}
}

// Whatever is sent, tables stay within their bounds.
func TestConnectionsAreBounded(t *testing.T) {
	n := newNet(t)
	d := n.node(1, Serve("x", count(1, 1<<30), Ints))
	for ref := abi.Ref(100); ref < 120; ref++ {
		peer := n.node(ref, Stream{})
		for id := range uint64(MaxPeer + 3) {
			peer.says(1, opTake, id+1, wants(0, "x"))
		}
		switch got := peer.heard(); {
		case ref == 100 && strings.Count(got, "too many streams") != 3:
			t.Errorf("%d: %s", ref, got)
		case ref == 119 && strings.Count(got, "too many streams") != MaxPeer+3:
			t.Errorf("%d: %s", ref, got)
		}
	}
	if len(d.g.ports.all) != MaxPorts {
		t.Errorf("%d streams", len(d.g.ports.all))
	}
	for ref := abi.Ref(100); ref < 120; ref++ {
		n.stop(ref)
	}
	d.g.Switch().Shutdown()
	n.run()
	d.idle()
}

// The end of an actor ends its streams on both sides, with the failure.
func TestCrashOfTheMiddle(t *testing.T) {
	n := newNet(t)
	var ends []error
	a := n.node(1, Serve("x", Watch(count(1, 1<<30), nil, func(err error) { ends = append(ends, err) }), Ints))
	n.node(2, Serve("y", TakeFrom(1, "x", Ints, Window{}), Ints))
	k := &cup[int64]{}
	c := n.node(3, To(TakeFrom(2, "y", Ints, Window{}), k.sink()))
	k.in.pull()
	n.run()
	n.stop(2)
	k.in.pull()
	n.run()
	if !k.over || k.err == nil || !strings.Contains(k.err.Error(), "the actor has stopped: boom") {
		t.Errorf("over: %v, %v", k.over, k.err)
	}
	if len(ends) != 1 || ends[0] != ErrCancelled {
		t.Error(ends)
	}
	c.idle()
	if len(a.g.ports.all) != 0 {
		t.Error("a stream is left")
	}
}

// A restart of an actor in the middle: its source is told at once, its taker when it asks; a taker that can take again goes on
// from what the source gives again.
func TestRestartOfTheMiddle(t *testing.T) {
	middle := func() Stream { return Serve("y", TakeFrom(1, "x", Ints, Window{First: 1, Most: 1}), Ints) }
	n, r := newNet(t), &result{}
	n.node(1, Serve("x", count(1, 5), Ints))
	b := n.node(2, middle())
	n.lose = func(p parcel) bool { return p.from == 2 && p.to == 3 && strings.Contains(string(p.payload), "\x03") } // it stands still
	c := n.node(3, To(Again(TakeFrom(2, "y", Ints, Window{First: 1, Most: 1}), 1), r.sink()))
	n.lose = nil
	before := len(r.got)
	b.restart(middle())
	if r.over {
		t.Fatal("nobody has told it")
	}
	n.pass(patience)
	n.pass(patience)
	if !r.over || r.err != nil || len(r.got) != before+5 {
		t.Errorf("%+v, before %d", r, before)
	}
	c.idle()
}

// Messages that get lost end a stream with an error instead of leaving it standing still, or are made up for.
func TestLostMessages(t *testing.T) {
	for seed := range int64(60) {
		rnd := rand.New(rand.NewSource(seed))
		n := newNet(t)
		n.lose = func(p parcel) bool { return rnd.Intn(12) == 0 }
		a := n.node(1, Serve("x", count(1, 200), Ints))
		r := &result{}
		c := n.node(2, To(TakeFrom(1, "x", Ints, Window{}), r.sink()))
		n.pass(time.Hour)
		if !r.over {
			t.Fatalf("seed %d: it stands still at %d", seed, len(r.got))
		}
		for i, v := range r.got {
			if v != int64(i+1) {
				t.Fatalf("seed %d: %v at %d", seed, v, i)
			}
		}
		if r.err == nil && len(r.got) != 200 {
			t.Fatalf("seed %d: %d elements, and no error", seed, len(r.got))
		}
		n.lose = nil
		n.pass(time.Hour)
		c.idle()
		if len(a.g.ports.all) != 0 {
			t.Errorf("seed %d: a stream is left", seed)
		}
	}
}

// N18: an inbox takes elements from anyone, answers questions when it has given them on, and ends by a message.
func TestN18_Inbox(t *testing.T) {
	d := &node{n: newNet(t), watching: map[abi.Ref]bool{}}
	start := func(o Overflow) (*Graph, *cup[int64]) {
		k := &cup[int64]{}
		return To(Inbox(2, o, Ints), k.sink()).Start(d, epoch), k
	}
	post := func(g *Graph, v int64, ack func(error)) error {
		w := abi.NewWriter(nil)
		w.Int(v)
		err := g.Receive(Letter{From: 7, Payload: w.Bytes(), Ack: ack})
		g.Run(epoch, 100)
		return err
	}
	var acks []string
	ack := func(n int) func(error) {
		return func(err error) { acks = append(acks, fmt.Sprint(n, " ", err)) }
	}
	for _, c := range []struct {
		o    Overflow
		want string
		acks string
		err  error
	}{
		{Block, "[1 2]", "[3 " + ErrFull.Error() + " 1 <nil> 2 <nil>]", ErrFull},
		{DropNewest, "[1 2]", "[3 " + ErrFull.Error() + " 1 <nil> 2 <nil>]", nil},
		{DropOldest, "[2 3]", "[1 " + ErrFull.Error() + " 2 <nil> 3 <nil>]", nil},
		{DropLast, "[1 3]", "[2 " + ErrFull.Error() + " 1 <nil> 3 <nil>]", nil},
		{DropAll, "[3]", "[1 " + ErrFull.Error() + " 2 " + ErrFull.Error() + " 3 <nil>]", nil},
		{Overrun, "[]", "[3 " + ErrFull.Error() + " 1 " + ErrFull.Error() + " 2 " + ErrFull.Error() + "]", ErrFull},
	} {
		acks = nil
		g, k := start(c.o)
		_, _ = post(g, 1, ack(1)), post(g, 2, ack(2))
		if err := post(g, 3, ack(3)); err != c.err {
			t.Errorf("%d: %v", c.o, err)
		}
		for range 3 {
			k.in.pull()
			g.Run(epoch, 100)
		}
		if fmt.Sprint(k.got) != c.want || fmt.Sprint(acks) != c.acks {
			t.Errorf("%d: %v %v", c.o, k.got, acks)
		}
	}
	for _, end := range []struct {
		l    Letter
		want string
		got  string
	}{
		{Letter{From: 7, Payload: EndOf("")}, "<nil>", "[1]"},
		{Letter{From: 7, Payload: EndOf("no")}, "flow: from 7: no", "[]"},
		{Letter{From: 7, Payload: []byte{0x62, 'n', 'o'}, Failed: true}, "flow: from 7: no", "[]"},
		{Letter{Payload: StopOf(""), Parent: true}, "<nil>", "[]"},
		{Letter{From: 7, Payload: StopOf("no"), Parent: true}, "flow: from 7: no", "[]"},
	} {
		g, k := start(Block)
		_ = post(g, 1, nil)
		if err := g.Receive(end.l); err != nil {
			t.Error(err)
		}
		g.Run(epoch, 100)
		k.in.pull()
		g.Run(epoch, 100)
		if over, _ := g.Over(); !over || fmt.Sprint(k.err) != end.want || fmt.Sprint(k.got) != end.got {
			t.Errorf("over: %v, %v, %v; want %s %s", over, k.err, k.got, end.want, end.got)
		}
		if err := post(g, 1, nil); err != ErrUnknown {
			t.Errorf("behind the end: %v", err)
		}
	}
	g, _ := start(Block)
	if err := g.Receive(Letter{Payload: []byte{0x61, 'x'}}); err != ErrElement {
		t.Errorf("a text: %v", err)
	}
}

func TestAloneAndClosed(t *testing.T) {
	fails(t, TakeFrom(1, "x", Ints, Window{}), ErrAlone)
	g := To(count(1, 3), GiveTo(0, "x", Ints)).Start(nil, epoch)
	for g.Run(epoch, 100) {
	}
	if over, err := g.Over(); !over || err != ErrAlone {
		t.Error(over, err)
	}
	n := newNet(t)
	peer := n.node(9, Stream{})
	k := &cup[int64]{}
	d := n.node(1, Together(Serve("x", count(1, 9), Ints), To(TakeFrom(9, "y", Ints, Window{}), k.sink())))
	peer.says(1, opTake, 5, wants(1, "x"))
	peer.heard()
	d.g.Close("tired")
	n.run()
	peer.hears("cancel 1 tired; end 5 tired")
	// An offer that is refused, or whose receiver ends.
	for _, how := range []func(){func() { peer.says(2, opCancel, 0, func(w *abi.Writer) { w.Text("z") }) }, func() { n.stop(9) }} {
		d = n.node(2, To(count(1, 9), GiveTo(9, "z", Ints)))
		how()
		if over, err := d.g.Over(); !over || err == nil {
			t.Error(over, err)
		}
		d.idle()
	}
}

// A source that has ended before it is taken is taken all the same.
func TestGivenLate(t *testing.T) {
	for _, failed := range []error{nil, errBad} {
		n := newNet(t)
		src := Empty[int64]()
		if failed != nil {
			src = Failed[int64](failed)
		}
		d := n.node(1, To(src, GiveTo(0, "x", Ints)))
		n.pass(time.Minute)
		r := &result{}
		n.node(2, To(TakeFrom(1, "x", Ints, Window{}), r.sink())).idle()
		if !r.over || (r.err == nil) != (failed == nil) {
			t.Errorf("%+v", r)
		}
		d.idle()
	}
}

// Elements that do not fit into one batch travel in several.
func TestBatchesAreBounded(t *testing.T) {
	n := newNet(t)
	size := 0
	n.lose = func(p parcel) bool { size = max(size, len(p.payload)); return false }
	n.node(1, Serve("x", Map(Range(1, 40), func(k int) []byte { return make([]byte, 1000*k) }), Bytes))
	total := 0
	n.node(2, To(TakeFrom(1, "x", Bytes, Window{First: 16, Most: 16}), ForEach(func(b []byte) error { total += len(b); return nil }))).idle()
	if want := 1000 * 40 * 41 / 2; total != want || size > 40_000+64 {
		t.Errorf("%d bytes, want %d; the largest message has %d", total, want, size)
	}
}

// Elements that wait have the bytes of the window, and one element more, however many were asked for; and they go on.
func TestWindowsAreBoundedInBytes(t *testing.T) {
	n := newNet(t)
	made, waiting, most := 0, 0, 0
	n.node(1, Serve("x", Map(Range(1, 100), func(k int) []byte {
		made++
		waiting += 1003
		most = max(most, waiting)
		return make([]byte, 1000)
	}), Bytes))
	got := 0
	taken := TakeFrom(1, "x", Bytes, Window{First: 1000, Most: 1000, Bytes: 10_000})
	n.node(2, To(taken, ForEach(func(b []byte) error { got++; waiting -= 1003; return nil }))).idle()
	if got != 100 || most > 11_003 || most < 10_000 {
		t.Errorf("%d elements, %d bytes at once", got, most)
	}

	// Without demand nothing more than that is made.
	n = newNet(t)
	made = 0
	n.node(1, Serve("x", Map(Range(1, 100), func(k int) []byte { made++; return make([]byte, 1000) }), Bytes))
	n.node(2, To(TakeFrom(1, "x", Bytes, Window{First: 1000, Most: 1000, Bytes: 10_000}), GiveTo(0, "y", Bytes)))
	if made != 10 {
		t.Errorf("%d were made, and nobody takes them", made)
	}

	// One element may be larger than all of the window.
	n = newNet(t)
	n.node(1, Serve("x", Map(Range(1, 5), func(int) []byte { return make([]byte, 30_000) }), Bytes))
	got = 0
	n.node(2, To(TakeFrom(1, "x", Bytes, Window{Bytes: 10}), ForEach(func(b []byte) error { got += len(b); return nil }))).idle()
	if got != 150_000 {
		t.Error(got)
	}
}

// A peer that sends more bytes than it was asked for ends the stream.
func TestBytesWithoutCredit(t *testing.T) {
	n := newNet(t)
	peer := n.node(1, Stream{})
	d := n.node(2, To(TakeFrom(1, "x", Texts, Window{Bytes: 8}), untaken[string]()))
	take, err := decode(peer.got[0].payload)
	if err != nil || take.count != DefaultFirst || take.bytes != 8 {
		t.Fatal(take, err)
	}
	peer.heard()
	peer.says(2, opElements, take.id, func(w *abi.Writer) { w.Array(3); w.Uint(0); w.Text("1234567"); w.Text("too much") })
	if got := peer.heard(); !strings.Contains(got, "cancel") || !strings.Contains(got, "not asked for") || len(d.g.ports.all) != 0 {
		t.Errorf("%q, %d streams", got, len(d.g.ports.all))
	}
}

// untaken is a sink that asks for nothing.
func untaken[T any]() Sink[T] {
	return Sink[T]{func(_ *Graph, in *link[T]) { in.in = nothing[T]{} }}
}

// An inbox has a bound in bytes: of three elements of half of it the last is refused, or the others are lost.
func TestInboxesAreBoundedInBytes(t *testing.T) {
	half := make([]byte, MaxInbox/2-100)
	w := abi.NewWriter(nil)
	w.ByteString(half)
	for o, want := range map[Overflow]int{Block: 2, DropNewest: 2, DropOldest: 2, DropLast: 2, DropAll: 1} {
		var x *inbox[[]byte]
		g := To(Source[[]byte]{func(g *Graph) *link[[]byte] {
			l := Inbox(100, o, Bytes).open(g)
			x = g.ports.inbox[0].(*inbox[[]byte])
			return l
		}}, untaken[[]byte]()).Start(nil, epoch)
		refused := 0
		for range 3 {
			if g.Receive(Letter{From: 1, Payload: w.Bytes(), Ack: func(err error) {
				if err != nil {
					refused++
				}
			}}) != nil && o != Block {
				t.Error(o)
			}
		}
		if x.q.n != want || refused != 3-want || x.bytes != want*len(w.Bytes()) {
			t.Errorf("%d: %d wait with %d bytes, %d refused", o, x.q.n, x.bytes, refused)
		}
		big := abi.NewWriter(nil)
		big.ByteString(make([]byte, 2*MaxInbox))
		if o == DropAll { // one of any size, alone
			if g.Receive(Letter{From: 1, Payload: big.Bytes()}) != nil || x.q.n != 1 {
				t.Error(x.q.n)
			}
		}
	}
}

func FuzzMessages(f *testing.F) {
	for _, put := range []func(w *abi.Writer){nil, number(3), wants(3, "x"), elements(0, 1, 2), func(w *abi.Writer) { w.Text("x") }} {
		for op := uint64(1); op <= opStop+1; op++ {
			w := abi.NewWriter(nil)
			begin(w, op, 1)
			if put == nil {
				w.Null()
			} else {
				put(w)
			}
			f.Add(w.Bytes(), w.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		n := newNet(t)
		d := n.node(1, Together(Serve("x", count(1, 100), Ints), To(TakeFrom(9, "y", Ints, Window{}), Ignore[int64]()),
			To(count(1, 9), GiveTo(9, "z", Ints)), To(Offers(2), Ignore[Offer]())))
		for range 20 {
			for _, p := range [][]byte{first, second} {
				_ = d.g.Receive(Letter{From: 9, Payload: p})
				for d.g.Run(epoch, 1000) {
				}
			}
		}
		if len(d.g.ports.all) > MaxPeer || len(n.wire) > 200 {
			t.Errorf("%d streams, %d messages", len(d.g.ports.all), len(n.wire))
		}
	})
}

// A taker that takes again in another incarnation has forgotten what it took before.
func TestTakerThatWasRestarted(t *testing.T) {
	n := newNet(t)
	peer := n.node(9, Stream{})
	var ends []error
	d := n.node(1, Serve("x", Watch(count(1, 9), nil, func(err error) { ends = append(ends, err) }), Ints))
	peer.says(1, opTake, 5, wants(1, "x"))
	peer.says(1, opTake, 6, wants(1, "x")) // beside the first one
	if len(d.g.ports.all) != 2 || len(ends) != 0 {
		t.Errorf("%d streams, %v", len(d.g.ports.all), ends)
	}
	peer.says(1, opTake, 1<<32|1, wants(1, "x"))
	if len(d.g.ports.all) != 1 || len(ends) != 2 || ends[0] != ErrCancelled {
		t.Errorf("%d streams, %v", len(d.g.ports.all), ends)
	}
}
