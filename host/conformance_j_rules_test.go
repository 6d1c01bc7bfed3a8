package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/several"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
	"pgregory.net/rapid"
)

// The rules of rows J one by one. Goroutines run in a bubble of testing/synctest, so that it is known when
// they wait: virtual time is exact, and nothing here sleeps.

// rests lets everything happen without time going on: actors, and the goroutines that wait for them.
func (l *stage) rests() {
	for {
		synctest.Wait()
		if l.RunUntilIdle(100_000) == 0 {
			return
		}
	}
}

// exactly runs what waits, in a goroutine, and moves the clock from timer to timer until it has ended.
func exactly[T any](l *stage, f func() T) (v T) {
	l.t.Helper()
	out := make(chan T, 1)
	go func() { out <- f() }()
	for range 10_000 {
		l.rests()
		select {
		case v = <-out:
			return v
		default:
			if l.clock.AdvanceToNext() == 0 {
				l.t.Fatal("it waits, and no timer is set")
			}
		}
	}
	l.t.Fatal("it does not end")
	return v
}

// constant is a policy that is told of, and always waits as long.
type constant struct {
	d     time.Duration
	asked func(n int)
}

func (p constant) Delay(n int, _ backoff.Rand) time.Duration { p.asked(n); return p.d }

// By default it is asked again, as often as may be, while the mailbox is full or the actor waits for its restart,
// and the actor is asked when it can be.
func TestRetriesOfWhatWasNotHandled(t *testing.T) {
	p := constant{10 * ms, func(int) {}}
	t.Run("full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newStage(t, nil)
			handled := 0
			a := l.spawn("a", Func(func(ctx *Context, m Message) error { handled++; return ctx.Reply(handled) }).WithLimits(Limits{Mailbox: 1}))
			pause(l, a)
			l.post(a, 1)
			_, err := exactly(l, func() outcome {
				m, err := l.AskRetry(t.Context(), a, 2, NewRetry().WithPolicy(p))
				return outcome{m, err}
			}).split()
			var last *RetryError
			if !errors.As(err, &last) || last.Attempts != 5 || !errors.Is(err, ErrMailboxFull) {
				t.Error(err)
			}
			l.clock.AfterFunc(25*ms, func() { _ = l.Operate().Unpause(a, false) })
			if _, err := exactly(l, func() outcome {
				m, err := l.AskRetry(t.Context(), a, 2, NewRetry().WithPolicy(p))
				return outcome{m, err}
			}).split(); err != nil || handled != 2 {
				t.Error(handled, err)
			}
		})
	})
	t.Run("restarting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newStage(t, func(c Config) Config {
				return c.WithGuardian(delayed(t, supervision.Backoff{Meanwhile: supervision.MeanwhileDrop}))
			})
			a := l.spawn("a", Func(func(ctx *Context, m Message) error {
				if m.Correlation == 0 {
					return errors.New("crash")
				}
				return ctx.Reply("done")
			}))
			l.say(a, 1)
			begun := l.clock.Now()
			m, err := exactly(l, func() outcome {
				m, err := l.AskRetry(t.Context(), a, 2, NewRetry().WithPolicy(constant{150 * ms, func(int) {}}))
				return outcome{m, err}
			}).split()
			if err != nil || l.clock.Now().Sub(begun) != 300*ms {
				t.Error(m, err, l.clock.Now().Sub(begun))
			}
		})
	})
}

// One time bounds all attempts and waits, whatever an attempt of its own may have; each wait is as long as the
// policy says, and its number counts from 0.
func TestRetriesInTheirTime(t *testing.T) {
	fails := func(ctx *Context, m Message) {
		ctx.System().willNotAnswer(nil, m.Sender.UID(), m.Correlation, ctx.Self().UID(), ErrStopped)
	}
	for _, c := range []struct {
		name     string
		silent   int // the attempt from which on there is no answer
		each     time.Duration
		attempts int // 0: what it has ended with is not a RetryError
		passed   time.Duration
		over     time.Duration // the system sees to its own asks once in a while
	}{
		{"fails at once", 100, 0, 3, 800 * ms, 0},
		{"silent", 0, 0, 1, time.Second, 250 * ms},
		{"silent in the end", 1, 0, 2, time.Second, 250 * ms},
		{"each has its own", 0, 300 * ms, 2, time.Second, 0},
		{"each has more than is left", 0, 700 * ms, 1, 700 * ms, 0},
		{"more than all", 0, 1700 * ms, 1, time.Second, 0},
		{"the second has more than is left", 1, 900 * ms, 2, time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newStage(t, func(c Config) Config { return c.WithAskTimeout(time.Second) })
				n := 0
				var waits []int
				a := l.spawn("a", Func(func(ctx *Context, m Message) error {
					if n++; n <= c.silent {
						fails(ctx, m)
					}
					return nil
				}))
				r := NewRetry().WithOn(ErrTimeout, ErrStopped).WithEach(c.each).WithPolicy(constant{400 * ms, func(n int) { waits = append(waits, n) }})
				begun := l.clock.Now()
				_, err := exactly(l, func() outcome { m, err := l.AskRetry(t.Context(), a, 1, r); return outcome{m, err} }).split()
				var last *RetryError
				if !errors.As(err, &last) || last.Attempts != c.attempts || n != c.attempts {
					t.Errorf("%d attempts: %v", n, err)
				}
				if passed := l.clock.Now().Sub(begun); passed < c.passed || passed > c.passed+c.over {
					t.Errorf("it takes %v, want %v", passed, c.passed)
				}
				for i, w := range waits {
					if i != w {
						t.Errorf("the policy is asked for wait %d, want %d", w, i)
					}
				}
			})
		})
	}
}

