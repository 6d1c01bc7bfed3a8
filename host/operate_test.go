package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

func (l *lab) info(ref Ref) Info {
	l.t.Helper()
	return must(l.View().Info(ref))(l.t)
}

// While an actor is paused its messages, timers and answers wait, in order; system messages
// go on.
func TestPause(t *testing.T) {
	l := newLab(t, supervision.Default())
	var got []string
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		got = append(got, describe(m))
		if describe(m) == "message timer" {
			return ctx.After(1, time.Second, 0, "tick")
		}
		return nil
	}))
	changes := func(order func(Ref, bool) error, want EventKind) {
		t.Helper()
		must(0, order(a, false))(t)
		l.run()
		if es := l.seen(EventPaused, EventUnpaused); len(es) != 1 || es[0].Kind != want || es[0].Ref != a {
			t.Errorf("%+v, want %v", es, want)
		}
		must(0, order(a, false))(t) // it is that already
		l.run()
		if es := l.seen(EventPaused, EventUnpaused); len(es) != 0 {
			t.Errorf("%+v, want %v once", es, want)
		}
	}
	l.tell(a, "timer")
	changes(l.Operate().Pause, EventPaused)
	l.tell(a, 1, 2)
	l.pass(time.Minute)
	if i := l.info(a); i.State != StatePaused || !i.Paused || i.Mailbox != 3 || i.Turns != 1 {
		t.Errorf("%+v", i)
	}
	changes(l.Operate().Unpause, EventUnpaused)
	if want := []string{"message timer", "message 1", "message 2", "timer tick"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if i := l.info(a); i.State != StateRunning || i.Paused {
		t.Errorf("%+v", i)
	}
	must(0, l.Operate().Pause(a, false))(t)
	l.tell(a, 3)
	l.Stop(a)
	l.run()
	if l.state("a") != "gone" || !slices.Equal(l.letters(), []DeadReason{DeadStopped}) {
		t.Errorf("%s, %v", l.state("a"), l.letters())
	}
	if err := l.Operate().Pause(a, true); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// A paused subtree pauses its children, those that come later, too, and lets them go
// together; a child can be let go alone.
func TestPauseOfASubtree(t *testing.T) {
	l := newLab(t, supervision.Default())
	top := l.spawn("top", Native(func() Actor { return &counter{} }).WithChildren(Child{"kid", newCounter().WithChildren(Child{"grandchild", newCounter()})}))
	must(0, l.Operate().Pause(top, true))(t)
	l.run()
	paused := func() (names []string) {
		for _, path := range []string{"top", "top/kid", "top/kid/grandchild"} {
			if l.info(l.at(path)).Paused {
				names = append(names, path)
			}
		}
		return names
	}
	if p := paused(); len(p) != 3 {
		t.Errorf("%q", p)
	}
	must(0, l.Operate().Restart(l.at("top/kid")))(t)
	l.run()
	if p := paused(); len(p) != 3 {
		t.Errorf("after a restart: %q", p)
	}
	must(0, l.Operate().Unpause(l.at("top/kid"), false))(t)
	l.run()
	if p := paused(); !slices.Equal(p, []string{"top", "top/kid/grandchild"}) {
		t.Errorf("the kid alone: %q", p)
	}
	must(0, l.Operate().Unpause(top, true))(t)
	l.run()
	if p := paused(); len(p) != 0 {
		t.Errorf("%q", p)
	}
	l.tell(l.at("top/kid/grandchild"), 5)
	if n := l.get(l.at("top/kid/grandchild")); n != 5 {
		t.Errorf("%d", n)
	}
}

// A paused actor fails, and is delayed and restarted as any other; it stays paused.
func TestPausedActorsFail(t *testing.T) {
	l := newLab(t, supervision.Default().WithBackoff(supervision.Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Second), backoff.NoJitter())}))
	a := l.spawn("a", newCounter())
	must(0, l.Operate().Pause(a, false))(t)
	must(0, l.Operate().Crash(a, abi.FailureTrap, "for a test"))(t)
	l.tell(a, 7)
	if i := l.info(a); i.State != StateDelayed || !i.Paused || i.Due != time.Second || i.Failure.Failure.Error() != "trap: for a test" {
		t.Errorf("%+v", i)
	}
	l.pass(time.Second)
	if i := l.info(a); i.State != StatePaused || i.Incarnation != 1 || i.Mailbox != 1 {
		t.Errorf("%+v", i)
	}
	must(0, l.Operate().Unpause(a, false))(t)
	l.run()
	if n := l.get(a); n != 7 {
		t.Errorf("%d", n)
	}
}

