package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/outside"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// aside runs what waits, in a goroutine, while everything happens that is to; each step is
// another millisecond.
func aside[T any](l *stage, f func() T) T {
	l.t.Helper()
	out := make(chan T, 1)
	go func() { out <- f() }()
	for range 100_000 {
		l.run()
		select {
		case v := <-out:
			return v
		default:
			l.clock.Advance(ms)
			time.Sleep(300 * time.Microsecond) // for the goroutine, which may be late
		}
	}
	l.t.Fatal("it does not end")
	panic("unreachable")
}

// J02: sequence, first completed and fold over several: all, the first, a quorum, what became of
// each; those that nobody waits for any longer are given up.
func TestJ02_Several(t *testing.T) {
	answer := func(v any) Props { return Func(func(ctx *Context, m Message) error { return ctx.Reply(v) }) }
	fails := Func(func(ctx *Context, m Message) error { return ctx.ReplyError("no") })
	crashes := Func(func(ctx *Context, m Message) error { return errors.New("crash") })
	silent := Func(func(ctx *Context, m Message) error { return nil })
	slow := Func(func(ctx *Context, m Message) error {
		r, err := ctx.Later()
		if err == nil {
			ctx.System().Clock().AfterFunc(100*ms, func() { _ = r.Send("slow") })
		}
		return err
	})
	for _, c := range []struct {
		name string
		want Want
		who  []Props
		got  string // of each: the answer, "no", "-" not waited for, "late"
		err  bool
	}{
		{"all", All(), []Props{answer("a"), answer("b"), answer("c")}, "a b c", false},
		{"all, one fails", All(), []Props{answer("a"), fails, silent}, "a no -", true},
		{"all, one crashes", All(), []Props{crashes, silent}, "crash -", true},
		{"all, one is silent", All(), []Props{answer("a"), silent}, "a late", true},
		{"first", First(), []Props{silent, answer("b"), silent}, "- b -", false},
		{"first after failures", First(), []Props{fails, crashes, slow}, "no crash slow", false},
		{"first of none", First(), []Props{fails, crashes}, "no crash", true},
		{"quorum", Quorum(2), []Props{answer("a"), silent, answer("c"), silent}, "a - c -", false},
		{"quorum, one fails", Quorum(2), []Props{fails, answer("b"), answer("c")}, "no b c", false},
		{"no quorum any more", Quorum(2), []Props{fails, silent, crashes}, "no - crash", true},
		{"settled", Settled(), []Props{fails, answer("b"), crashes, silent}, "no b crash late", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newStage(t, func(c Config) Config { return c.WithAskTimeout(time.Second) })
			var to []Ref
			for _, p := range c.who {
				to = append(to, l.spawn("", p))
			}
			show := func(results []Asked) string {
				var out []string
				for i, r := range results {
					if r.Target.UID() != to[i].UID() {
						t.Errorf("result %d is of %v", i, r.Target)
					}
					var text string
					switch {
					case errors.Is(r.Err, ErrGone):
						text = "-"
					case errors.Is(r.Err, ErrTimeout):
						text = "late"
					case r.Err != nil && strings.Contains(r.Err.Error(), "crash"):
						text = "crash"
					case r.Err != nil:
						text = "no"
					default:
						_ = r.Message.Decode(&text)
					}
					out = append(out, text)
				}
				return strings.Join(out, " ")
			}
			type result struct {
				got []Asked
				err error
			}
			check := func(who string, r result) {
				t.Helper()
				if got := show(r.got); got != c.got || (r.err != nil) != c.err {
					t.Errorf("%s: %q %v, want %q", who, got, r.err, c.got)
				}
				var several *SeveralError
				if r.err != nil && (!errors.As(r.err, &several) || show(several.Results) != c.got) {
					t.Errorf("%s: %T %v", who, r.err, r.err)
				}
			}
			check("from Go", aside(l, func() result {
				got, err := l.AskSeveral(context.Background(), c.want, to, "q")
				return result{got, err}
			}))
			if open := l.openAsks(); open != 0 {
				t.Errorf("%d asks are left open", open)
			}
			// The same by an actor, and nothing of it is left.
			var several *Several
			var r *result
			a := l.spawn("a", Func(func(ctx *Context, m Message) (err error) {
				if m.Kind == abi.KindMessage {
					several, err = ctx.AskSeveral(c.want, to, "q", 10, time.Second)
					return err
				}
				if got, over, err := several.Take(ctx, m); over {
					if r != nil {
						t.Error("it ends twice")
					}
					r = &result{got, err}
				}
				return nil
			}))
			l.say(a, nil)
			for range 4 {
				l.pass(300 * ms)
			}
			if r == nil {
				t.Fatal("it has not ended")
			}
			check("by an actor", *r)
			if n := l.table.Get(a.UID()).work.Asks.Len(); n != 0 {
				t.Errorf("%d asks are left open", n)
			}
		})
	}
}