// The end of the context ends a wait at once, and there is no wait after an attempt that it has ended.
func TestRetriesEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newStage(t, func(c Config) Config { return c.WithAskTimeout(time.Hour) })
		silent := true
		a := l.spawn("a", Func(func(ctx *Context, m Message) error {
			if !silent {
				ctx.System().willNotAnswer(nil, m.Sender.UID(), m.Correlation, ctx.Self().UID(), ErrStopped)
			}
			return nil
		}))
		ask := func() (cancel context.CancelFunc, waits *int, ended chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			waits, ended = new(int), make(chan error, 1)
			r := NewRetry().WithOn(ErrTimeout, ErrStopped).WithPolicy(constant{time.Minute, func(int) { *waits++ }})
			go func() { _, err := l.AskRetry(ctx, a, 1, r); ended <- err }()
			l.rests()
			if len(ended) > 0 {
				t.Fatal("it does not wait")
			}
			return cancel, waits, ended
		}
		var last *RetryError
		cancel, waits, ended := ask()
		cancel()
		l.rests()
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.As(err, &last) || *waits != 0 {
			t.Errorf("%d waits: %v", *waits, err)
		}
		silent = false
		cancel, waits, ended = ask()
		cancel()
		l.rests()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrStopped) || !errors.As(err, &last) || last.Attempts != 1 || *waits != 1 {
				t.Errorf("%d waits: %v", *waits, err)
			}
		default:
			t.Error("it waits on")
			l.pass(time.Hour)
		}
	})
}

// Two questions have two keys.
func TestKeysOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newStage(t, nil)
		var keys []string
		a := l.spawn("a", Func(func(ctx *Context, m Message) error {
			key, _ := abi.FindHeader(m.Headers, abi.HeaderIdempotency)
			keys = append(keys, string(key))
			return ctx.Reply(1)
		}))
		for range 3 {
			if _, err := exactly(l, func() outcome { m, err := l.AskRetry(t.Context(), a, 1, NewRetry()); return outcome{m, err} }).split(); err != nil {
				t.Error(err)
			}
		}
		if len(keys) != 3 || keys[0] == "" || keys[0] == keys[1] || keys[1] == keys[2] || keys[0] == keys[2] {
			t.Errorf("%q", keys)
		}
	})
}

// What several have come to, against a model: in whatever order they answer, some twice, the ask ends as soon
// as what was wanted has come or cannot come any more, and nothing changes then.
func TestTallyIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "n")
		need := rapid.IntRange(1, n).Draw(t, "need")
		want := rapid.SampledFrom([]Want{All(), First(), Quorum(need), Settled()}).Draw(t, "want")
		switch {
		case want.Need == 0:
			need = n
		case want.Need == 1:
			need = 1
		}
		tally, err := several.New(want, make([]Ref, n))
		if err != nil {
			t.Fatal(err)
		}
		answered, failed := map[int]bool{}, 0
		over := false
		for range rapid.IntRange(0, 3*n).Draw(t, "answers") {
			i, fails := rapid.IntRange(0, n-1).Draw(t, "who"), rapid.Bool().Draw(t, "fails")
			if !over && !answered[i] {
				answered[i] = true
				if fails {
					failed++
				}
				good := len(answered) - failed
				over = len(answered) == n || !want.Settled && (good >= need || n-failed < need)
			}
			var x error
			if fails {
				x = ErrStopped
			}
			if tally.Put(i, Message{}, x) != over {
				t.Fatalf("over is not %v", over)
			}
		}
		good := len(answered) - failed
		if ok := want.Settled || good >= need; (tally.Err() == nil) != ok {
			t.Errorf("%d of %d with %d failures: %v", good, need, failed, tally.Err())
		}
		for i, r := range tally.Results {
			if errors.Is(r.Err, ErrGone) == answered[i] {
				t.Errorf("%d: %v", i, r.Err)
			}
		}
	})
}

