package flow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// N05: a decider holds for the stages that lead to its source, and for nothing that is built after them.
func TestN05_DecidersStayWithinTheirStages(t *testing.T) {
	bad := func(s Source[int]) Source[int] { return Try(s, func(n int) (int, error) { return add(0, n) }) }
	mild := func(s Source[int]) Source[int] { return Supervise(bad(s), always(Resume)) }
	gives(t, Merge(mild(From(-1)), Empty[int]()))
	fails(t, Merge(mild(From(-1)), bad(From(-1))), errBad)
	b := start(t, Together(SuperviseAll(To(From(-1), ForEach(func(int) error { return errBad })), always(Resume)),
		To(From(1), ForEach(func(int) error { return errBad }))))
	if over, err := b.g.Over(); !over || err != errBad {
		t.Errorf("over: %v, %v", over, err)
	}
}

// N05: a restart drops what the stage has emitted, and nobody has taken, as well as its state; its timers are cancelled.
func TestN05_RestartClearsAStage(t *testing.T) {
	h, k, b := between(t, func(s Source[int]) Source[int] {
		return Supervise(Stateful(s, func() func(int) ([]int, error) {
			return func(n int) ([]int, error) {
				if n < 0 {
					return []int{7, 8, 9}, errBad
				}
				return []int{n}, nil
			}
		}), always(Restart))
	})
	k.ask()
	h.send(-1)
	k.has(7) // was pushed before
	k.ask()
	h.send(1)
	k.has(1)
	k.cancel()
	b.over()
	late := &late{}
	h, k, b = between(t, func(s Source[int]) Source[int] {
		return Supervise(Via(s, func() Stage[int, int] { return late }), always(Restart))
	})
	k.ask()
	h.send(1)  // sets the timer
	h.send(-1) // fails
	b.pass(time.Hour)
	if late.rang != 0 {
		t.Error("a timer of before the restart has rung")
	}
	k.cancel()
	b.over()
}

// late sets a timer with each element.
type late struct {
	Plain[int, int]
	rang int
}

func (s *late) OnElement(p *Pipe[int, int], v int) error {
	if v < 0 {
		return errBad
	}
	p.After(1, time.Second)
	p.Pull()
	return nil
}

func (s *late) OnTimer(*Pipe[int, int], int) error { s.rang++; return nil }

