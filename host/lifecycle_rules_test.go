package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// boom fails at "crash" and takes everything else.
func boom() Props {
	return Func(func(_ *Context, m Message) error {
		var text string
		if m.Decode(&text) == nil && text == "crash" {
			return errors.New("boom")
		}
		return nil
	})
}

// A failure is told with the message whose turn has failed; one without a message is not told with that of
// the failure before.
func TestAFailureIsToldWithItsOwnMessage(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart))
	a := l.spawn("a", boom())
	l.tell(a, "crash")
	if e := l.next(EventFailed); e.Mail == nil {
		t.Error("the message is missing")
	}
	if err := l.Operate().Crash(a, 0, ""); err != nil {
		t.Fatal(err)
	}
	l.run()
	if e := l.next(EventFailed); e.Mail != nil {
		t.Errorf("%+v belongs to the failure before", e.Mail)
	}
}

// The cause of the incarnation that an operator's restart begins is the failure that the one before has, and
// none that it has been resumed after.
func TestTheCauseOfARestartByHand(t *testing.T) {
	for directive, want := range map[supervision.Directive]abi.FailureKind{
		supervision.Resume: abi.FailureKilled, supervision.Suspend: abi.FailureGuestError,
	} {
		l := newLab(t, otherwise(directive))
		a := l.spawn("a", boom())
		l.tell(a, "crash")
		if err := l.Operate().Restart(a); err != nil {
			t.Fatal(err)
		}
		l.run()
		if e := l.next(EventRestarted); e.Failure == nil || e.Failure.Kind != want {
			t.Errorf("after %v: %v", directive, e.Failure)
		}
	}
}

// A restart during the delay of another takes its place: it is the only one, and nothing is left of the delay.
func TestARestartByHandEndsADelay(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{}))
	a := l.spawn("a", boom())
	l.tell(a, "crash")
	if s := l.state("a"); s != "restarting" {
		t.Fatal(s)
	}
	before := l.clock.Now()
	if err := l.Operate().Restart(a); err != nil {
		t.Fatal(err)
	}
	if err := l.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if passed := l.clock.Now().Sub(before); passed != 0 {
		t.Errorf("an alarm was left for %v later", passed)
	}
	if i := must(l.View().Info(a))(t); i.State != StateRunning || i.Incarnation != 1 || i.Restarts != 1 || i.Due != 0 {
		t.Errorf("%+v", i)
	}
}

// A restart without a delay during the grace after another: what has waited is handled at once.
func TestARestartByHandEndsTheGrace(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{Grace: time.Hour}))
	handled := 0
	a := l.spawn("a", Func(func(_ *Context, m Message) error {
		if handled++; handled == 1 {
			return errors.New("boom")
		}
		return nil
	}))
	l.tell(a, 1)
	l.pass(200 * time.Millisecond)
	l.tell(a, 2)
	if i := must(l.View().Info(a))(t); !i.Grace || handled != 1 {
		t.Fatalf("%+v, %d handled", i, handled)
	}
	if err := l.Operate().Restart(a); err != nil {
		t.Fatal(err)
	}
	l.run()
	if i := must(l.View().Info(a))(t); i.Grace || handled != 2 {
		t.Errorf("%+v, %d handled", i, handled)
	}
}

// A child that has stayed fails while its parent is between two incarnations: it is decided about when the
// parent begins the next.
func TestAChildFailsDuringTheDelayOfItsParent(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{}).WithKeepChildren(true))
	l.spawn("p", parentOf(otherwise(supervision.Restart), Child{"c", boom()}))
	c := l.at("p/c")
	l.fails("p")
	l.run()
	if s := l.state("p"); s != "restarting" {
		t.Fatal(s)
	}
	before := must(l.View().Info(c))(t).Incarnation
	l.tell(c, "crash")
	if s := l.state("p/c"); s != "failed" {
		t.Errorf("%s while nobody can decide", s)
	}
	l.pass(200 * time.Millisecond)
	if i := must(l.View().Info(c))(t); i.State != StateRunning || i.Incarnation != before+1 {
		t.Errorf("%+v, incarnation %d before", i, before)
	}
}