// Those that an actor's ask of several does not wait for any more are given up within the turn that ends it: no
// ask is open, who works on one is told, and nothing of it comes later.
func TestSeveralOfAnActorAreGivenUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  Want
		quick error
	}{{"first", First(), nil}, {"no quorum any more", Quorum(3), errors.New("crash")}, {"all, one fails", All(), errors.New("crash")}} {
		t.Run(c.name, func(t *testing.T) {
			l := newStage(t, nil)
			var held []*Reply
			works := Func(func(ctx *Context, m Message) error {
				r, err := ctx.Later()
				held = append(held, r)
				return err
			})
			to := []Ref{l.spawn("", works), l.spawn("quick", Func(func(ctx *Context, m Message) error {
				if c.quick != nil {
					return c.quick
				}
				return ctx.Reply(1)
			})), l.spawn("", works)}
			if c.want.Need == 3 {
				to = append(to, l.spawn("", works))[:3]
			}
			pause(l, to[1])
			var several *Several
			ends := 0
			a := l.spawn("a", Func(func(ctx *Context, m Message) (err error) {
				if m.Kind == abi.KindMessage {
					several, err = ctx.AskSeveral(c.want, to, "q", 10, time.Minute)
					return err
				}
				if _, over, _ := several.Take(ctx, m); over {
					ends++
					if n := ctx.actor.work.Asks.Len(); n != 0 {
						t.Errorf("%d asks are open", n)
					}
					return nil
				}
				return tellProbe(ctx, m.Kind.String())
			}))
			l.say(a, nil)
			if len(held) != 2 {
				t.Fatalf("%d work", len(held))
			}
			unpause(l, to[1])
			for _, h := range held {
				select {
				case <-h.Gone():
				default:
					t.Error("who works on it is not told")
				}
				_ = h.Send("late")
			}
			l.pass(time.Hour)
			l.wants()
			if ends != 1 {
				t.Errorf("it ends %d times", ends)
			}
		})
	}
}

// Only what a question has ended with is taken, until the ask is over: a message, a timer or a question of
// somebody else's with the same number are the actor's own.
func TestSeveralTakeTheirOwn(t *testing.T) {
	tally, err := several.New(First(), make([]Ref, 2))
	if err != nil {
		t.Fatal(err)
	}
	s := several.NewAsking[*Context](tally, 10)
	for _, kind := range []abi.Kind{abi.KindMessage, abi.KindTimer, abi.KindStart, abi.KindTerminated, abi.KindReceiveTimeout} {
		if _, over, err := s.Take(nil, Message{Kind: kind, Correlation: 10}); over || err != nil {
			t.Errorf("a %v ends it", kind)
		}
	}
	for _, n := range []uint64{0, 9, 12, 1 << 63} {
		if _, over, _ := s.Take(nil, Message{Kind: abi.KindReply, Correlation: n}); over {
			t.Errorf("the answer to %d ends it", n)
		}
	}
	tally.Put(0, Message{}, nil)
	for _, n := range []uint64{10, 11} {
		if results, over, _ := s.Take(nil, Message{Kind: abi.KindReply, Correlation: n}); over || results != nil {
			t.Error("it ends twice")
		}
	}
}

