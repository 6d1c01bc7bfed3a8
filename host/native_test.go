package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manual is a system that runs only when it is told to, on a virtual clock.
func manual(t testing.TB, change func(Config) Config) (*System, *VirtualClock) {
	t.Helper()
	clock := NewVirtualClock(time.Unix(1_700_000_000, 0))
	cfg := NewConfig("test").WithManual().WithClock(clock).WithIdleAfter(0).WithSeed(1)
	if manner == sleepy {
		cfg = cfg.WithIdleAfter(idleSoon)
	}
	if change != nil {
		cfg = change(cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.RunUntilIdle(1000)
	return s, clock
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// counter adds up what it is told, fails on "crash" and panics on "panic".
type counter struct{ n int }

func (a *counter) Receive(ctx *Context, m Message) error {
	if m.Kind == abi.KindTerminated {
		return ErrUnhandled
	}
	var v any
	if err := m.Decode(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case uint64:
		a.n += int(v)
	case string:
		switch v {
		case "get":
			return ctx.Reply(a.n)
		case "crash":
			return errors.New("crashed")
		case "panic":
			panic("oh")
		}
	}
	return nil
}

func newCounter() Props { return Native(func() Actor { return &counter{} }) }

func get(t testing.TB, s *System, ref Ref) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer := make(chan Message, 1)
	failed := make(chan error, 1)
	go func() {
		m, err := s.Ask(ctx, ref, "get")
		if err != nil {
			failed <- err
			return
		}
		answer <- m
	}()
	for {
		s.RunUntilIdle(1000)
		select {
		case m := <-answer:
			var n int
			if err := m.Decode(&n); err != nil {
				t.Fatal(err)
			}
			return n
		case err := <-failed:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
}

// The directives on a parent whose child holds 42: Akka's FaultHandlingTest.
func TestD10_FaultHandling(t *testing.T) {
	for _, c := range []struct {
		directive supervision.Directive
		want      int // -1: stopped
	}{{supervision.Resume, 42}, {supervision.Restart, 0}, {supervision.Stop, -1}} {
		t.Run(c.directive.String(), func(t *testing.T) {
			s, _ := manual(t, func(cfg Config) Config {
				return cfg.WithGuardian(supervision.Default().WithOtherwise(c.directive).WithRules())
			})
			ref := must(s.Spawn("child", newCounter()))(t)
			ended := must(s.Ended(ref))(t)
			s.Tell(ref, 42)
			s.Tell(ref, "crash")
			s.RunUntilIdle(1000)
			select {
			case <-ended:
				if c.want >= 0 {
					t.Fatal("it has stopped")
				}
			default:
				if c.want < 0 {
					t.Fatal("it lives on")
				}
				if got := get(t, s, ref); got != c.want {
					t.Errorf("it holds %d, want %d", got, c.want)
				}
			}
		})
	}
}

func TestD10_EscalateToTheTopEndsTheSystem(t *testing.T) {
	s, _ := manual(t, func(cfg Config) Config {
		return cfg.WithGuardian(supervision.Default().WithOtherwise(supervision.Escalate))
	})
	ref := must(s.Spawn("child", newCounter()))(t)
	s.Tell(ref, "crash")
	s.RunUntilIdle(1000)
	select {
	case <-s.Terminated():
	default:
		t.Fatal("the system goes on")
	}
	if s.Cause() == nil {
		t.Error("no cause")
	}
}

func TestD14_DelayedRestart(t *testing.T) {
	policy, err := backoff.Spec{Min: 200 * time.Millisecond, Max: 10 * time.Second}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	s, clock := manual(t, func(cfg Config) Config {
		return cfg.WithGuardian(supervision.Default().WithBackoff(supervision.Backoff{Policy: policy, Reset: supervision.ResetNever}))
	})
	events := s.Subscribe(100, func(e *Event) bool { return e.Kind == EventFailed })
	ref := must(s.Spawn("child", newCounter()))(t)
	s.RunUntilIdle(1000)
	for i, want := range []time.Duration{200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		want *= time.Millisecond
		s.Tell(ref, "crash")
		s.Tell(ref, 1) // waits for the next incarnation
		s.RunUntilIdle(1000)
		e := <-events.C()
		if e.Delay != want || e.Directive != supervision.Restart {
			t.Fatalf("%v after %v, want %v", e.Directive, e.Delay, want)
		}
		clock.Advance(want - 1)
		s.RunUntilIdle(1000)
		if n := s.View().Tree().Children[0]; n.State != "restarting" || n.Mailbox != 1 || n.Incarnation != uint64(i) {
			t.Fatalf("%+v before the delay is over", n)
		}
		clock.Advance(1)
		s.RunUntilIdle(1000)
		if got := get(t, s, ref); got != 1 {
			t.Fatalf("it holds %d", got)
		}
	}
}

func TestD14_StopCancelsTheDelay(t *testing.T) {
	policy, _ := backoff.Spec{Min: time.Hour, Max: time.Hour}.Policy()
	s, clock := manual(t, func(cfg Config) Config {
		return cfg.WithGuardian(supervision.Default().WithBackoff(supervision.Backoff{Policy: policy}))
	})
	ref := must(s.Spawn("child", newCounter()))(t)
	s.Tell(ref, "crash")
	s.RunUntilIdle(1000)
	s.Stop(ref)
	s.RunUntilIdle(1000)
	if clock.Pending() != 0 {
		t.Error("a timer is left")
	}
	if err := s.Tell(ref, 1); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if err := s.Idle(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestD07_AllForOneAndRestForOne(t *testing.T) {
	for _, c := range []struct {
		kind supervision.Kind
		want []int
	}{{supervision.OneForOne, []int{5, 0, 5}}, {supervision.AllForOne, []int{0, 0, 0}}, {supervision.RestForOne, []int{5, 0, 0}}} {
		s, _ := manual(t, func(cfg Config) Config { return cfg.WithGuardian(supervision.Default().WithKind(c.kind)) })
		var refs []Ref
		for i := range 3 {
			refs = append(refs, must(s.Spawn(fmt.Sprint("c", i), newCounter()))(t))
			s.Tell(refs[i], 5)
		}
		s.RunUntilIdle(1000)
		s.Tell(refs[1], "panic")
		s.RunUntilIdle(1000)
		var got []int
		for _, r := range refs {
			got = append(got, get(t, s, r))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.kind, got, c.want)
		}
	}
}

func TestA15A17_NamesAndIncarnations(t *testing.T) {
	s, _ := manual(t, nil)
	ref := must(s.Spawn("a", newCounter()))(t)
	if _, err := s.Spawn("a", newCounter()); !errors.Is(err, ErrNameTaken) {
		t.Error(err)
	}
	for _, name := range []string{"$a", "a/b", "ä", "a b"} {
		if _, err := s.Spawn(name, newCounter()); !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	s.Stop(ref)
	s.RunUntilIdle(1000)
	again := must(s.Spawn("a", newCounter()))(t)
	if again == ref || again.Path() != ref.Path() {
		t.Errorf("%v and %v", ref, again)
	}
	if err := s.Tell(ref, 1); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if found := must(s.Lookup("/user/a"))(t); found != again {
		t.Error(found)
	}
	if _, err := s.Lookup(ref.String()); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// A24, B14: what one sends arrives in order, and the news of its end comes last.
func TestB14_TerminatedAfterLastMessage(t *testing.T) {
	s, _ := manual(t, nil)
	var got []string
	watcher := must(s.Spawn("watcher", Func(func(ctx *Context, m Message) error {
		switch m.Kind {
		case abi.KindTerminated:
			got = append(got, "terminated")
		default:
			var v any
			if err := m.Decode(&v); err != nil {
				return err
			}
			if v == "watch" {
				target, err := ctx.System().Lookup("/user/talker")
				if err != nil {
					return err
				}
				return ctx.Watch(target)
			}
			got = append(got, fmt.Sprint(v))
		}
		return nil
	})))(t)
	talker := must(s.Spawn("talker", Func(func(ctx *Context, m Message) error {
		for i := range 5 {
			if err := ctx.Tell(watcher, i); err != nil {
				return err
			}
		}
		ctx.Stop(ctx.Self())
		return nil
	})))(t)
	s.Tell(watcher, "watch")
	s.RunUntilIdle(1000)
	s.Tell(talker, "go")
	s.RunUntilIdle(1000)
	if want := []string{"0", "1", "2", "3", "4", "terminated"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestB15_UnhandledTerminatedIsADeathPact(t *testing.T) {
	s, _ := manual(t, nil)
	events := s.Subscribe(10, func(e *Event) bool { return e.Kind == EventFailed })
	a := must(s.Spawn("a", newCounter()))(t)
	must(s.Spawn("b", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindTerminated {
			return ErrUnhandled
		}
		return ctx.Watch(a)
	})))(t)
	b := must(s.Lookup("/user/b"))(t)
	s.Tell(b, "watch")
	s.RunUntilIdle(100)
	s.Stop(a)
	s.RunUntilIdle(100)
	e := <-events.C()
	if e.Failure.Kind != abi.FailureDeathPact || e.Directive != supervision.Stop {
		t.Errorf("%v, %v", e.Failure, e.Directive)
	}
}

func TestB31_PoisonPillComesInTurn(t *testing.T) {
	s, _ := manual(t, nil)
	a := must(s.Spawn("a", newCounter()))(t)
	ended := must(s.Ended(a))(t)
	s.Tell(a, 1)
	s.PoisonPill(a)
	s.Tell(a, 2)
	s.RunUntilIdle(100)
	<-ended
	letters, n := s.DeadLetters()
	if n != 1 || letters[0].Reason != DeadStopped {
		t.Errorf("%d dead letters: %+v", n, letters)
	}
}

func TestA30_MailboxFull(t *testing.T) {
	s, _ := manual(t, nil)
	a := must(s.Spawn("a", newCounter().WithLimits(Limits{Mailbox: 2})))(t)
	var err error
	for range 3 {
		err = s.Tell(a, 1)
	}
	if !errors.Is(err, ErrMailboxFull) {
		t.Error(err)
	}
	letters, n := s.DeadLetters()
	if n != 1 || letters[0].Reason != DeadMailboxFull {
		t.Errorf("%+v", letters)
	}
}

func TestDeterminism(t *testing.T) {
	run := func() (log []string) {
		policy, _ := backoff.Spec{Min: time.Millisecond, Max: time.Second, Spread: 0.5}.Policy()
		s, clock := manual(t, func(c Config) Config {
			return c.WithSeed(99).WithGuardian(supervision.Default().WithBackoff(supervision.Backoff{Policy: policy}))
		})
		events := s.Subscribe(1000, nil)
		for i := range 5 {
			ref := must(s.Spawn("", newCounter()))(t)
			for range i {
				s.Tell(ref, "crash")
			}
		}
		for range 20 {
			s.RunUntilIdle(1000)
			clock.AdvanceToNext()
		}
		for {
			select {
			case e := <-events.C():
				log = append(log, fmt.Sprint(e.Kind, e.Ref, e.Delay, e.Incarnation))
			default:
				return log
			}
		}
	}
	if a, b := run(), run(); len(a) < 20 || !slices.Equal(a, b) {
		t.Errorf("two runs of one seed differ (%d and %d events)", len(a), len(b))
	}
}