// openAsks is how many asks from Go wait.
func (l *stage) openAsks() (n int) {
	for _, x := range l.outside.Open() {
		if _, ok := x.(*outside.Promise); ok {
			n++
		}
	}
	return n
}

// Those that were given up do not begin with the question, and whoever works on it is told.
func TestSeveralAreGivenUp(t *testing.T) {
	l := newStage(t, nil)
	var held *Reply
	works := l.spawn("works", Func(func(ctx *Context, m Message) (err error) { held, err = ctx.Later(); return err }))
	waits := l.spawn("waits", Func(func(ctx *Context, m Message) error { return tellProbe(ctx, "handled") }))
	quick := l.spawn("quick", Func(func(ctx *Context, m Message) error { return ctx.Reply(1) }))
	pause(l, waits)
	if _, err := aside(l, func() outcome {
		got, err := l.AskSeveral(context.Background(), First(), []Ref{works, waits, quick}, "q")
		return outcome{got, err}
	}).split(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-held.Gone():
	default:
		t.Error("who works on it is not told")
	}
	unpause(l, waits)
	l.wants()
	l.equal("dead letters", l.letters(), []string{"its asker waits no longer: q"})
}

// outcome is what a call has come to.
type outcome struct {
	v   any
	err error
}

func (o outcome) split() (any, error) { return o.v, o.err }

// What cannot be asked: too many, nobody, a quorum of more than there are; nothing is sent then.
func TestSeveralAreBounded(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error { return tellProbe(ctx, "asked") }))
	for _, c := range []struct {
		want Want
		to   []Ref
	}{{All(), nil}, {All(), slices.Repeat([]Ref{a}, MaxTargets+1)}, {Quorum(2), []Ref{a}}} {
		if _, err := l.AskSeveral(context.Background(), c.want, c.to, 1); !errors.Is(err, ErrLimit) {
			t.Error(err)
		}
		b := l.spawn("", Func(func(ctx *Context, m Message) error {
			if _, err := ctx.AskSeveral(c.want, c.to, 1, 1, time.Second); !errors.Is(err, ErrLimit) {
				t.Error(err)
			}
			return nil
		}))
		l.say(b, nil)
	}
	// More than the actor may ask: none is sent, none is open.
	b := l.spawn("", Func(func(ctx *Context, m Message) error {
		if _, err := ctx.AskSeveral(All(), slices.Repeat([]Ref{a}, 4), 1, 1, time.Second); !errors.Is(err, ErrLimit) {
			t.Error(err)
		}
		return nil
	}).WithLimits(Limits{Asks: 3}))
	l.say(b, nil)
	l.wants()
	if n := l.table.Get(b.UID()).work.Asks.Len(); n != 0 {
		t.Errorf("%d asks are open", n)
	}
}