// From Go: when one that is asked makes it impossible, the next are not even asked; the end of the context ends it;
// an answer to what was given up is late.
func TestSeveralFromGoAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newStage(t, nil)
		gone := l.spawn("gone", newCounter())
		l.Stop(gone)
		l.run()
		var asked []Ref
		silent := l.spawn("silent", Func(func(ctx *Context, m Message) error {
			asked = append(asked, m.Sender)
			return nil
		}))
		quick := l.spawn("quick", Func(func(ctx *Context, m Message) error { return ctx.Reply(1) }))
		ask := func(ctx context.Context, want Want, to ...Ref) ([]Asked, error) {
			got, err := exactly(l, func() outcome { got, err := l.AskSeveral(ctx, want, to, "q"); return outcome{got, err} }).split()
			return got.([]Asked), err
		}
		if got, err := ask(t.Context(), All(), gone, silent); !errors.Is(err, ErrUnknown) || len(asked) != 0 || !errors.Is(got[1].Err, ErrGone) {
			t.Errorf("%d are asked: %v, %v", len(asked), got, err)
		}
		l.equal("dead letters", l.letters(), []string{"unknown actor: q"}) // the other was not sent
		ctx, cancel := context.WithCancel(t.Context())
		l.clock.AfterFunc(ms, cancel)
		begun := l.clock.Now()
		got, err := ask(ctx, All(), quick, silent)
		var timeout *TimeoutError
		if !errors.Is(err, context.Canceled) || got[0].Err != nil || !errors.As(got[1].Err, &timeout) || l.clock.Now().Sub(begun) != ms {
			t.Errorf("%v, %v", got, err)
		}
		if _, err := ask(t.Context(), First(), silent, quick); err != nil {
			t.Error(err)
		}
		for _, who := range asked {
			l.raw()
			e := must(message.Envelope("late"))(t)
			e.Kind, e.Sender, e.Correlation = abi.KindReply, silent.UID(), 1
			_ = l.deliver(nil, who.UID(), e)
			if events := l.raw(EventDeadLetter); len(events) != 1 || events[0].Dead.Reason != DeadLate {
				t.Errorf("%+v", events)
			}
		}
		if len(asked) != 2 {
			t.Fatalf("%d were asked", len(asked))
		}
		if _, known := l.recent.Find(asked[1].UID()); !known {
			t.Error("who answers late counts as one who guesses refs")
		}
	})
}

// doors are the functions and asks that the system waits for.
func (l *stage) doors() (open []string) {
	for _, x := range l.outside.Open() {
		open = append(open, fmt.Sprintf("%T", x))
	}
	return open
}

// Work for an actor is ended with the reason, when time is over, when it is done, and when nobody is left to hear of it;
// so is an ask whose answer is piped. Nothing is left of either.
func TestPipesEndWhatTheyWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newStage(t, nil)
		said := func(ctx *Context, m Message) error {
			reason, _ := m.Failure()
			return tellProbe(ctx, reason)
		}
		spawn := func() Ref { return l.spawn("", Func(said)) }
		var cause error
		work := func(ctx context.Context) (any, error) { <-ctx.Done(); cause = context.Cause(ctx); return nil, nil }
		check := func(what string, want error, told ...string) {
			t.Helper()
			l.rests()
			if cause != want {
				t.Errorf("%s: the cause is %v, want %v", what, cause, want)
			}
			cause = nil
			l.wants(told...)
		}
		a := spawn()
		p := l.PipeTo(a).WithTimeout(time.Second)
		if err := p.Go(work); err != nil {
			t.Fatal(err)
		}
		l.rests()
		l.pass(time.Second - 1)
		check("too early", nil)
		l.pass(1)
		check("a time that is over", ErrTimeout, "message host: no reply in time")
		if err := p.Go(work); err != nil {
			t.Fatal(err)
		}
		l.Stop(a)
		l.run()
		check("an actor that has stopped", ErrStopped)
		a = spawn()
		var kept context.Context
		if err := l.PipeTo(a).Go(func(ctx context.Context) (any, error) { kept = ctx; return "v", nil }); err != nil {
			t.Fatal(err)
		}
		l.rests()
		l.rests()
		if l.wants("message "); kept.Err() == nil {
			t.Error("the context of what has been done goes on")
		}
		nothing := func() {
			t.Helper()
			l.rests()
			if open := l.doors(); len(open) > 0 {
				t.Errorf("it waits for %v", open)
			}
			if n := l.table.Get(a.UID()).work.Watch.Watchers(); len(n) > 0 {
				t.Errorf("the actor will tell %v of its end", n)
			}
		}
		nothing()

		// An ask, of somebody who takes his time, or does not answer.
		var held *Reply
		slow := l.spawn("slow", Func(func(ctx *Context, m Message) (err error) { held, err = ctx.Later(); return err }))
		gone := func(what string, want bool) {
			t.Helper()
			l.rests()
			select {
			case <-held.Gone():
				if !want {
					t.Errorf("%s: the ask is given up", what)
				}
			default:
				if want {
					t.Errorf("%s: the ask goes on", what)
				}
			}
		}
		answer := func(a Ref) {
			t.Helper()
			if err := l.PipeTo(a).WithTimeout(time.Second).Answer(must(l.Request(slow, nil))(t)); err != nil {
				t.Fatal(err)
			}
			l.rests()
		}
		answer(a)
		l.pass(time.Second - 1)
		gone("too early", false)
		l.pass(1)
		gone("a time that is over", true)
		l.rests()
		l.wants("message host: no reply in time")
		answer(a)
		l.Stop(a)
		l.run()
		gone("an actor that has stopped", true)
		ask := must(l.Request(slow, nil))(t)
		l.rests()
		if err := l.PipeTo(a).Answer(ask); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
		gone("an actor that has gone before", true)
		a = spawn()
		refuses := l.spawn("refuses", Func(func(ctx *Context, m Message) error { return ctx.ReplyError("no") }))
		if err := l.PipeTo(a).Answer(must(l.Request(refuses, nil))(t)); err != nil {
			t.Fatal(err)
		}
		l.rests()
		l.wants("message " + (&ReplyError{Reason: "no"}).Error())
		nothing()
	})
}