// A restart by hand counts in no window and for no backoff; a crash on order counts as any.
func TestRestartsByHandAreNotCounted(t *testing.T) {
	l := newLab(t, supervision.Default().WithMaxRestarts(2, 0))
	causes := []string{}
	a := l.spawn("a", Native(func() Actor { return &causing{&causes} }))
	for range 5 {
		must(0, l.Operate().Restart(a))(t)
		l.run()
	}
	if i := l.info(a); i.Incarnation != 5 || i.Crashes != 0 || i.Restarts != 5 || l.totalOf(a) != 0 {
		t.Errorf("%+v", i)
	}
	if causes[1] != "killed: restarted by an operator" {
		t.Errorf("%q", causes)
	}
	for range 2 {
		must(0, l.Operate().Crash(a, 0, ""))(t)
		l.run()
	}
	x := must(l.View().Inspect(t.Context(), a))(t)
	if x.Record == nil || x.Record.Failures != 2 || x.Record.InWindow != 2 || x.Crashes != 2 || causes[len(causes)-1] != "guest_error: simulated by an operator" {
		t.Errorf("%+v, %q", x.Record, causes)
	}
	must(0, l.Operate().Crash(a, 0, ""))(t)
	l.run()
	if l.state("a") != "gone" {
		t.Error("a third failure is one too many, also an ordered one")
	}
	for _, guardian := range []Ref{l.user.ref(), {}} {
		if err := l.Operate().Restart(guardian); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
		if err := l.Operate().Crash(guardian, 0, ""); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	}
}

type causing struct{ causes *[]string }

func (c *causing) Receive(*Context, Message) error { return nil }
func (c *causing) Started(ctx *Context) error {
	text := ""
	if f := ctx.Cause(); f != nil {
		text = f.Error()
	}
	*c.causes = append(*c.causes, text)
	return nil
}

// A restart by hand of one of a group that is restarted in order does not upset the order.
func TestRestartByHandWithinAGroup(t *testing.T) {
	for _, which := range []string{"a", "b", "c"} {
		l := newLab(t, supervision.Default())
		slow := supervision.Default().WithKind(supervision.RestForOne).
			WithBackoff(supervision.Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Minute), backoff.NoJitter())})
		l.spawn("top", newCounter().WithSupervision(slow).WithChildren(Child{"a", newCounter()}, Child{"b", newCounter()}, Child{"c", newCounter()}))
		must(0, l.Operate().Crash(l.at("top/a"), 0, ""))(t)
		l.run()
		must(0, l.Operate().Restart(l.at("top/"+which)))(t)
		l.run()
		for range 5 {
			l.pass(time.Minute)
		}
		for _, name := range []string{"a", "b", "c"} {
			if i := l.info(l.at("top/" + name)); i.State != StateRunning || i.Incarnation < 1 {
				t.Errorf("%s by hand: %s is %v, incarnation %d", which, name, i.State, i.Incarnation)
			}
		}
	}
}

// An ordered crash of a guest that sleeps, which its supervisor answers with resume, loses
// nothing.
func TestCrashOfASleepingGuestIsResumed(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithIdleAfter(idleSoon).WithGuardian(otherwise(supervision.Resume)) })
	g := l.spawn("g", puppetHooks(t))
	l.say(g, script(rec(recAdd, 3, nil)))
	for range 4 {
		l.pass(idleSoon)
	}
	if i := must(l.View().Info(g))(t); i.State != StateAsleep {
		t.Fatalf("%+v", i)
	}
	must(0, l.Operate().Crash(g, 0, ""))(t)
	l.run()
	if i := must(l.View().Info(g))(t); i.State != StateAsleep || i.Incarnation != 0 || i.Crashes != 1 {
		t.Errorf("%+v", i)
	}
	l.got = nil
	l.say(g, script(rec(recReport, 0, nil)))
	l.wants("reply 3")
}