// J05: a failure that is piped arrives as one, and an answer that is a failure fails the ask.
func TestJ05_Failures(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		reason, failed := m.Failure()
		var v any
		_ = m.Decode(&v)
		return tellProbe(ctx, fmt.Sprint(failed, " ", reason, " ", v, " ", m.Sender.Name()))
	}))
	for _, c := range []struct {
		v    any
		err  error
		want string
	}{
		{"v", nil, "message false  v probe"},
		{nil, errors.New("no disk"), "message true no disk no disk probe"},
		{make(chan int), nil, "message true host: the value cannot be a message: cbor: unsupported type: chan int host: the value cannot be a message: cbor: unsupported type: chan int probe"},
		{nil, &TimeoutError{Target: a, Question: "secret"}, "message true host: no reply in time host: no reply in time probe"},
	} {
		if err := l.PipeTo(a).WithSender(l.probe).Send(c.v, c.err); err != nil {
			t.Error(err)
		}
		l.run()
		l.wants(c.want)
	}
	refuses := l.spawn("refuses", Func(func(ctx *Context, m Message) error { return ctx.ReplyError("no") }))
	var reply *ReplyError
	if _, err := aside(l, func() outcome { m, err := l.Ask(context.Background(), refuses, 1); return outcome{m, err} }).split(); !errors.As(err, &reply) || reply.Reason != "no" {
		t.Error(err)
	}
}

// J03: what completes later, in any goroutine, calls back as a message: within the mailbox's bounds,
// while the actor lives, and if so chosen only to the incarnation that it is for.
func TestJ03_Pipe(t *testing.T) {
	l := newStage(t, nil)
	note := func(ctx *Context, m Message) error {
		var v any
		_ = m.Decode(&v)
		if v == "crash" {
			return errors.New("crash")
		}
		reason, _ := m.Failure()
		return tellProbe(ctx, fmt.Sprint(v, reason))
	}
	a := l.spawn("a", Func(note).WithLimits(Limits{Mailbox: 2}))
	// Of several at once what does not fit is told to who sends it.
	pause(l, a)
	full := 0
	for range 4 {
		if errors.Is(l.PipeTo(a).Send("m", nil), ErrMailboxFull) {
			full++
		}
	}
	unpause(l, a)
	l.wants("message m", "message m")
	if full != 2 {
		t.Errorf("%d were refused", full)
	}
	// For an incarnation: one that is sent after the restart, and one that waits meanwhile.
	for _, bound := range []bool{true, false} {
		p := l.PipeTo(a)
		if bound {
			p = p.WithIncarnation()
		}
		pause(l, a)
		l.post(a, "crash")
		if err := p.Send("before", nil); err != nil {
			t.Error(err)
		}
		unpause(l, a)
		err := p.Send("after", nil)
		l.run()
		if bound {
			l.wants()
			if !errors.Is(err, ErrEnded) || !errors.Is(err, ErrStopped) {
				t.Error(err)
			}
			if got := l.letters(); got[len(got)-1] != "it was for an incarnation that has ended: after" || got[len(got)-2] != "it was for an incarnation that has ended: before" {
				t.Error(got)
			}
		} else {
			l.wants("message before", "message after")
		}
	}
	// A goroutine: its result, its error, its panic, its timeout.
	for _, c := range []struct {
		f    func(context.Context) (any, error)
		want string
	}{
		{func(context.Context) (any, error) { return "v", nil }, "message v"},
		{func(context.Context) (any, error) { return nil, errors.New("e") }, "message ee"},
		{func(context.Context) (any, error) { panic("p") }, "message host: the piped function panicked: phost: the piped function panicked: p"},
		{func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, nil }, "message host: no reply in timehost: no reply in time"},
	} {
		if err := l.PipeTo(a).WithTimeout(time.Second).Go(c.f); err != nil {
			t.Error(err)
		}
		l.untilTold()
		l.wants(c.want)
	}
	// An ask's answer.
	b := l.spawn("b", Func(func(ctx *Context, m Message) error { return ctx.Reply("answer") }))
	if err := l.PipeTo(a).Answer(must(l.Request(b, nil))(t)); err != nil {
		t.Error(err)
	}
	l.untilTold()
	l.wants("message answer")
	// The actor's end ends what works for it.
	ended := make(chan error, 1)
	if err := l.PipeTo(a).Go(func(ctx context.Context) (any, error) { <-ctx.Done(); ended <- context.Cause(ctx); return nil, nil }); err != nil {
		t.Error(err)
	}
	l.Stop(a)
	l.run()
	if err := <-ended; !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	if err := l.PipeTo(a).Go(nil); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if err := l.PipeTo(a).Send(1, nil); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// untilTold lets everything happen until the probe is told something; time passes meanwhile.