// A function that an actor asks is told when nobody waits: its ask was answered, cancelled, is over, or its
// actor has failed or stopped. If there is no room for the answer, that is the answer.
func TestPipesOfAnActorEnd(t *testing.T) {
	for _, c := range []struct {
		what  string
		calls int
		cause error
		told  []string
	}{
		{"cancel", 1, ErrGone, nil},
		{"timeout", 1, ErrGone, []string{"message ask_timeout"}},
		{"crash", 1, ErrGone, nil},
		{"stop", 1, ErrGone, nil},
		{"fail", 0, nil, nil},
		{"done", 1, nil, []string{"message reply"}},
		{"full", 1, nil, []string{"message reply_error"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newStage(t, nil)
				calls, done := 0, make(chan struct{})
				var cause error
				f := func(ctx context.Context) (any, error) {
					calls++
					select {
					case <-ctx.Done():
						cause = context.Cause(ctx)
					case <-done:
					}
					return "v", nil
				}
				a := l.spawn("a", Func(func(ctx *Context, m Message) error {
					if m.Kind != abi.KindMessage {
						return tellProbe(ctx, m.Kind.String())
					}
					var what string
					_ = m.Decode(&what)
					switch what {
					case "cancel":
						ctx.CancelAsk(5)
					case "crash":
						return errors.New("crash")
					case "stop":
						ctx.Stop(ctx.Self())
					case "":
						if err := ctx.Head().Pipe(f, 5, time.Second); err != nil {
							return err
						}
						if c.what == "fail" {
							return errors.New("the turn fails")
						}
					}
					return nil
				}).WithLimits(Limits{Mailbox: 1, MailboxBytes: 10}))
				l.say(a, nil)
				l.rests()
				switch c.what {
				case "cancel", "crash", "stop":
					l.say(a, c.what)
				case "timeout":
					l.pass(time.Second)
				case "done":
					close(done)
				case "full":
					pause(l, a)
					l.post(a, "x")
					close(done)
					l.rests()
					unpause(l, a)
				}
				l.rests()
				l.wants(c.told...)
				if calls != c.calls || cause != c.cause {
					t.Errorf("%d calls, ended by %v", calls, cause)
				}
				if open := l.doors(); len(open) > 0 {
					t.Errorf("it waits for %v", open)
				}
			})
		})
	}
}

// The target of a timeout is named by its path, though only its number was known.
func TestTimeoutsNameTheTarget(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithAskTimeout(time.Second) })
	silent := l.spawn("silent", newCounter())
	p, err := l.outside.Request(newRef(silent.UID(), ""), must(message.Envelope("q"))(t), l.outside.Patience(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.outside.TimedOut(p, newRef(silent.UID(), ""), "q", nil); !strings.Contains(err.Error(), ": asked /user/silent (native) for string, 0s ago; it is between turns, 1 message waits") {
		t.Error(err)
	}
}

// One that has begun with something else since is not idle, though nobody knows when it has.
func TestTimeoutsOfOneThatHasBegun(t *testing.T) {
	s, err := New(NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	begun, end := make(chan struct{}), make(chan struct{})
	a := must(s.Spawn("", Func(func(_ *Context, m Message) error {
		if m.Correlation == 0 {
			close(begun)
			<-end
		}
		return nil
	})))(t)
	p, err := s.outside.Request(a, must(message.Envelope("q"))(t), s.outside.Patience(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Tell(a, nil); err != nil {
		t.Fatal(err)
	}
	<-begun
	defer close(end)
	var timeout *TimeoutError
	if err := s.outside.TimedOut(p, a, "q", nil); !errors.As(err, &timeout) || timeout.Turn != 0 || timeout.AtLeast || !strings.Contains(err.Error(), "it is in a turn that has begun since, 0 messages wait") {
		t.Error(err)
	}
}