// A dead letter that is whole is delivered again: to the actor, or to the one that has its
// path now, with sender and headers; then it is gone. What is not delivered stays.
func TestRedeliver(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithDeadLetterBytes(40_000) })
	a := l.spawn("a", Func(func(ctx *Context, m Message) error { return ctx.Reply(len(m.Payload)) }))
	l.Stop(a)
	l.run()
	for _, n := range []int{10, 5000, 20_000} {
		_ = l.TellFrom(l.probe, a, strings.Repeat("x", n))
	}
	letters, _ := l.DeadLetters()
	if len(letters) != 3 || !letters[0].Whole || !letters[1].Whole || letters[2].Whole || letters[1].ID != 2 || letters[1].Time.IsZero() {
		t.Fatalf("%+v", letters)
	}
	if d := must(l.DeadLetter(2))(t); len(d.Payload) != d.Size {
		t.Errorf("%d of %d bytes", len(d.Payload), d.Size)
	}
	if _, err := l.Operate().Redeliver(1); !errors.Is(err, ErrUnknown) {
		t.Errorf("to nobody: %v", err)
	}
	b := l.spawn("a", Func(func(ctx *Context, m Message) error { return ctx.Reply(len(m.Payload)) }))
	l.got = nil
	for id, want := range map[uint64]error{1: nil, 2: nil, 3: ErrNotKept, 4: ErrNotKept, 0: ErrNotKept} {
		if err := l.Operate().CanRedeliver(id); !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", id, err, want)
		}
	}
	for _, id := range []uint64{2, 1} {
		if to, err := l.Operate().Redeliver(id); err != nil || to != b {
			t.Errorf("%v, %v", to, err)
		}
		if _, err := l.Operate().Redeliver(id); !errors.Is(err, ErrNotKept) {
			t.Errorf("twice: %v", err)
		}
	}
	l.run()
	l.wants("reply 5003", "reply 11")
	if letters, total := l.DeadLetters(); len(letters) != 1 || total != 3 {
		t.Errorf("%d are left of %d", len(letters), total)
	}
	// An answer that nobody waits for is none that could be delivered.
	_ = l.TellFrom(l.probe, a, 1)
	letters, _ = l.DeadLetters()
	last := letters[len(letters)-1]
	must(0, l.Operate().CanRedeliver(last.ID))(t)
}

// A full mailbox and a delayed receiver refuse what is delivered again, and it stays.
func TestRedeliverThatIsRefused(t *testing.T) {
	l := newLab(t, supervision.Default())
	a := l.spawn("a", newCounter().WithLimits(Limits{Mailbox: 2}))
	must(0, l.Operate().Pause(a, false))(t)
	l.run()
	for i := range 3 {
		_ = l.Tell(a, i+1)
	}
	if _, err := l.Operate().Redeliver(1); !errors.Is(err, ErrMailboxFull) {
		t.Error(err)
	}
	letters, total := l.DeadLetters()
	if len(letters) != 1 || total != 1 {
		t.Errorf("%d, %d", len(letters), total)
	}
	must(0, l.Operate().Unpause(a, false))(t)
	l.run()
	if _, err := l.Operate().Redeliver(1); err != nil {
		t.Error(err)
	}
	l.run()
	if n := l.get(a); n != 6 {
		t.Errorf("%d", n)
	}
}