func (l *stage) untilTold() {
	for range 5000 {
		if l.run(); len(l.got) > 0 {
			return
		}
		l.clock.Advance(ms)
		time.Sleep(300 * time.Microsecond) // for the goroutine, which may be late
	}
}

// A function that an actor asks is an ask: it answers once, to the incarnation that has asked, in
// time, not at all if the turn fails, and hears when nobody waits.
func TestPipesOfAnActor(t *testing.T) {
	l := newStage(t, nil)
	var mu sync.Mutex
	var calls int
	var causes []error
	work := make(chan outcome)
	f := func(ctx context.Context) (any, error) {
		mu.Lock()
		calls++
		mu.Unlock()
		select {
		case r := <-work:
			return r.v, r.err
		case <-ctx.Done():
			mu.Lock()
			causes = append(causes, context.Cause(ctx))
			mu.Unlock()
			return nil, nil
		}
	}
	answered := make(chan struct{}, 10)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		var v any
		_ = m.Decode(&v)
		switch {
		case m.Kind != abi.KindMessage:
			defer func() { answered <- struct{}{} }()
			return tellProbe(ctx, fmt.Sprint(m.Kind, m.Correlation, v))
		case v == "crash":
			return errors.New("crash")
		}
		if err := ctx.Head().Pipe(f, 5, time.Second); err != nil {
			return tellProbe(ctx, err.Error())
		}
		if v == "fail" {
			return errors.New("the turn fails")
		}
		return nil
	}).WithLimits(Limits{Asks: 1}))
	settle := func(want ...string) {
		t.Helper()
		for range 2000 {
			l.run()
			if len(l.got) >= len(want) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		l.wants(want...)
	}
	for _, c := range []struct {
		r    outcome
		want string
	}{{outcome{"v", nil}, "message reply 5v"}, {outcome{nil, errors.New("no")}, "message reply_error 5no"}} {
		l.say(a, "go")
		work <- c.r
		settle(c.want)
	}
	l.say(a, "fail") // the function is not called
	l.say(a, "go")
	l.say(a, "go") // one ask is allowed
	settle("message host: a limit of the actor is reached")
	l.pass(time.Second)
	settle("message ask_timeout 5 <nil>")
	l.say(a, "go")
	l.say(a, "crash")
	l.run()
	for range 2000 {
		mu.Lock()
		n := len(causes)
		mu.Unlock()
		if n == 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	if calls != 4 || len(causes) != 2 || !errors.Is(causes[0], ErrGone) || !errors.Is(causes[1], ErrGone) {
		t.Errorf("%d calls, %v", calls, causes)
	}
	settle()
}

// J04: recoverWith: asked again after the failures that are listed, with the backoffs of package
// supervision, in one time, always with the same key.
func TestJ04_Retries(t *testing.T) {
	type seen struct{ key, attempt string }
	for _, c := range []struct {
		name     string
		retry    Retry
		fail     int // so many attempts, at first
		attempts int
		err      error
		passed   time.Duration
	}{
		{"at once", NewRetry(), 0, 1, nil, 0},
		{"not listed", NewRetry(), 9, 1, ErrStopped, 0},
		{"listed", NewRetry().WithOn(ErrStopped).WithPolicy(backoff.WithJitter(backoff.Linear(100*ms, time.Second, 100*ms), backoff.NoJitter())), 3, 4, nil, 600 * ms},
		{"as often as it may", NewRetry().WithOn(ErrTimeout, ErrStopped).WithAttempts(3).WithPolicy(backoff.WithJitter(backoff.Constant(50*ms), backoff.NoJitter())), 9, 3, ErrStopped, 100 * ms},
		{"in its time", NewRetry().WithOn(ErrStopped).WithPolicy(backoff.WithJitter(backoff.Constant(400*ms), backoff.NoJitter())), 9, 3, ErrStopped, 800 * ms},
		{"key", NewRetry().WithOn(ErrStopped).WithKey("order-17").WithPolicy(backoff.WithJitter(backoff.Constant(ms), backoff.NoJitter())), 2, 3, nil, 2 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newStage(t, func(c Config) Config { return c.WithAskTimeout(time.Second) })
				var got []seen
				a := l.spawn("a", Func(func(ctx *Context, m Message) error {
					key, _ := abi.FindHeader(m.Headers, abi.HeaderIdempotency)
					attempt, _ := abi.FindHeader(m.Headers, abi.HeaderAttempt)
					got = append(got, seen{string(key), string(attempt)})
					if len(got) <= c.fail {
						ctx.System().willNotAnswer(nil, m.Sender.UID(), m.Correlation, ctx.Self().UID(), ErrStopped)
						return nil
					}
					return ctx.Reply("done")
				}))
				begun := l.clock.Now()
				_, err := exactly(l, func() outcome { m, err := l.AskRetry(context.Background(), a, "q", c.retry); return outcome{m, err} }).split()
				passed := l.clock.Now().Sub(begun)
				if len(got) != c.attempts || !errors.Is(err, c.err) || passed != c.passed {
					t.Errorf("%d attempts in %v: %v", len(got), passed, err)
				}
				var last *RetryError
				if is := errors.As(err, &last); is != (c.err != nil && c.attempts > 1) || is && last.Attempts != c.attempts {
					t.Errorf("%T", err)
				}
				for i, s := range got {
					want := ""
					if i > 0 {
						want = fmt.Sprint(i + 1)
					}
					if s.attempt != want || s.key != got[0].key || s.key == "" || c.name == "key" && s.key != "order-17" {
						t.Errorf("attempt %d: %+v", i+1, s)
					}
				}
			})
		})
	}
}