// A permanent actor that stops itself handles nothing more until its supervisor has begun it again, and neither
// do its children, which stay.
func TestAPermanentActorThatStopsItselfIsSuspended(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart).WithKeepChildren(true))
	type record struct {
		who         string
		incarnation uint64
	}
	var got []record
	kid := Func(func(ctx *Context, m Message) error {
		got = append(got, record{"kid", ctx.actor.Incarnation()})
		return nil
	})
	p := l.spawn("p", Func(func(ctx *Context, m Message) error {
		var text string
		if m.Decode(&text) == nil && text == "stop" {
			if err := ctx.Tell(ctx.Children()[0], "hello"); err != nil {
				return err
			}
			ctx.Stop(ctx.Self())
			return nil
		}
		got = append(got, record{"p", ctx.actor.Incarnation()})
		return nil
	}).WithLifetime(supervision.Permanent).WithChildren(Child{"kid", kid}))
	for _, v := range []string{"stop", "next"} {
		if err := l.Tell(p, v); err != nil {
			t.Fatal(err)
		}
	}
	l.run()
	slices.SortFunc(got, func(a, b record) int { return strings.Compare(a.who, b.who) })
	if want := []record{{"kid", 1}, {"p", 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// An actor that is not permanent and stops itself has not failed, whatever it waits for.
func TestStoppingItselfIsNoFailure(t *testing.T) {
	for _, lifetime := range []supervision.Lifetime{supervision.Temporary, supervision.Transient} {
		l := newLab(t, otherwise(supervision.Restart))
		p := l.spawn("p", Func(func(ctx *Context, _ Message) error {
			ctx.Stop(ctx.Self())
			return nil
		}).WithLifetime(lifetime).WithChildren(Child{"kid", boom()}))
		l.tell(p, 1)
		if s := l.state("p"); s != "gone" {
			t.Errorf("%v: %s", lifetime, s)
		}
		if st, failed := l.View().Stats(), l.seen(EventFailed); st.Crashes != 0 || len(failed) != 0 {
			t.Errorf("%v: %d crashes, %v", lifetime, st.Crashes, failed)
		}
	}
}

// A failure to start says what kind of failure it was.
func TestAFailureToStartSaysWhatItWas(t *testing.T) {
	l := newLab(t, otherwise(supervision.Stop))
	l.spawn("a", Native(func() Actor { return unlucky{} }))
	want := abi.FailureGuestError.String() + ": no luck"
	if e := l.next(EventFailed); e.Failure.Kind != abi.FailureInit || e.Failure.Reason != want {
		t.Errorf("%v, %q, want %q", e.Failure.Kind, e.Failure.Reason, want)
	}
}

// unlucky does not start.
type unlucky struct{}

func (unlucky) Started(*Context) error          { return errors.New("no luck") }
func (unlucky) Receive(*Context, Message) error { return nil }

// The reason of a stop is that of the first one.
func TestTheFirstStopSaysWhy(t *testing.T) {
	l := newLab(t, supervision.Default())
	p := l.spawn("p", parentOf(supervision.Default(), Child{"kid", boom()}))
	a := l.table.Get(p.UID())
	a.stop(nil, "the first")
	a.stop(nil, "the second")
	l.run()
	for _, e := range l.seen(EventStopped) {
		if e.Ref == p && e.Note != "the first" {
			t.Errorf("%q", e.Note)
		}
	}
}

// A child that cannot be started with its parent is reported, one that can is not.
func TestAChildThatCannotBeStarted(t *testing.T) {
	for most, want := range map[int]int{1: 1, 2: 0} {
		l := newLab(t, supervision.Default())
		l.spawn("p", parentOf(supervision.Default(), Child{"a", boom()}, Child{"b", boom()}).WithLimits(Limits{Children: most}))
		var logged []string
		for _, e := range l.seen(EventLog) {
			if e.Level == abi.LogError {
				logged = append(logged, e.Text)
			}
		}
		if len(logged) != want || want > 0 && !strings.Contains(logged[0], `"b"`) {
			t.Errorf("%d children: %q", most, logged)
		}
	}
}

// An answer ends an ask also if its time is over before the answer is handled: there is no timeout behind it.
func TestAnAnswerInTheMailboxIsInTime(t *testing.T) {
	l := newLab(t, supervision.Default())
	b := l.spawn("b", Func(func(ctx *Context, _ Message) error { return ctx.Reply("here") }))
	var got []abi.Kind
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		got = append(got, m.Kind)
		if m.Kind == abi.KindMessage {
			return ctx.Ask(b, "who", 7, time.Second)
		}
		return nil
	}))
	if err := l.Operate().Pause(b, false); err != nil {
		t.Fatal(err)
	}
	l.tell(a, "ask")
	for _, do := range []func() error{
		func() error { return l.Operate().Pause(a, false) },
		func() error { return l.Operate().Unpause(b, false) }, // the answer waits
		func() error { l.pass(2 * time.Second); return nil },
		func() error { return l.Operate().Unpause(a, false) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		l.run()
	}
	if want := []abi.Kind{abi.KindMessage, abi.KindReply}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What an actor in Go keeps aside is on its account until its incarnation ends.
func TestWhatIsKeptAsideEndsWithItsIncarnation(t *testing.T) {
	const kept = 10_000
	l := newLab(t, otherwise(supervision.Restart))
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		var text string
		if m.Decode(&text) == nil && text == "crash" {
			return errors.New("boom")
		}
		return ctx.Head().Hold(kept)
	}))
	before := must(l.View().Info(a))(t).Held
	l.tell(a, 1)
	if held := must(l.View().Info(a))(t).Held; held < before+kept {
		t.Fatalf("%d bytes, %d before", held, before)
	}
	l.tell(a, "crash")
	if i := must(l.View().Info(a))(t); i.Incarnation != 1 || i.Held >= before+kept {
		t.Errorf("incarnation %d holds %d bytes, %d before", i.Incarnation, i.Held, before)
	}
}