// Looking at an actor in the middle of a turn waits no longer than it may, and says what it
// has not seen.
func TestInspectABusyActor(t *testing.T) {
	s := must(New(NewConfig("busy")))(t)
	defer func() { _ = s.Close(context.Background()) }()
	begun, end := make(chan bool), make(chan bool)
	a := must(s.Spawn("a", Func(func(ctx *Context, m Message) error {
		ctx.Block()
		close(begun)
		<-end
		return ctx.After(1, time.Hour, 0, nil)
	}).WithChildren(Child{"kid", newCounter()})))(t)
	waitFor(t, "the kid", func() bool { _, err := s.Lookup("/user/a/kid"); return err == nil })
	x := must(s.View().Inspect(t.Context(), a))(t)
	if x.Counts == nil || x.Record == nil || x.Children != 1 {
		t.Errorf("idle: %+v", x)
	}
	_ = s.Tell(a, 1)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	x = must(s.View().Inspect(ctx, a))(t)
	if x.Counts != nil || x.Record == nil {
		t.Errorf("busy: %+v", x)
	}
	kid := must(s.Lookup("/user/a/kid"))(t)
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond) // it may be about to begin
	defer cancel()
	if x = must(s.View().Inspect(ctx, kid))(t); x.Counts == nil || x.Record != nil {
		t.Errorf("below it: %+v", x)
	}
	close(end)
	waitFor(t, "its end", func() bool {
		x := must(s.View().Inspect(t.Context(), a))(t)
		return x.Counts != nil && x.Counts.Timers == 1
	})
	if _, err := s.View().Inspect(t.Context(), Ref{}); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// The failure that is kept is a short one, and on the actor's account.
func TestLastFailureIsBounded(t *testing.T) {
	l := newLab(t, otherwise(supervision.Suspend))
	long := strings.Repeat("x", 10_000)
	f := &abi.Failure{Kind: abi.FailureTrap, Reason: long, Message: long, GuestStack: long}
	for i := range abi.MaxFrames {
		f.Stack = append(f.Stack, fmt.Sprint(i, long))
	}
	a := l.spawn("a", Func(func(*Context, Message) error { return f }))
	before := l.info(a).Held
	l.tell(a, 1)
	i := l.info(a)
	if w := i.Failure.Weight(); w > (3+LastFailureFrames)*(LastFailureText+16)+160 || i.Held-before != w || len(i.Failure.Failure.Stack) != LastFailureFrames {
		t.Errorf("%d bytes, %d on the account", w, i.Held-before)
	}
}

// Nothing of a look costs a message anything: who is looked at allocates no more.
func TestAWatchedSystemAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("pools lose what they hold, on purpose")
	}
	s, _ := manual(t, nil)
	a := must(s.Spawn("a", Func(func(*Context, Message) error { return nil })))(t)
	s.RunUntilIdle(100)
	payload := Raw{0xf6}
	infos := s.View().AppendInfo(nil)
	infos = s.View().AppendInfo(infos[:0])
	allocs := testing.AllocsPerRun(1000, func() {
		_ = s.Tell(a, payload)
		s.RunUntilIdle(100)
		infos = s.View().AppendInfo(infos[:0])
	})
	if allocs > 1 { // the value of Tell
		t.Errorf("%v allocations", allocs)
	}
}

// What is sent after Restart has returned is for the next incarnation, although the supervisor,
// which decides, runs later.
func TestRestartComesBeforeWhatIsSentLater(t *testing.T) {
	l := newLab(t, supervision.Default())
	var handled []string
	made := 0
	a := l.spawn("a", Native(func() Actor {
		made++
		number := made
		return actorFunc(func(_ *Context, m Message) error {
			handled = append(handled, fmt.Sprint(number, " ", describe(m)))
			return nil
		})
	}))
	l.tell(a, "x")
	for range 2 { // the second is asked for while the first is under way
		must(0, l.Operate().Restart(a))(t)
	}
	must(0, l.Tell(a, "y"))(t)
	l.Step() // it waits for its supervisor
	if len(handled) != 1 {
		t.Errorf("%q", handled)
	}
	l.run()
	if want := []string{"1 message x", "3 message y"}; !slices.Equal(handled, want) {
		t.Errorf("%q, want %q", handled, want)
	}
}