// Each attempt has a time of its own, and one that is over is not handled later.
func TestEachAttemptHasItsTime(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithAskTimeout(10 * time.Second) })
	n := 0
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		if n++; n == 1 {
			return nil
		}
		return ctx.Reply("done")
	}))
	r := NewRetry().WithOn(ErrTimeout).WithEach(400 * ms).WithPolicy(backoff.WithJitter(backoff.Constant(10*ms), backoff.NoJitter()))
	if _, err := aside(l, func() outcome { m, err := l.AskRetry(context.Background(), a, "q", r); return outcome{m, err} }).split(); err != nil || n != 2 {
		t.Error(n, err)
	}
	pause(l, a)
	if _, err := aside(l, func() outcome {
		m, err := l.AskRetry(context.Background(), a, "q", r.WithAttempts(3))
		return outcome{m, err}
	}).split(); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	unpause(l, a)
	if n != 2 || len(l.letters()) != 3 {
		t.Error(n, l.letters())
	}
}

// J01: waiting for an answer blocks a goroutine until it is there or the context ends; an actor never
// waits. A late answer is a dead letter of a kind of its own.
func TestJ01_Await(t *testing.T) {
	l := newStage(t, nil)
	var held *Reply
	a := l.spawn("a", Func(func(ctx *Context, m Message) (err error) { held, err = ctx.Later(); return err }))
	p := must(l.Request(a, nil))(t)
	l.run()
	select {
	case <-p.Answer():
		t.Error("it is not there yet")
	default:
	}
	if err := held.Send("v"); err != nil {
		t.Error(err)
	}
	if m := <-p.Answer(); m.Err() != nil {
		t.Error(m.Err())
	}
	late := must(l.Request(a, nil))(t)
	l.run()
	to := held
	late.Cancel()
	if err := to.Send("late"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	e := must(message.Envelope("late"))(t)
	e.Kind, e.Sender, e.Correlation = abi.KindReply, a.UID(), 1
	_ = l.deliver(nil, l.System.outside.RefOf(late), e)
	events := l.raw(EventDeadLetter)
	if len(events) != 1 || events[0].Dead.Reason != DeadLate || events[0].Dead.Reason.Name() != "late" {
		t.Errorf("%+v", events)
	}
	if n := l.View().Totals().DeadReasons["late"]; n != 1 {
		t.Errorf("%d are counted", n)
	}
}
