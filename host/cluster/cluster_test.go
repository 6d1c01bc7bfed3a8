package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// net is some nodes that are joined, under a virtual clock.
type net struct {
	*clustertest.World
	t       *testing.T
	members []*member
}

type member struct {
	*cluster.Node
	self    cluster.Member
	machine *clustertest.Machine
	system  *host.System
	lost    error
	refused []string
	told    uint64 // packets that were refused, by the events
	toldOf  map[uint16]uint64
	kinds   []cluster.EventKind
}

func join(t *testing.T, n int, change func(*cluster.Config)) *net {
	t.Helper()
	w := &net{World: clustertest.New(1), t: t}
	w.start(n, 2*time.Second, change)
	return w
}

// start has nodes join, one after another.
func (w *net) start(n int, apart time.Duration, change func(*cluster.Config)) {
	w.t.Helper()
	t := w.t
	for i := range n {
		m := &member{toldOf: map[uint16]uint64{}}
		m.machine = w.Machine(func() uint16 { return m.self.Number })
		cfg := cluster.Config{
			Name: fmt.Sprint("n", i), ID: uint64(i + 1), Directory: m.machine, Links: m.machine, Clock: m.machine, Since: m.machine.Since,
			Lost: func(err error) { m.lost = err },
			Events: func(e cluster.Event) {
				m.kinds = append(m.kinds, e.Kind)
				if e.Kind == cluster.EventRefused {
					m.refused = append(m.refused, e.Text)
					m.told += e.Count
					m.toldOf[e.Node] += e.Count
				}
			},
		}
		if change != nil {
			change(&cfg)
		}
		var err error
		if m.Node, err = cluster.New(cfg); err != nil {
			t.Fatal(err)
		}
		m.Join(func(self cluster.Member, err error) {
			if err != nil {
				t.Fatal(err)
			}
			m.self = self
			if m.system, err = host.New(host.NewConfig("test").WithNode(self.Number).WithManual().WithClock(m.machine).WithSeed(uint64(i))); err == nil {
				err = m.Attach(m.system)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		w.members = append(w.members, m)
		w.pass(apart)
	}
	t.Cleanup(func() {
		for _, m := range w.members {
			if m.system == nil {
				continue
			}
			if err := m.system.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}

func (w *net) pass(d time.Duration) {
	w.t.Helper()
	settle := func() {
		for _, m := range w.members {
			if m.system != nil && m.machine.Runs() {
				m.system.RunUntilIdle(1_000_000)
			}
		}
	}
	for end := w.Clock.Now().Add(d); ; {
		settle()
		next, ok := w.Clock.Next()
		if !ok || next.After(end) {
			w.Clock.Advance(end.Sub(w.Clock.Now()))
			settle()
			return
		}
		w.Clock.AdvanceToNext()
	}
}

func (w *net) spawn(m *member, name string, f func(*host.Context, host.Message) error) host.Ref {
	w.t.Helper()
	ref, err := m.system.Spawn(name, host.Func(f))
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(time.Millisecond)
	return ref
}

func echo(ctx *host.Context, m host.Message) error {
	return ctx.Reply(text(m) + " from " + ctx.Self().Name())
}

func quiet(*host.Context, host.Message) error { return nil }

func text(m host.Message) string {
	var s string
	_ = m.Decode(&s)
	return s
}

// ended is what an ask has ended with, and when.
func (w *net) ended(p *host.Pending, within time.Duration) (host.Message, time.Duration) {
	w.t.Helper()
	for passed := time.Duration(0); passed <= within; passed += 10 * time.Millisecond {
		select {
		case m := <-p.Answer():
			return m, passed
		default:
			w.pass(10 * time.Millisecond)
		}
	}
	p.Cancel()
	w.t.Fatalf("no answer within %v", within)
	return host.Message{}, 0
}

func (w *net) ask(m *member, to host.Ref, v any) *host.Pending {
	w.t.Helper()
	p, err := m.system.Request(to, v)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// Messages of any size reach other nodes, in parts where a packet is too small.
func TestLargeMessages(t *testing.T) {
	w := join(t, 2, nil)
	size := 0
	y := w.spawn(w.members[1], "y", func(ctx *host.Context, m host.Message) error {
		size = len(text(m))
		return ctx.Reply("ok")
	})
	p := w.ask(w.members[0], y, strings.Repeat("x", 3<<20))
	if m, _ := w.ended(p, 10*time.Second); m.Err() != nil || size != 3<<20 {
		t.Errorf("%d bytes, %v", size, m.Err())
	}
}

// An answer that overtakes the news of the forwarding waits for it, and is no forged one (A11).
func TestAnswersMayOvertakeTheNewsOfTheForwarding(t *testing.T) {
	w := join(t, 3, nil)
	a, b, c := w.members[0], w.members[1], w.members[2]
	z := w.spawn(c, "z", echo)
	y := w.spawn(b, "y", func(ctx *host.Context, m host.Message) error { return ctx.Forward(z) })
	w.Cut(b.machine, a.machine, true)
	p := w.ask(a, y, "hi")
	w.pass(300 * time.Millisecond)
	if len(p.Answer()) != 0 {
		t.Error("it is taken before it is known who may answer")
	}
	w.Cut(b.machine, a.machine, false)
	if m, _ := w.ended(p, time.Second); text(m) != "hi from z" || m.Err() != nil {
		t.Errorf("%q, %v", text(m), m.Err())
	}
	if asks, _ := a.Owed(); asks != 0 {
		t.Errorf("%d asks are left", asks)
	}
}

// An ask to a node that is killed ends within a second, under way or not, with a typed error; a watch when the lease is over.
func TestAsksAndWatchesOfAKilledNode(t *testing.T) {
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	y := w.spawn(b, "y", quiet)
	in := a.system.Inbox(0)
	defer in.Close()
	in.Watch(y)
	under := w.ask(a, y, "under way")
	w.pass(500 * time.Millisecond)
	b.machine.Crash()
	late := w.ask(a, y, "late")
	for _, p := range []*host.Pending{under, late} {
		if m, after := w.ended(p, 2*time.Second); !errors.Is(m.Err(), host.ErrNodeLost) || after > time.Second+50*time.Millisecond {
			t.Errorf("%v after %v", m.Err(), after)
		}
	}
	if m, ok := in.TryReceive(); ok {
		t.Errorf("within the lease: %+v", m)
	}
	w.pass(2 * cluster.DefaultLease)
	if m, ok := in.TryReceive(); !ok || m.Kind != abi.KindTerminated || text(m) != cluster.NodeGone {
		t.Errorf("%+v %q", m, text(m))
	}
	if err := a.system.Tell(y, "hi"); !errors.Is(err, host.ErrNodeLost) {
		t.Error(err)
	}
	if asks, watches := a.Owed(); asks+watches != 0 || len(a.Members()) != 1 {
		t.Error(asks, watches, a.Members())
	}
}

// A partition that ends within the lease loses nothing and tells nobody.
func TestAShortPartition(t *testing.T) {
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	var got []string
	y := w.spawn(b, "y", func(ctx *host.Context, m host.Message) error { got = append(got, text(m)); return nil })
	in := a.system.Inbox(0)
	defer in.Close()
	in.Watch(y)
	w.pass(time.Second)
	w.Cut(a.machine, b.machine, true)
	w.Cut(b.machine, a.machine, true)
	for _, s := range []string{"1", "2", "3"} {
		if err := a.system.Tell(y, s); err != nil {
			t.Error(err)
		}
		w.pass(time.Second)
	}
	w.Heal()
	w.pass(time.Second)
	if m, ok := in.TryReceive(); ok || !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("%+v, %q", m, got)
	}
}

// A node that was paused for longer than its lease does nothing any more: its frames are not sent, and it is told.
func TestAPausedNodeIsLost(t *testing.T) {
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	y := w.spawn(b, "y", quiet)
	a.machine.Pause()
	w.pass(2 * cluster.DefaultLease)
	a.machine.Resume()
	if a.Acting() || !errors.Is(a.lost, cluster.ErrLost) {
		t.Errorf("acting %v, %v", a.Acting(), a.lost)
	}
	if err := a.system.Tell(y, "hi"); !errors.Is(err, host.ErrNodeLost) {
		t.Error(err)
	}
	if got := b.Members(); len(got) != 1 || got[0].Number != b.self.Number {
		t.Errorf("%+v", got)
	}
}

// What does not fit into the credit is refused like a full mailbox.
func TestCredit(t *testing.T) {
	w := join(t, 2, func(c *cluster.Config) { c.Credit = 10_000 })
	a, b := w.members[0], w.members[1]
	y := w.spawn(b, "y", quiet)
	w.Cut(a.machine, b.machine, true)
	var err error
	for range 100 {
		if err = a.system.Tell(y, strings.Repeat("x", 1000)); err != nil {
			break
		}
	}
	if !errors.Is(err, host.ErrMailboxFull) || a.Waiting(b.self.Number) > 10_000+2000 {
		t.Errorf("%v, %d bytes wait", err, a.Waiting(b.self.Number))
	}
	if letters, _ := a.system.DeadLetters(); len(letters) != 1 || letters[0].Reason != host.DeadMailboxFull {
		t.Errorf("%+v", letters)
	}
}

// A message that has arrived for a full mailbox is a dead letter there. Who asks is told, who only tells is not.
func TestAFullMailboxOfAnotherNode(t *testing.T) {
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	y, err := b.system.Spawn("y", host.Func(quiet).WithLimits(host.Limits{Mailbox: 1}))
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	for i := range 4 { // the first one leaves at once, the others together
		if err := a.system.Tell(y, i); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	p := w.ask(a, y, "hi")
	if m, _ := w.ended(p, time.Second); !errors.Is(m.Err(), host.ErrMailboxFull) {
		t.Errorf("%+v, %v", m, m.Err())
	}
	if letters, _ := b.system.DeadLetters(); len(letters) != 3 || letters[0].Reason != host.DeadMailboxFull || !strings.HasSuffix(letters[0].Path, "/user/y") {
		t.Errorf("%+v", letters)
	}
	if letters, _ := a.system.DeadLetters(); len(letters) != 0 {
		t.Errorf("the sender's node: %+v", letters)
	}
}

// A small credit does not wait for confirmations that have time.
func TestASmallCreditIsConfirmedSoon(t *testing.T) {
	w := join(t, 2, func(c *cluster.Config) { c.Credit = 20_000 })
	a, b := w.members[0], w.members[1]
	got := 0
	y := w.spawn(b, "y", func(*host.Context, host.Message) error { got++; return nil })
	began := w.Clock.Now()
	for sent := 0; sent < 500; {
		err := a.system.Tell(y, strings.Repeat("x", 1000))
		switch {
		case err == nil:
			sent++
		case errors.Is(err, host.ErrMailboxFull):
			w.pass(100 * time.Microsecond)
		default:
			t.Fatal(err)
		}
	}
	if took := w.Clock.Now().Sub(began); took > 200*time.Millisecond {
		t.Errorf("500 messages take %v", took)
	}
	w.pass(100 * time.Millisecond)
	if got != 500 {
		t.Errorf("%d messages have come", got)
	}
}

// A member states only senders of its own number, and stops nobody without the right. What it may not is refused, with an
// event that says why, and has no effect.
func TestAHostileMember(t *testing.T) {
	frame := func(m network.Message) []byte {
		if m.Payload == nil && m.Marks&(network.Poison|network.Kill) == 0 {
			m.Payload = []byte{0xf6}
		}
		return network.AppendMessage(nil, &m)
	}
	sig := func(g signal.Signal) []byte { return network.AppendSignal(nil, &g) }
	own, other := abi.Ref(2)<<54|9, abi.Ref(3)<<54|9
	for name, x := range map[string]struct {
		frame []byte
		why   string
	}{
		"a sender of another node":   {frame(network.Message{Sender: other}), "sender"},
		"a sender of the receiver":   {frame(network.Message{Sender: abi.Ref(1)<<54 | 9}), "sender"},
		"forwarded by another node":  {frame(network.Message{Sender: other, Via: other}), "sender"},
		"a poison pill":              {frame(network.Message{Sender: own, Marks: network.Poison}), "may not stop"},
		"a kill":                     {frame(network.Message{Sender: own, Marks: network.Kill}), "may not stop"},
		"a stop":                     {sig(signal.Signal{Kind: signal.Stop}), "may not stop"},
		"a kill at once":             {sig(signal.Signal{Kind: signal.Kill}), "may not stop"},
		"a watch for another":        {sig(signal.Signal{Kind: signal.Watch, From: other}), "sender"},
		"the end of another's actor": {sig(signal.Signal{Kind: signal.Terminated, From: other}), "sender"},
		"a guess of another's":       {sig(signal.Signal{Kind: signal.Strayed, From: other}), "sender"},
		"malformed":                  {[]byte{9, 9}, "malformed"},
	} {
		w := join(t, 2, nil)
		a, b := w.members[0], w.members[1]
		got := 0
		y := w.spawn(a, "y", func(*host.Context, host.Message) error { got++; return nil })
		b.machine.Send(a.self.Number, cluster.Packet(b.self, a.self, 1, 1, y.UID(), false, x.frame))
		w.pass(time.Second)
		if len(a.refused) != 1 || !strings.Contains(a.refused[0], x.why) {
			t.Errorf("%s: %q", name, a.refused)
		}
		if _, err := a.system.Lookup("/user/y"); err != nil || got != 0 {
			t.Errorf("%s: %v, %d messages", name, err, got)
		}
	}
}

// No member ends an ask of another node with an answer of somebody who was not asked, or in the name of one who was.
func TestAnswersThatAMemberMakesUp(t *testing.T) {
	reply := func(sender abi.Ref, marks network.Marks) func(host.Message) []byte {
		return func(m host.Message) []byte {
			return network.AppendMessage(nil, &network.Message{Kind: abi.KindReply, Marks: marks, Sender: sender, Correlation: m.Correlation, Payload: []byte{0xf6}})
		}
	}
	for name, x := range map[string]struct {
		of    int // whose actor was asked
		frame func(y, own abi.Ref) func(host.Message) []byte
	}{
		"its host's, to an ask within the node": {0, func(y, own abi.Ref) func(host.Message) []byte { return reply(own, network.OfHost) }},
		"its host's, to an ask of a third node": {2, func(y, own abi.Ref) func(host.Message) []byte { return reply(own, network.OfHost) }},
		"of nobody, to an ask within the node":  {0, func(y, own abi.Ref) func(host.Message) []byte { return reply(0, network.OfHost) }},
		"of nobody, to an ask of a third node":  {2, func(y, own abi.Ref) func(host.Message) []byte { return reply(0, network.OfHost) }},
		"handed on, it says, by who was not asked": {2, func(y, own abi.Ref) func(host.Message) []byte {
			return func(m host.Message) []byte {
				return network.AppendMessage(nil, &network.Message{Kind: abi.KindReply, Sender: y, Via: own, Correlation: m.Correlation, Payload: []byte{0xf6}})
			}
		}},
		"that there will be none": {2, func(y, own abi.Ref) func(host.Message) []byte {
			return func(m host.Message) []byte {
				return network.AppendSignal(nil, &signal.Signal{Kind: signal.Unanswered, From: y, Correlation: m.Correlation, Code: signal.NodeLost})
			}
		}},
	} {
		w := join(t, 3, nil)
		a, b := w.members[0], w.members[1]
		var question host.Message
		y := w.spawn(w.members[x.of], "y", func(_ *host.Context, m host.Message) error { question = m.Clone(); return nil })
		p := w.ask(a, y, "hi")
		w.pass(100 * time.Millisecond)
		b.machine.Send(a.self.Number, cluster.Packet(b.self, a.self, 1, 1, question.Sender.UID(), false, x.frame(y.UID(), abi.Ref(2)<<54|9)(question)))
		w.pass(300 * time.Millisecond)
		if len(p.Answer()) != 0 {
			t.Errorf("%s: taken", name)
		}
		p.Cancel()
	}
}

// What a member says for somebody who was not asked is held within a bound, for all asks together.
func TestWhatIsHeldHasABound(t *testing.T) {
	w := join(t, 3, func(c *cluster.Config) { c.Credit = 64 << 10 })
	a, b, c := w.members[0], w.members[1], w.members[2]
	var asked []host.Message
	y := w.spawn(b, "y", func(_ *host.Context, m host.Message) error { asked = append(asked, m.Clone()); return nil })
	for range 3 {
		defer w.ask(a, y, "hi").Cancel()
	}
	w.pass(100 * time.Millisecond)
	for i, m := range asked {
		forged := network.Message{Kind: abi.KindReply, Sender: abi.Ref(c.self.Number)<<54 | 9, Correlation: m.Correlation, Payload: append([]byte{0x59, 0x9c, 0x40}, make([]byte, 40_000)...)}
		c.machine.Send(a.self.Number, cluster.Packet(c.self, a.self, 1, uint64(i+1), m.Sender.UID(), false, network.AppendMessage(nil, &forged)))
		w.pass(100 * time.Millisecond)
	}
	if len(asked) != 3 || len(a.refused) != 2 || !strings.Contains(a.refused[0], "nobody who was asked") {
		t.Errorf("%d asks, refused: %q", len(asked), a.refused)
	}
}

// Who has the right stops actors of other nodes.
func TestControl(t *testing.T) {
	w := join(t, 2, func(c *cluster.Config) { c.Control = func(m cluster.Member) bool { return m.Name == "n0" } })
	a, b := w.members[0], w.members[1]
	x, y := w.spawn(a, "x", quiet), w.spawn(b, "y", quiet)
	a.system.Stop(y)
	b.system.Stop(x)
	w.pass(time.Second)
	if _, err := b.system.Lookup("/user/y"); !errors.Is(err, host.ErrUnknown) {
		t.Error("who may does not stop")
	}
	if _, err := a.system.Lookup("/user/x"); err != nil || len(a.refused) != 1 {
		t.Error(err, a.refused)
	}
}

// Packets that are malformed, replayed, of another life, of a node that is gone, or that do not end have no effect, and each
// is an event.
func TestHostilePackets(t *testing.T) {
	for name, x := range map[string]struct {
		packets func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte
		got     int
		why     string
	}{
		"whole": {func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte {
			return [][]byte{cluster.Packet(from, to, 1, 1, ref, false, frame)}
		}, 1, ""},
		"replayed": {func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte {
			return slices.Repeat([][]byte{cluster.Packet(from, to, 1, 1, ref, false, frame)}, 3)
		}, 1, ""},
		"malformed": {func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte { return [][]byte{{1, 2, 3}} }, 0, "malformed"},
		"of an earlier life": {func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte {
			from.Born--
			return [][]byte{cluster.Packet(from, to, 1, 1, ref, false, frame)}
		}, 0, "another life"},
		"for an earlier life": {func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte {
			to.Born--
			return [][]byte{cluster.Packet(from, to, 1, 1, ref, false, frame)}
		}, 0, "another life"},
		"ahead": {func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte {
			return [][]byte{cluster.Packet(from, to, 1, 2, ref, false, frame)}
		}, 0, ""},
		"parts of two": {func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte {
			return [][]byte{cluster.Packet(from, to, 1, 1, ref, true, frame[:5]), cluster.Packet(from, to, 1, 2, ref+1, false, frame[5:])}
		}, 0, "do not belong together"},
		"for a third node": {func(from, to cluster.Member, ref abi.Ref, frame []byte) [][]byte {
			return [][]byte{cluster.Packet(from, to, 1, 1, abi.Ref(9)<<54|5, false, frame)}
		}, 0, "another node"},
	} {
		w := join(t, 2, nil)
		a, b := w.members[0], w.members[1]
		got := 0
		y := w.spawn(a, "y", func(*host.Context, host.Message) error { got++; return nil })
		frame := network.AppendMessage(nil, &network.Message{Sender: abi.Ref(b.self.Number)<<54 | 5, Payload: []byte{0xf6}})
		for _, p := range x.packets(b.self, a.self, y.UID(), frame) {
			b.machine.Send(a.self.Number, p)
			w.pass(10 * time.Millisecond)
		}
		w.pass(100 * time.Millisecond)
		if got != x.got || (x.why != "") != (len(a.refused) == 1) || x.why != "" && !strings.Contains(a.refused[0], x.why) {
			t.Errorf("%s: %d messages, refused %q", name, got, a.refused)
		}
	}
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	part := bytes.Repeat([]byte{1}, 1<<20)
	for i := range uint64(cluster.MaxFrame>>20 + 2) {
		b.machine.Send(a.self.Number, cluster.Packet(b.self, a.self, 1, i+1, abi.Ref(1)<<54|5, true, part))
		w.pass(5 * time.Millisecond)
	}
	if len(a.refused) != 1 || !strings.Contains(a.refused[0], "too many") {
		t.Errorf("parts without end: %q", a.refused)
	}
}

// A node that leaves gives its number back at once; the next gets the number that was unused for longest.
func TestLeaving(t *testing.T) {
	w := join(t, 3, nil)
	a, b := w.members[0], w.members[1]
	y := w.spawn(b, "y", quiet)
	in := a.system.Inbox(0)
	defer in.Close()
	in.Watch(y)
	w.pass(time.Second)
	left := errors.New("not yet")
	b.Leave(func(err error) { left = err })
	w.pass(100 * time.Millisecond)
	if m, ok := in.TryReceive(); left != nil || b.lost != nil || !ok || text(m) != cluster.NodeGone || len(a.Members()) != 2 {
		t.Errorf("%v, %v, %+v, %+v", left, b.lost, m, a.Members())
	}
	if slices.Contains(b.kinds, cluster.EventLost) || !slices.Contains(b.kinds, cluster.EventLeft) {
		t.Errorf("who leaves is not lost: %v", b.kinds)
	}
}

// What a node has taken before it leaves is not lost to the others.
func TestLeavingConfirmsWhatHasCome(t *testing.T) {
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	got := 0
	y := w.spawn(b, "y", func(*host.Context, host.Message) error { got++; return nil })
	if err := a.system.Tell(y, "hi"); err != nil {
		t.Fatal(err)
	}
	for got == 0 {
		w.pass(100 * time.Microsecond)
	}
	b.Leave(func(error) {})
	w.pass(time.Second)
	if c := a.Counts(); c.Lost != 0 || len(a.Members()) != 1 {
		t.Errorf("%+v, %+v", c, a.Members())
	}
}

func TestConfigsThatAreRefused(t *testing.T) {
	w := clustertest.New(1)
	m := w.Machine(func() uint16 { return 0 })
	for name, c := range map[string]cluster.Config{
		"name": {Name: "a b", ID: 1, Directory: m, Links: m}, "ID": {Name: "a", Directory: m, Links: m},
		"links": {Name: "a", ID: 1, Directory: m}, "lease": {Name: "a", ID: 1, Directory: m, Links: m, Lease: time.Millisecond},
		"role": {Name: "a", ID: 1, Directory: m, Links: m, Roles: []string{""}},
	} {
		if _, err := cluster.New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if n, err := cluster.New(cluster.Config{Name: "a", ID: 1, Directory: m, Links: m}); err != nil || n.Acting() {
		t.Error(err)
	}
}

// lateDirectory answers late, or not at all.
type lateDirectory struct {
	*clustertest.Machine
	world *clustertest.World
	late  time.Duration
	mute  bool
	began time.Time // of the last Put
}

func (d *lateDirectory) Put(key string, value []byte, revision uint64, done func(uint64, error)) {
	if d.mute {
		return
	}
	if d.late == 0 {
		d.Machine.Put(key, value, revision, done)
		return
	}
	d.began = d.world.Clock.Now()
	d.Machine.Put(key, value, revision, func(at uint64, err error) {
		d.world.Clock.AfterFunc(d.late, func() { done(at, err) })
	})
}

// A renewal counts from its beginning, however late it is confirmed: others count from when they have seen it.
func TestARenewalCountsFromItsBeginning(t *testing.T) {
	var d *lateDirectory
	w := join(t, 1, func(c *cluster.Config) {
		d = &lateDirectory{Machine: c.Directory.(*clustertest.Machine)}
		c.Directory = d
	})
	d.world = w.World
	a := w.members[0]
	w.pass(cluster.DefaultLease)
	d.late = cluster.DefaultLease / 2
	before := d.began
	for d.began.Equal(before) {
		w.pass(10 * time.Millisecond)
	}
	d.mute = true
	fast, slow := cluster.DefaultLease*100/104, cluster.DefaultLease*100/96 // by the clocks that there are
	w.pass(d.began.Add(fast - 10*time.Millisecond).Sub(w.Clock.Now()))
	if !a.Acting() {
		t.Error("the renewal does not count")
	}
	w.pass(d.began.Add(slow + 10*time.Millisecond).Sub(w.Clock.Now()))
	if a.Acting() || !errors.Is(a.lost, cluster.ErrLost) {
		t.Errorf("it acts longer than a lease after the renewal has begun: %v", a.lost)
	}
}