// The same with workers: nobody who asks after a restart waits for an incarnation that has gone.
func TestAskAfterRestart(t *testing.T) {
	s := newSystem(t, NewConfig("test"))
	helper := must(s.Spawn("helper", Func(func(ctx *Context, m Message) error { return ctx.Reply(nil) })))(t)
	var owed *Reply
	a := must(s.Spawn("a", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindReply {
			return owed.Send(nil)
		}
		var err error
		if owed, err = ctx.Later(); err != nil {
			return err
		}
		return ctx.Ask(helper, nil, 1, time.Hour)
	})))(t)
	for range 500 {
		must(0, s.Operate().Restart(a))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if _, err := s.Ask(ctx, a, 1); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

// A failure that nothing is decided about, as its supervisor stops, is told of all the same.
func TestFailureBelowAStop(t *testing.T) {
	l := newLab(t, supervision.Default())
	top := l.spawn("top", Native(func() Actor { return &counter{} }).WithChildren(Child{"kid", Func(func(*Context, Message) error { return errors.New("boom") })}))
	kid := l.at("top/kid")
	must(0, l.Tell(kid, 1))(t)
	l.Stop(top)
	l.run()
	if all := l.seen(EventFailed); len(all) != 1 || all[0].Directive != 0 || !strings.HasSuffix(all[0].Note, "its supervisor stops") || all[0].ID == "" {
		t.Errorf("%+v", all)
	}
	if n := l.View().Stats().Crashes; n != 1 {
		t.Errorf("%d crashes", n)
	}
}

// peeked is a mailbox that says when it is looked into.
type peeked struct {
	Mailbox
	look func()
}

func (p *peeked) Peek() *Envelope {
	p.look()
	return p.Mailbox.Peek()
}

// A message that was seen, but not taken yet, when a restart was asked for may have been sent after
// it: the restart comes first.
func TestRestartWhileAMessageIsTaken(t *testing.T) {
	guest := counting(t, NewModule(load(t, newEngine(t), "testdata/puppet.wasm")))
	native := Func(func(_ *Context, m Message) error {
		if m.Payload[0] == 2 {
			return errors.New("boom")
		}
		return nil
	})
	for _, c := range []struct {
		name  string
		props Props
		at    int // of the looks
		mail  []any
	}{
		{"native, before a spell", native, 0, []any{2}},
		{"native, before a message", native, 1, []any{1, 2}},
		{"guest", guest, 0, []any{script(trap())}},
	} {
		l := newLab(t, supervision.Default())
		var a Ref
		looks := -1
		look := func() {
			if looks == c.at {
				must(0, l.Operate().Restart(a))(t)
			}
			if looks >= 0 {
				looks++
			}
		}
		a = l.spawn("a", c.props.WithMailbox(func(b MailboxLimits) Mailbox {
			usual := new(mailbox.Mailbox)
			usual.Init(b)
			return &peeked{usual, look}
		}))
		l.run()
		looks = 0
		l.tell(a, c.mail...)
		if f := l.seen(EventFailed); len(f) != 1 || f[0].Incarnation != 1 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// Nor is it lost where the child has gone before its supervisor looks.
func TestNoFailureIsLostAtTheEnd(t *testing.T) {
	for range 300 {
		s := must(New(NewConfig("test")))(t)
		events := s.Subscribe(100, func(e *Event) bool { return e.Kind == EventFailed })
		a := must(s.Spawn("a", Func(func(*Context, Message) error { return errors.New("boom") })))(t)
		var failed *TurnError
		if _, err := s.Ask(t.Context(), a, 1); !errors.As(err, &failed) {
			t.Fatal(err)
		}
		must(0, s.Close(t.Context()))(t)
		n := 0
		for range events.C() {
			n++
		}
		if n != 1 {
			t.Fatalf("%d failures", n)
		}
	}
}

// A failure on order has the number of the turn behind which it comes, as reports are found by it.
func TestACrashOnOrderHasItsTurn(t *testing.T) {
	for _, turns := range []int{0, 3} {
		l := newLab(t, otherwise(supervision.Restart))
		a := l.spawn("a", newCounter())
		for range turns {
			l.tell(a, 1)
		}
		must(0, l.Operate().Crash(a, 0, ""))(t)
		l.run()
		if e := l.next(EventFailed); e.Failure.Turn != uint64(turns) {
			t.Errorf("turn %d, %d have ended", e.Failure.Turn, turns)
		}
	}
}