// N11, N14: the stages with timers let all elements pass that come in time, also one that holds nothing at the end.
func TestN14_ElementsPass(t *testing.T) {
	for i, s := range []Source[int]{
		InitialTimeout(Range(1, 3), sec), CompletionTimeout(Range(1, 3), sec), IdleTimeout(Range(1, 3), sec), DemandTimeout(Range(1, 3), sec),
		KeepAlive(Range(1, 3), sec, 9), TakeWithin(Range(1, 3), sec), Delay(Range(1, 3), sec, 2), InitialDelay(Range(1, 3), sec),
	} {
		got, err := all(t, s)
		if fmt.Sprint(got) != "[1 2 3]" || err != nil {
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
	gives(t, Delay(Empty[int](), sec, 2))
	// What is delayed is taken before it is wanted.
	h, k, b := between(t, func(s Source[int]) Source[int] { return Delay(s, sec, 2) })
	h.send(1, 2)
	h.wants(0)
	b.pass(sec)
	k.ask().has(1)
	h.wants(1)
	k.ask().has(2)
	k.cancel()
	b.over()
}

// N11: the time of a group begins with its first element, whatever became of the group before.
func TestN11_GroupsBeginAnew(t *testing.T) {
	h, k, b := between(t, func(s Source[int]) Source[[]int] { return GroupedWithin(s, 2, sec) })
	k.ask()
	h.send(1, 2)
	k.has([]int{1, 2})
	k.ask()
	b.pass(3 * sec)
	h.send(3)
	b.pass(sec - 1)
	k.has()
	b.pass(1)
	k.has([]int{3})
	k.cancel()
	b.over()
}

// Timers ring in the order of their times, those of one time in the order in which they were set, also when they are moved.
func TestTimersRingInOrder(t *testing.T) {
	g := To(Never[int](), Ignore[int]()).Start(nil, epoch)
	var rang []int
	var all []*timer
	for i := range 6 {
		all = append(all, newTimer(func() { rang = append(rang, i) }))
	}
	for i, d := range []time.Duration{50, 40, 30, 30, 20, 10} {
		g.set(all[i], d)
	}
	g.set(all[5], 60) // later
	g.set(all[1], 5)  // earlier
	g.set(all[2], 30) // behind the other one of that time
	for now, ok := g.Next(); ok; now, ok = g.Next() {
		g.Run(now, 10)
	}
	if fmt.Sprint(rang) != "[1 4 3 2 0 5]" {
		t.Error(rang)
	}
}

// N15: a merge serves all that have something in turn, and an interleave begins its count anew with the next source.
func TestN15_TurnsOfSources(t *testing.T) {
	gives(t, Take(Merge(Repeat(1), Repeat(2), Repeat(3)), 6), 1, 2, 3, 1, 2, 3)
	gives(t, Interleave(2, From(1), From(10, 11, 12), From(20, 21, 22)), 1, 10, 11, 20, 21, 12, 22)
	h, c, b := fanned(t, 3, Balance[int])
	for _, x := range c {
		x.ask()
	}
	h.send(1, 2, 3)
	for i, x := range c {
		if len(x.got) != 1 {
			t.Errorf("%d has got %v", i, x.got)
		}
	}
	h.end()
	b.over()
}

// N13: once nobody takes new groups, and all that were given are cancelled, the source is.
func TestN13_GroupsThatNobodyWants(t *testing.T) {
	h := &hand[int]{}
	cups := map[int]*cup[int]{}
	groups := &cup[Group[int, int]]{}
	b := start(t, To(Groups(h.source(), 9, func(n int) int { return n % 10 }), groups.sink()))
	h.b, groups.b = b, b
	for n := range 2 {
		groups.ask()
		h.send(n)
		cups[n] = &cup[int]{b: b}
		b.g.add(To(groups.got[n].Source, cups[n].sink()))
		b.run()
		cups[n].ask().has(n)
	}
	groups.cancel()
	h.send(5) // for a new group: it is dropped
	cups[0].ask()
	h.send(10)
	cups[0].has(10)
	cups[0].cancel()
	if h.gone {
		t.Error("cancelled, and a group is taken from")
	}
	h.send(20) // for a cancelled one
	cups[1].ask()
	h.send(21)
	cups[1].has(21)
	cups[1].cancel()
	if !h.gone {
		t.Error("not cancelled")
	}
	b.over()
	// A failure reaches the groups, too.
	x := &hand[int]{}
	out := &cup[Group[int, int]]{}
	b = start(t, To(Groups(x.source(), 9, func(n int) int { return n }), out.sink()))
	x.b, out.b = b, b
	out.ask()
	x.send(1)
	k := &cup[int]{b: b}
	b.g.add(To(out.got[0].Source, k.sink()))
	b.run()
	k.ask()
	x.fail(errBad)
	k.ends(errBad)
	out.ends(errBad)
	b.over()
}

// N18: the failure of what an actor gives is the actor's own; that of what it serves is the taker's alone.
func TestN18_WhoseFailureItIs(t *testing.T) {
	for _, served := range []bool{false, true} {
		n, r := newNet(t), &result{}
		broken := Concat(count(1, 2), Failed[int64](errBad))
		s := To(broken, GiveTo(0, "x", Ints))
		if served {
			s = Serve("x", broken, Ints)
		}
		d := n.node(1, s)
		taker := n.node(2, To(TakeFrom(1, "x", Ints, Window{}), r.sink()))
		taker.idle()
		if !r.over || r.err == nil || !strings.Contains(r.err.Error(), "bad") {
			t.Errorf("%+v", r)
		}
		if moved := d.g.Moved(); moved != (Moved{Given: 2}) || taker.g.Moved() != (Moved{Taken: 2}) {
			t.Error(moved, taker.g.Moved())
		}
		if over, err := d.g.Over(); served && (over || err != nil) || !served && (!over || err != errBad) {
			t.Errorf("served: %v: over: %v, %v", served, over, err)
		}
	}
}

// N18: an actor that two streams come from is watched until both have ended, and a message that is late for the first one is no
// mistake.
func TestN18_SeveralStreamsOfOnePeer(t *testing.T) {
	n := newNet(t)
	peer := n.node(9, Stream{})
	k := []*cup[int64]{{}, {}}
	d := n.node(1, Together(To(TakeFrom(9, "x", Ints, Window{}), k[0].sink()), To(TakeFrom(9, "y", Ints, Window{}), k[1].sink())))
	peer.hears("take 1 4 x; take 2 4 y")
	k[0].in.cancel()
	n.run()
	peer.hears("cancel 1")
	if !d.watching[9] {
		t.Fatal("not watched any more")
	}
	peer.says(1, opElements, 1, elements(0, 1, 2)) // before it knew
	peer.hears("")
	if len(d.errs) != 0 {
		t.Error(d.errs)
	}
	peer.says(1, opElements, 1, elements(2)) // again: it does not know
	peer.hears("cancel 1 no such stream")
	k2 := &cup[int64]{}
	d.g.add(To(TakeFrom(9, "z", Ints, Window{}), k2.sink()))
	n.run()
	peer.hears("take 3 4 z")
	k2.in.cancel()
	n.run()
	peer.hears("cancel 3")
	peer.says(1, opElements, 1, elements(0, 1)) // for the first of two that have ended
	peer.hears("")
	n.stop(9)
	if !k[1].over || k[1].err == nil {
		t.Errorf("over: %v, %v", k[1].over, k[1].err)
	}
	d.idle()
	// What is asked for again behind the end is answered, what was on its way is not.
	n = newNet(t)
	peer = n.node(9, Stream{})
	d = n.node(1, Serve("x", count(1, 2), Ints))
	peer.says(1, opTake, 5, wants(4, "x"))
	peer.hears("elements 5 0: 1 2; end 5")
	peer.says(1, opMore, 5, number(6))
	peer.hears("")
	peer.says(1, opMore, 5, number(6))
	peer.hears("end 5 no such stream")
	if len(d.errs) != 0 {
		t.Error(d.errs)
	}
}

// Silence is repeated after, and a message is no silence.
func TestPatience(t *testing.T) {
	n := newNet(t)
	peer := n.node(9, Stream{})
	n.node(1, Serve("x", count(1, 9), Ints))
	peer.says(1, opTake, 5, wants(1, "x"))
	peer.hears("elements 5 0: 1")
	n.pass(patience - 1)
	peer.says(1, opMore, 5, number(2))
	peer.hears("elements 5 1: 2")
	n.pass(patience - 1)
	peer.hears("")
	n.pass(1)
	peer.hears("elements 5 2:")
}

// N02: bounds to the element: of credit, of windows, of names and reasons.
func TestN02_BoundsToTheElement(t *testing.T) {
	n := newNet(t)
	peer := n.node(9, Stream{})
	n.node(1, Serve("x", Never[int64](), Ints))
	peer.says(1, opTake, 5, wants(MaxCredit, "x"))
	peer.hears("")
	peer.says(1, opMore, 5, number(MaxCredit+1))
	peer.hears("end 5 the peer asks for more than 65536 elements")
	peer.says(1, opTake, 6, wants(0, strings.Repeat("x", MaxName))) // there is none, but it may be asked for
	peer.hears("end 6 no such stream")
	for _, c := range []struct{ w, want Window }{
		{Window{}, Window{4, 16, 256 << 10}},
		{Window{First: 40}, Window{16, 16, 256 << 10}},
		{Window{First: 1, Most: 1, Bytes: 1}, Window{1, 1, 1}},
		{Window{First: 1 << 30, Most: 1 << 30}, Window{MaxCredit, MaxCredit, 256 << 10}},
	} {
		if got := c.w.checked(); got != c.want {
			t.Errorf("%+v is %+v, want %+v", c.w, got, c.want)
		}
	}
	if got := clip(strings.Repeat("x", MaxReason)); len(got) != MaxReason {
		t.Error(len(got))
	}
	if got := clip(strings.Repeat("x", MaxReason-1) + "é"); len(got) != MaxReason-1 {
		t.Error(len(got))
	}
	// Elements in excess of the credit that is left are refused when some have come before.
	k := &cup[int64]{}
	d := n.node(2, To(TakeFrom(9, "y", Ints, Window{}), k.sink()))
	peer.heard()
	peer.says(2, opElements, d.g.ports.last, elements(0, 1, 2, 3))
	peer.says(2, opElements, d.g.ports.last, elements(3, 4, 5))
	if got := peer.heard(); !strings.Contains(got, "not asked for") {
		t.Error(got)
	}
	// A credit has one or two numbers.
	peer.says(1, opTake, 7, func(w *abi.Writer) {
		w.Array(2)
		w.Array(3)
		w.Uint(1)
		w.Uint(1)
		w.Uint(1)
		w.Text("x")
	})
	peer.hears("")
}

// An inbox has room again for what was taken; when nothing more is wanted, who has asked is told, and so is who sends what cannot
// be read.
func TestN18_RoomOfAnInbox(t *testing.T) {
	d := &node{n: newNet(t), watching: map[abi.Ref]bool{}}
	k := &cup[[]byte]{}
	g := To(Inbox(100, Block, Bytes), k.sink()).Start(d, epoch)
	w := abi.NewWriter(nil)
	w.ByteString(make([]byte, MaxInbox/2-100))
	told := 0
	post := func(payload []byte) error {
		return g.Receive(Letter{From: 1, Payload: payload, Ack: func(err error) {
			if err != nil {
				told++
			}
		}})
	}
	if err := post(w.Bytes()); err != nil {
		t.Fatal(err)
	}
	for range 5 { // beside one that waits
		if err := post(w.Bytes()); err != nil {
			t.Fatal(err)
		}
		k.in.pull()
		g.Run(epoch, 100)
	}
	if len(k.got) != 5 || told != 0 {
		t.Errorf("%d elements, %d refused", len(k.got), told)
	}
	if err := post([]byte{0x61, 'x'}); err != ErrElement || told != 1 {
		t.Error(err, told)
	}
	k.in.cancel()
	g.Run(epoch, 100)
	if over, _ := g.Over(); !over || told != 2 {
		t.Errorf("over: %v, %d told", over, told)
	}
	if err := post(w.Bytes()); err != ErrUnknown {
		t.Error(err)
	}
}

// An offer is refused when as many wait, and when nobody hears any more.
func TestN18_OffersAreBounded(t *testing.T) {
	n := newNet(t)
	peer := n.node(9, Stream{})
	k := &cup[Offer]{}
	n.node(1, To(Offers(2), k.sink()))
	offer := func(name string) { peer.says(1, opOffer, 0, func(w *abi.Writer) { w.Text(name) }) }
	for _, name := range []string{"a", "b", "c"} {
		offer(name)
	}
	peer.hears("cancel 0 c")
	k.in.pull()
	n.run()
	if len(k.got) != 1 || k.got[0] != (Offer{9, "a"}) {
		t.Error(k.got)
	}
	k.in.cancel()
	n.run()
	peer.hears("cancel 0 b")
	offer("d")
	peer.hears("cancel 0 d")
}

// Frames: the limit is that of a frame's own bytes, exactly.
func TestFramesAtTheirLimit(t *testing.T) {
	whole := func(s string) Source[[]byte] { return From([]byte(s)) }
	gives(t, Lines(whole("12345\r\n12345\n12345"), 5), "12345", "12345", "12345")
	for _, bad := range []string{"123456\n", "123456\r\n", "123456", "x" + strings.Repeat("y", 100)} {
		fails(t, Lines(whole(bad), 5), ErrFrame)
	}
	gives(t, text2(Lengths(whole("\x03abc\x00"), 1, 3)), "abc", "")
	fails(t, text2(Lengths(whole("\x04abcd"), 1, 3)), ErrFrame)
	gives(t, text2(Lengths(whole("\x00\x00\x00\x01a"), 9, 3)), "a") // a length has 4 bytes at most
	gives(t, text2(Lengths(whole("\x01a"), 0, 3)), "a")
	// Without an end the stage holds the limit and a little more, then it fails.
	h, k, _ := between(t, func(s Source[[]byte]) Source[string] { return Lines(s, 5) })
	k.ask()
	sent := 0
	for !k.over && sent < 100 {
		h.send([]byte("x"))
		sent++
	}
	k.ends(ErrFrame)
	if sent < 6 || sent > 5+17 {
		t.Errorf("it has taken %d bytes", sent)
	}
	gives(t, Fold(Events(Take(Concat(Cycle("data: x"), Empty[string]()), 1024)), 0, func(n int, _ Event) (int, error) { return n, nil }), 0)
	fails(t, Events(Take(Cycle("data: x"), 1025)), ErrFrame)
}
