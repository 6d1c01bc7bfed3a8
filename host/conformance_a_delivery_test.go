package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// A22: what a sender wrote before the send is seen by the receiver, and what one turn wrote
// by the next, whatever worker runs them. The race detector is the judge.
func TestA22_HappensBefore(t *testing.T) {
	s := newSystem(t, NewConfig("hb").WithWorkers(4))
	const senders, each = 4, 200
	shared := make([]int, senders*each) // element i is written by the sender of i only
	sum := 0                            // touched by turns only
	done := make(chan int, 1)
	a := must(s.Spawn("a", Func(func(_ *Context, m Message) error {
		var i int
		if err := m.Decode(&i); err != nil {
			return err
		}
		if i < 0 {
			done <- sum
			return nil
		}
		sum += shared[i]
		return nil
	})))(t)
	var all sync.WaitGroup
	for k := range senders {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range each {
				shared[k*each+i] = 1
				if err := s.Tell(a, k*each+i); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	if err := s.Tell(a, -1); err != nil {
		t.Fatal(err)
	}
	if n := <-done; n != senders*each {
		t.Errorf("%d, want %d", n, senders*each)
	}
}

// A23: at most once, by tell, ask and path alike, also when the turn fails or is not reached.
func TestA23_AtMostOnce(t *testing.T) {
	l := newStage(t, nil)
	seen := map[int]int{}
	a := l.spawn("a", Func(func(_ *Context, m Message) error {
		var n int
		if err := m.Decode(&n); err != nil {
			return err
		}
		seen[n]++
		if n%3 == 0 {
			return errors.New("every third fails")
		}
		return nil
	}).WithLimits(Limits{Mailbox: 10}))
	in := l.Inbox(0)
	defer in.Close()
	accepted := 0
	for n := range 15 {
		var err error
		switch n % 3 {
		case 0:
			err = l.Tell(a, n)
		case 1:
			err = in.Ask(a, n, 1)
		case 2:
			err = l.TellPath("/user/a", n)
		}
		if err == nil {
			accepted++
		}
	}
	l.run()
	for n, times := range seen {
		if times != 1 {
			t.Errorf("%d came %d times", n, times)
		}
	}
	if _, dead := l.DeadLetters(); accepted != 10 || len(seen) != 10 || dead != 5 {
		t.Errorf("%d accepted, %d seen, %d dead", accepted, len(seen), dead)
	}
}

// A24: from one sender to one receiver in the order of sending, whatever the sorts, through
// batches and past crashes of the receiver.
func TestA24_OrderFromOneToOne(t *testing.T) { everyManner(t, rowA24_OrderFromOneToOne) }

func rowA24_OrderFromOneToOne(t *testing.T) {
	both(t, func(c Config) Config { return c.WithThroughput(3) }, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.got = nil
		var want []string
		sum := 0
		for i := range 20 {
			if i%7 == 6 {
				l.post(a, s.crash)
				sum = 0
				continue
			}
			sum++
			l.post(a, s.add(1))
			l.post(a, s.report)
			want = append(want, fmt.Sprint(sum))
		}
		l.run()
		var got []string
		for _, m := range l.got {
			if v, ok := strings.CutPrefix(m, "reply "); ok {
				got = append(got, v)
			}
		}
		if !slices.Equal(got, want) {
			l.t.Errorf("%v, want %v", got, want)
		}
	})
	// And out of one turn of a guest.
	l := newStage(t, nil)
	g := l.spawn("guest", puppet(t))
	l.say(g, script(now(toProbe(1), toProbe(2)), now(toProbe(3))))
	l.wants("message 1", "message 2", "message 3")
}

// A26: a parent may tell its child right after it was spawned.
func TestA26_CreationIsTheFirstMessage(t *testing.T) {
	everyManner(t, rowA26_CreationIsTheFirstMessage)
}

func rowA26_CreationIsTheFirstMessage(t *testing.T) {
	l := newStage(t, nil)
	n := l.spawn("native", Func(func(ctx *Context, m Message) error {
		child, err := ctx.Spawn("child", sinkTo(l))
		if err != nil {
			return err
		}
		return ctx.Tell(child, "first")
	}))
	l.say(n, "go")
	g := l.spawn("guest", puppet(t))
	child := abi.ChildRef(childKeyOf(l.table.Get(g.UID()).behaviour.(*guest)), 0, 0)
	args := script(on(abi.KindStart, toProbe("start")))
	l.say(g, script(now(
		abi.AppendSpawn(nil, child, "puppet", "child", args, nil),
		sendPath("./child", []byte(nil)),
		abi.AppendSend(nil, child, "", 0, 0, nil, script(now(toProbe("first")))))))
	l.wants("message first", "message start", "message first")
}

// sinkTo hands on to the probe what it is sent.
func sinkTo(l *stage) Props {
	return Func(func(ctx *Context, m Message) error { return ctx.Tell(l.probe, Raw(m.Payload)) })
}

// A27: a child's message and its failure reach the parent in either order; both do.
func TestA27_FailureAndMessageBothArrive(t *testing.T) {
	l := newStage(t, nil)
	parent := l.spawn("parent", Func(func(ctx *Context, m Message) error { return tellProbe(ctx, Raw(m.Payload)) }).
		WithChildren(Child{"child", Func(func(ctx *Context, m Message) error {
			var n int
			if m.Decode(&n); n == 1 {
				return ctx.Tell(ctx.Parent(), "last words")
			}
			return errors.Join(ctx.Tell(ctx.Parent(), "never said"), errors.New("failed"))
		})}))
	l.raw()
	child := must(l.Lookup(parent.Path() + "/child"))(t)
	l.post(child, 1)
	l.say(child, 2)
	l.wants("message last words")
	l.equal("events", l.events(EventFailed, EventRestarted), []string{"failed child", "restarted child"})
}

// A28, A30: how messages are lost, each with the reason it is given.
func TestA30_DeadLetters(t *testing.T) { everyManner(t, rowA30_DeadLetters) }

func rowA30_DeadLetters(t *testing.T) {
	l := newStage(t, nil)
	gone := l.spawn("gone", newCounter())
	l.Stop(gone)
	l.run()
	full := l.spawn("full", newCounter().WithLimits(Limits{Mailbox: 1}))
	asker := l.spawn("asker", Func(func(ctx *Context, _ Message) error { return ctx.Reply("to nobody") }))
	late := l.Inbox(0)
	late.Close()
	small := l.spawn("small", puppet(t))
	drained := l.spawn("drained", newCounter())
	crashed := l.spawn("crashed", newCounter().WithCrashedMessage(DeadLetterCrashed()))

	for _, c := range []struct {
		what string
		do   func() error
		want error
		dead string
	}{
		{"a ref that has gone", func() error { return l.Tell(gone, 1) }, ErrUnknown, "unknown actor: 1"},
		{"a path that names nobody", func() error { return l.TellPath("/user/nobody", 2) }, ErrUnknown, "unknown actor: 2"},
		{"a full mailbox", func() error { l.post(full, 0); return l.Tell(full, 3) }, ErrMailboxFull, "mailbox full: 3"},
		{"an answer to nobody", func() error { return l.Tell(asker, 4) }, nil, "no sender: to nobody"},
		{"a closed inbox", func() error { return l.TellFrom(late.Ref(), asker, 5) }, nil, "late reply: to nobody"},
		{"too large for the inbox", func() error { return l.Tell(small, strings.Repeat("6", 1<<14)) }, ErrTooLarge, "too large for the inbox"},
		{"the rest of a mailbox", func() error { _ = l.PoisonPill(drained); return l.Tell(drained, 7) }, nil, "stopped: 7"},
		{"a message that crashed", func() error { return l.Tell(crashed, "crash") }, nil, "its turn failed: crash"},
	} {
		_, before := l.DeadLetters()
		l.raw()
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		l.run()
		letters := l.letters()
		if _, now := l.DeadLetters(); now != before+1 || !strings.HasPrefix(letters[len(letters)-1], c.dead) {
			t.Errorf("%s: %d more, the last is %q, want %q", c.what, now-before, letters, c.dead)
		}
		if n := len(l.raw(EventDeadLetter)); n != 1 {
			t.Errorf("%s: %d events", c.what, n)
		}
	}
}

// A29: a dead letter tells the message, its sender and its recipient.
func TestA29_DeadLettersAreWhole(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithDeadLetters(2) })
	a := l.spawn("a", newCounter())
	l.Stop(a)
	if err := l.TellFrom(l.probe, a, "in vain"); err != nil { // it waits in the mailbox when the stop comes
		t.Fatal(err)
	}
	l.run()
	e := l.raw(EventDeadLetter)
	if len(e) != 1 {
		t.Fatalf("%v", e)
	}
	d := e[0].Dead
	if d.Sender != l.probe.UID() || d.Recipient != a.UID() || !strings.HasSuffix(d.Path, "/user/a") || string(d.Payload) != "\x67in vain" || d.Size != 8 {
		t.Errorf("%+v", d)
	}
	for i := range 3 {
		_ = l.Tell(a, i)
	}
	if kept, n := l.DeadLetters(); len(kept) != 2 || n != 4 {
		t.Errorf("%d of %d kept", len(kept), n)
	}
	l.equal("the last ones", l.letters(), []string{"unknown actor: 1", "unknown actor: 2"})
}