// GetOrSpawn says which it was, and gives nobody's ref when the caller waits no longer for one that stops.
func TestGetOrSpawnSaysWhichItWas(t *testing.T) {
	l := newLab(t, supervision.Default())
	p := parentOf(supervision.Default(), Child{"kid", boom()})
	first, made, err := l.GetOrSpawn(t.Context(), "a", p)
	if !made || err != nil {
		t.Fatal(made, err)
	}
	l.run()
	if again, made, err := l.GetOrSpawn(t.Context(), "a", p); again != first || made || err != nil {
		t.Errorf("%v, made %v, %v", again, made, err)
	}
	l.Stop(first)
	for l.state("a") != "stopping" {
		if !l.Step() {
			t.Fatal("it does not stop")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ref, made, err := l.GetOrSpawn(ctx, "a", p); !ref.IsZero() || made || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, made %v, %v", ref, made, err)
	}
}

// An actor that is stopped during the delay of its restart is one that stops, for whoever sends to it.
func TestAStopEndsADelay(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{Meanwhile: supervision.MeanwhileDrop}).WithKeepChildren(true))
	p := l.spawn("p", parentOf(supervision.Default(), Child{"kid", boom()}))
	l.fails("p")
	l.run()
	if err := l.Tell(p, 1); !errors.Is(err, ErrRestarting) {
		t.Fatal(err)
	}
	l.Stop(p)
	for l.state("p") != "stopping" {
		if !l.Step() {
			t.Fatal("it does not stop")
		}
	}
	_ = l.Tell(p, 2)
	l.run()
	if got, want := l.letters(), []DeadReason{DeadRestarting, DeadStopped}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// An incarnation that has not started has no state from before its turn, whatever the one before it had: it is
// not resumed but restarted.
func TestWhatHasNotStartedIsNotResumed(t *testing.T) {
	l := newLab(t, supervision.Default().WithDecider(func(_ string, f *abi.Failure) supervision.Directive {
		if f.Kind == abi.FailureInit {
			return supervision.Resume
		}
		return supervision.Restart
	}))
	starts := 0
	a := l.spawn("a", Native(func() Actor { return &second{&starts} }))
	l.tell(a, 1)
	if i := must(l.View().Info(a))(t); starts != 3 || i.State != StateRunning || i.Incarnation != 2 {
		t.Errorf("%d starts, %+v", starts, i)
	}
}

// second fails at its first message, and then at its next start.
type second struct{ starts *int }

func (s *second) Started(*Context) error {
	if *s.starts++; *s.starts == 2 {
		return errors.New("no luck")
	}
	return nil
}

func (s *second) Receive(*Context, Message) error { return errors.New("boom") }
