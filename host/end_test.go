package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// waits is a call of the public API that waits, and what it is to end with when the system is closed, or
// when the actor ends that it concerns.
type waits struct {
	name string
	make func(t *testing.T, s *System, silent Ref) (wait func() error)
	want error // nil: no error
	asks int   // how many messages silent gets
}

var everyWait = []waits{
	{"Ask", func(_ *testing.T, s *System, silent Ref) func() error {
		return func() error { _, err := s.Ask(context.Background(), silent, 1); return err }
	}, ErrStopped, 1},
	{"AskRetry", func(_ *testing.T, s *System, silent Ref) func() error {
		return func() error {
			_, err := s.AskRetry(context.Background(), silent, 1, NewRetry().WithAttempts(3))
			return err
		}
	}, ErrStopped, 1},
	{"AskSeveral", func(_ *testing.T, s *System, silent Ref) func() error {
		return func() error {
			_, err := s.AskSeveral(context.Background(), All(), []Ref{silent, silent}, 1)
			return err
		}
	}, ErrStopped, 2},
	{"Request", func(t *testing.T, s *System, silent Ref) func() error {
		p := must(s.Request(silent, 1))(t)
		return func() error { m := <-p.Answer(); return m.Err() }
	}, ErrStopped, 1},
	{"Inbox.Ask", func(t *testing.T, s *System, silent Ref) func() error {
		in := s.Inbox(0)
		if err := in.Ask(silent, 1, 1); err != nil {
			t.Fatal(err)
		}
		return func() error {
			m, err := in.Receive(context.Background())
			return errors.Join(err, m.Err())
		}
	}, ErrStopped, 1},
	{"Ended", func(t *testing.T, s *System, silent Ref) func() error {
		c := must(s.Ended(silent))(t)
		return func() error { <-c; return nil }
	}, nil, 0},
	{"StopGracefully", func(_ *testing.T, s *System, silent Ref) func() error {
		return func() error { return s.StopGracefully(context.Background(), silent) }
	}, nil, 0},
	{"Inbox.Watch", func(_ *testing.T, s *System, silent Ref) func() error {
		in := s.Inbox(0)
		in.Watch(silent)
		return func() error {
			m, err := in.Receive(context.Background())
			if err == nil && m.Kind != abi.KindTerminated {
				return fmt.Errorf("%v", m.Kind)
			}
			return err
		}
	}, nil, 0},
	{"Tap", func(t *testing.T, s *System, silent Ref) func() error {
		c := make(chan struct{})
		must(s.View().Tap(silent, 0, func(*Tapped) {}, sync.OnceFunc(func() { close(c) })))(t)
		return func() error { <-c; return nil }
	}, nil, 0},
	{"Pipe.Go", func(t *testing.T, s *System, silent Ref) func() error {
		c := make(chan error, 1)
		err := s.PipeTo(silent).Go(func(ctx context.Context) (any, error) { <-ctx.Done(); c <- context.Cause(ctx); return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		return func() error { return <-c }
	}, ErrStopped, 0},
}

// whenClosed is what only the end of the system ends.
var whenClosed = []waits{
	{"Inbox.Receive", func(_ *testing.T, s *System, _ Ref) func() error {
		in := s.Inbox(0)
		return func() error { _, err := in.Receive(context.Background()); return err }
	}, ErrClosed, 0},
	{"Subscription", func(_ *testing.T, s *System, _ Ref) func() error {
		sub := s.Subscribe(10, nil)
		return func() error {
			for range sub.C() {
			}
			return nil
		}
	}, nil, 0},
	{"Terminated", func(_ *testing.T, s *System, _ Ref) func() error {
		return func() error { <-s.Terminated(); return nil }
	}, nil, 0},
	{"Reply.Gone", func(t *testing.T, s *System, _ Ref) func() error {
		in, handle := s.Inbox(0), make(chan *Reply, 1)
		later := must(s.Spawn("", Func(func(ctx *Context, _ Message) error {
			r, err := ctx.Later()
			handle <- r
			return err
		})))(t)
		if err := in.Tell(later, 1); err != nil {
			t.Fatal(err)
		}
		r := <-handle
		return func() error { <-r.Gone(); return nil }
	}, nil, 0},
	{"Request answered later", func(t *testing.T, s *System, _ Ref) func() error {
		handle := make(chan *Reply, 1)
		later := must(s.Spawn("", Func(func(ctx *Context, _ Message) error {
			r, err := ctx.Later()
			handle <- r
			return err
		})))(t)
		p := must(s.Request(later, 1))(t)
		<-handle
		return func() error { m := <-p.Answer(); return m.Err() }
	}, ErrStopped, 0},
	{"AskRetry between two attempts", func(t *testing.T, s *System, _ Ref) func() error {
		refused := make(chan struct{}, 10)
		full := must(s.Spawn("", Func(func(ctx *Context, _ Message) error { return ctx.ReplyError("no") })))(t)
		hour := must(backoff.Spec{Curve: "constant", Min: time.Hour, Max: time.Hour, Jitter: "none"}.Policy())(t)
		retry := NewRetry().WithAttempts(3).WithPolicy(hour).WithOnFunc(func(error) bool { refused <- struct{}{}; return true })
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Hour)
		t.Cleanup(cancel)
		over := make(chan error, 1)
		go func() { _, err := s.AskRetry(ctx, full, 1, retry); over <- err }()
		<-refused
		return func() error { return <-over }
	}, ErrStopped, 0},
}

// ends reports what a call that waits ends with; it must.
func (w *waits) ends(t *testing.T, over <-chan error) {
	t.Helper()
	select {
	case err := <-over:
		if !errors.Is(err, w.want) {
			t.Errorf("%s: %v", w.name, err)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("%s waits for ever", w.name)
	}
}

// begin has a call wait.
func (w *waits) begin(t *testing.T, s *System, silent Ref) <-chan error {
	t.Helper()
	wait, over := w.make(t, s, silent), make(chan error, 1)
	go func() { over <- wait() }()
	waitFor(t, w.name, func() bool {
		a := s.table.Get(silent.UID())
		return a == nil || int(a.tally.Turns.Load())+a.box.Len() >= w.asks
	})
	return over
}

// Whatever waits ends with the system: when it is closed, when its last actor has failed, and for those who
// only begin to wait then.
func TestNothingWaitsBehindTheEndOfASystem(t *testing.T) {
	all := append(append([]waits(nil), everyWait...), whenClosed...)
	for i := range all {
		w := &all[i]
		s := newSystem(t, NewConfig("test"))
		silent := must(s.Spawn("silent", Func(func(*Context, Message) error { return nil })))(t)
		over := w.begin(t, s, silent)
		for range 2 { // twice is once
			if err := s.Close(context.Background()); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
		}
		w.ends(t, over)
	}
}

// An actor's end ends what waits for it, and is known at once to who comes later.
func TestNothingWaitsBehindAnActorThatHasEnded(t *testing.T) {
	for i := range everyWait {
		w := &everyWait[i]
		s := newSystem(t, NewConfig("test"))
		entered, leave := make(chan struct{}, 10), make(chan struct{})
		silent := must(s.Spawn("silent", Func(func(*Context, Message) error {
			entered <- struct{}{}
			<-leave
			return nil
		})))(t)
		if err := s.Tell(silent, 1); err != nil { // what comes now waits in the mailbox
			t.Fatal(err)
		}
		<-entered
		over := w.begin(t, s, silent)
		s.Stop(silent)
		close(leave)
		w.ends(t, over)
	}
}

// What is asked of a system that has been closed fails, and does not wait.
func TestAClosedSystemKeepsNobodyWaiting(t *testing.T) {
	s := newSystem(t, NewConfig("test"))
	gone := must(s.Spawn("gone", Func(func(*Context, Message) error { return nil })))(t)
	old := s.Inbox(0)
	if err := s.TellFrom(Ref{}, old.Ref(), "before"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	forever := context.Background()
	props := Func(func(*Context, Message) error { return nil })
	fresh := s.Inbox(0)
	for _, c := range []struct {
		name string
		call func() error
		want error
	}{
		{"Ask", func() error { _, err := s.Ask(forever, gone, 1); return err }, ErrUnknown},
		{"AskRetry", func() error { _, err := s.AskRetry(forever, gone, 1, NewRetry()); return err }, ErrUnknown},
		{"AskSeveral", func() error { _, err := s.AskSeveral(forever, All(), []Ref{gone}, 1); return err }, ErrUnknown},
		{"AskOnce", func() error { _, err := s.AskOnce(forever, props, 1); return err }, ErrClosed},
		{"Request", func() error { _, err := s.Request(gone, 1); return err }, ErrUnknown},
		{"Tell", func() error { return s.Tell(gone, 1) }, ErrUnknown},
		{"Spawn", func() error { _, err := s.Spawn("", props); return err }, ErrClosed},
		{"GetOrSpawn", func() error { _, _, err := s.GetOrSpawn(forever, "a", props); return err }, ErrClosed},
		{"Stop", func() error { s.Stop(gone); s.StopNow(gone); return nil }, nil},
		{"StopGracefully", func() error { return s.StopGracefully(forever, gone) }, nil},
		{"Kill", func() error { return s.Operate().Kill(gone) }, ErrUnknown},
		{"PoisonPill", func() error { return s.PoisonPill(gone) }, ErrUnknown},
		{"Restart", func() error { return s.Operate().Restart(gone) }, ErrUnknown},
		{"Pause", func() error { return s.Operate().Pause(gone, true) }, ErrUnknown},
		{"Crash", func() error { return s.Operate().Crash(gone, 0, "") }, ErrUnknown},
		{"Inspect", func() error { _, err := s.View().Inspect(forever, gone); return err }, ErrUnknown},
		{"Ended", func() error { _, err := s.Ended(gone); return err }, ErrUnknown},
		{"Idle", func() error { return s.Idle(forever) }, nil},
		{"Subscribe", func() error {
			for range s.Subscribe(1, nil).C() {
			}
			return nil
		}, nil},
		{"Pipe.Go", func() error {
			return s.PipeTo(gone).Go(func(context.Context) (any, error) { return 1, nil })
		}, ErrUnknown},
		{"an inbox that was there: what it has received", func() error {
			_, err := old.Receive(forever)
			return err
		}, nil},
		{"an inbox that was there", func() error { _, err := old.Receive(forever); return err }, ErrClosed},
		{"a message to it", func() error { return s.Tell(old.Ref(), 1) }, ErrUnknown},
		{"a new inbox", func() error { _, err := fresh.Receive(forever); return err }, ErrClosed},
		{"its ask", func() error { return fresh.Ask(gone, 1, 1) }, ErrUnknown},
		{"its watch", func() error { fresh.Watch(gone); _, err := fresh.Receive(forever); return err }, nil},
		{"a closed inbox's watch", func() error { fresh.Close(); fresh.Watch(gone); _, err := fresh.Receive(forever); return err }, ErrClosed},
		{"Close", func() error { return s.Close(forever) }, nil},
	} {
		w, over := waits{name: c.name, want: c.want}, make(chan error, 1)
		go func() { over <- c.call() }()
		w.ends(t, over)
	}
}

// Of several that wait for an inbox all are told of its end.
func TestAllReceiversSeeAnInboxClose(t *testing.T) {
	s := newSystem(t, NewConfig("test"))
	in := s.Inbox(0)
	over := make(chan error, 3)
	for range cap(over) {
		go func() { _, err := in.Receive(context.Background()); over <- err }()
	}
	in.Close()
	in.Close()
	for range cap(over) {
		(&waits{name: "Receive", want: ErrClosed}).ends(t, over)
	}
}

// The parent of an actor learns of its end before its watchers do, so the system may have ended before the last of
// them are told. An inbox hears of each end once all the same, behind the outcomes of what it has asked.
func TestInboxesHearOfTheLastEnds(t *testing.T) {
	s := newSystem(t, NewConfig("test"))
	silent := Func(func(*Context, Message) error { return nil })
	one, two, other := must(s.Spawn("one", silent))(t), must(s.Spawn("two", silent))(t), must(s.Spawn("other", silent))(t)
	in := s.Inbox(1)
	for _, ref := range []Ref{one, two, other} {
		in.Watch(ref)
	}
	in.Unwatch(other)
	must(0, in.Ask(one, 1, 7))(t)
	waitFor(t, "the question", func() bool { return s.table.Get(one.UID()).tally.Turns.Load() == 1 })
	s.outside.Close()
	for _, ref := range []Ref{one, two} {
		s.notifyEnd(nil, in.Ref().UID(), ref, "stopped") // what comes too late
	}
	var got []string
	for {
		m, err := in.Receive(context.Background())
		if err != nil {
			if !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			break
		}
		got = append(got, fmt.Sprint(m.Kind, " ", m.Sender.Path(), " ", m.Correlation))
	}
	want := []string{"reply_error  7", "terminated " + one.Path() + " 0", "terminated " + two.Path() + " 0"}
	slices.Sort(got[min(1, len(got)):])
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A failure that reaches the top ends who waits, too, before anybody closes the system.
func TestWhoWaitsIsToldThatTheSystemHasFailed(t *testing.T) {
	s := newSystem(t, NewConfig("test"))
	in := s.Inbox(0)
	over := make(chan error, 1)
	go func() { _, err := in.Receive(context.Background()); over <- err }()
	s.escalated(nil, s.user, &abi.Failure{Kind: abi.FailureGuestError, Reason: "on purpose"})
	(&waits{name: "Receive", want: ErrClosed}).ends(t, over)
}

// However many wait for the end of an actor, and whether they give it up or not, the system holds one
// entry for it, and none when all have given it up.
func TestWaitingForAnEndIsBounded(t *testing.T) {
	s, _ := manual(t, nil)
	a := must(s.Spawn("a", Func(func(*Context, Message) error { return nil })))(t)
	held := func() int {
		s.RunUntilIdle(1000)
		return len(s.outside.Open()) + s.outside.Ends() + len(s.table.Get(a.UID()).work.Watch.Watchers())
	}
	var forget []func()
	for range 1000 {
		_, f, err := s.WatchEnd(a)
		if err != nil {
			t.Fatal(err)
		}
		forget = append(forget, f)
	}
	if n := held(); n != 3 {
		t.Errorf("%d are held, want one of each", n)
	}
	for _, f := range forget[1:] {
		f()
		f()
	}
	if n := held(); n != 3 {
		t.Errorf("%d are held for one that waits", n)
	}
	forget[0]()
	if n := held(); n != 0 {
		t.Errorf("%d are held for nobody", n)
	}
	var all []<-chan struct{}
	for range 1000 {
		all = append(all, must(s.Ended(a))(t))
	}
	if n := held(); n != 3 {
		t.Errorf("%d are held for those who never give it up", n)
	}
	s.Stop(a)
	s.RunUntilIdle(1000)
	for _, c := range all {
		select {
		case <-c:
		default:
			t.Fatal("one is not told")
		}
	}
	if _, err := s.Ended(a); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if n := len(s.outside.Open()) + s.outside.Ends(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// Actors end while many begin to wait for that, and some give it up: who has not is told.
func TestWhoWaitsForAnEndIsTold(t *testing.T) {
	s := newSystem(t, NewConfig("test"))
	rounds := 300
	if testing.Short() {
		rounds = 100
	}
	for range rounds {
		a := must(s.Spawn("", Func(func(*Context, Message) error { return nil })))(t)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for range 5 {
					ended, forget, err := s.WatchEnd(a)
					if err != nil {
						return
					}
					if i%2 == 0 {
						forget()
						continue
					}
					select {
					case <-ended:
					case <-time.After(20 * time.Second):
						t.Error("one is not told")
					}
				}
			})
		}
		s.Stop(a)
		all.Wait()
	}
}