// However many and large the messages are: so many of the last ones are kept, each with the
// beginning of its payload.
func TestDeadLettersAreBounded(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	l.Stop(a)
	l.run()
	const sent = DefaultDeadLetters + 50
	for range sent {
		_ = l.Tell(a, make([]byte, 10_000))
	}
	kept, n := l.DeadLetters()
	if len(kept) != DefaultDeadLetters || n != sent {
		t.Errorf("%d of %d kept", len(kept), n)
	}
	for _, d := range kept {
		if len(d.Payload) != MaxDeadPayload || d.Size <= 10_000 {
			t.Fatalf("%d bytes of %d", len(d.Payload), d.Size)
		}
	}
}

// A31: a message marked so is not a dead letter when it is not delivered.
func TestA31_DeadLetterSuppression(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	if err := l.Tell(a, Marked{Value: 1, Marks: Suppressed}); err != nil {
		t.Fatal(err)
	}
	l.Stop(a)
	l.run()
	if err := l.Tell(a, Marked{Value: 2, Marks: Suppressed}); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	_ = l.Tell(a, 3)
	l.equal("dead letters", l.letters(), []string{"unknown actor: 3"})
	var all []string
	for _, e := range l.raw(EventDeadLetter, EventSuppressed) {
		all = append(all, fmt.Sprint(e.Kind, " ", e.Dead.Payload))
	}
	l.equal("events", all, []string{"suppressed_dead_letter [1]", "suppressed_dead_letter [2]", "dead_letter [3]"})
}

// A32: what is harmless is none: stopping twice, and the end of children whose watcher ends.
func TestA32_BenignEndsAreNoDeadLetters(t *testing.T) {
	l := newStage(t, nil)
	p := l.spawn("p", Native(func() Actor { return watchesItsChild{} }))
	l.Stop(p)
	l.Stop(p)
	l.run()
	l.Stop(p)
	l.run()
	l.equal("dead letters", l.letters(), []string{})
}

type watchesItsChild struct{}

func (watchesItsChild) Started(ctx *Context) error {
	child, err := ctx.Spawn("child", newCounter())
	if err != nil {
		return err
	}
	return ctx.Watch(child)
}

func (watchesItsChild) Receive(*Context, Message) error { return ErrUnhandled }

// A36: a failure that nobody can mend ends the process's system, and says why.
func TestA36_FatalFailures(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithGuardian(supervision.Default()) })
	a := l.spawn("a", Func(func(*Context, Message) error {
		return &abi.Failure{Kind: abi.FailureHost, Reason: "a bug"}
	}))
	l.say(a, 1)
	select {
	case <-l.Terminated():
	default:
		t.Fatal("the system goes on")
	}
	var f *abi.Failure
	if !errors.As(l.Cause(), &f) || f.Kind != abi.FailureHost {
		t.Error(l.Cause())
	}
	if _, err := l.Ask(context.Background(), a, 1); err == nil {
		t.Error("it answers")
	}
}
