package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/supervision"
)

// What an ask ends with, whoever asks: see ask.go.

// asker is one sort of those who ask; answer is what it was told, without the clock
// having moved, "" for nothing yet.
type asker struct {
	name string
	ask  func(l *stage, to Ref) (answer func() string)
}

// words is what was said of an answer.
func words(m Message) string {
	if err := m.Err(); err != nil {
		return "error"
	}
	return "answer"
}

var askers = []asker{
	{"Go", func(l *stage, to Ref) func() string {
		p := must(l.Request(to, "get"))(l.t)
		return func() string {
			select {
			case m := <-p.Answer():
				return words(m)
			default:
				return ""
			}
		}
	}},
	{"inbox", func(l *stage, to Ref) func() string {
		in := l.Inbox(0)
		if err := in.Ask(to, "get", 9); err != nil {
			l.t.Fatal(err)
		}
		return func() string {
			m, ok := in.TryReceive()
			if !ok {
				return ""
			}
			return words(m)
		}
	}},
	{"native", func(l *stage, to Ref) func() string {
		told := ""
		a := l.spawn("", Func(func(ctx *Context, m Message) error {
			switch m.Kind {
			case abi.KindMessage:
				return ctx.Ask(to, "get", 3, time.Minute)
			case abi.KindAskTimeout:
				told = "timeout"
			default:
				told = words(m)
			}
			return nil
		}))
		l.post(a, 1)
		return func() string { return told }
	}},
	{"guest", func(l *stage, to Ref) func() string {
		g := l.spawn("", puppet(l.t, on(abi.KindReply, toProbe("answer")), on(abi.KindReplyError, toProbe("error")), on(abi.KindAskTimeout, toProbe("timeout"))))
		l.post(g, script(now(abi.AppendAsk(nil, to.UID(), "", 3, uint64(time.Minute), nil, encoded("get")))))
		return func() string {
			if len(l.got) == 0 {
				return ""
			}
			said := values(l.got)[0]
			l.got = l.got[1:]
			return said
		}
	}},
}

// eachAsker runs a test for all of them, and for guests of every manner.
func eachAsker(t *testing.T, change func(Config) Config, f func(l *stage, ask func(to Ref) func() string)) {
	for _, a := range askers {
		t.Run(a.name, func(t *testing.T) {
			one := func(t *testing.T) {
				l := newStage(t, change)
				f(l, func(to Ref) func() string { return a.ask(l, to) })
			}
			if a.name == "guest" {
				everyManner(t, one)
			} else {
				one(t)
			}
		})
	}
}

// An ask ends at once when its turn fails, when it is dropped, and when its target is
// stopped, and not before.
func TestAsksEndAtOnce(t *testing.T) {
	eachAsker(t, nil, func(l *stage, ask func(Ref) func() string) {
		for _, c := range []struct {
			name   string
			target Props
			then   func(to Ref)
			want   string
		}{
			{"answered", newCounter(), nil, "answer"},
			{"a failing turn", Func(func(*Context, Message) error { return errors.New("no") }), nil, "error"},
			{"a panic", Func(func(*Context, Message) error { panic("no") }), nil, "error"},
			{"a failing turn, delivered again in vain", Func(func(*Context, Message) error { return errors.New("no") }).WithCrashedMessage(RedeliverCrashed(2)), nil, "error"},
			{"stopped", newSuspended(), func(to Ref) { l.Stop(to); l.run() }, "error"},
			{"nothing", newSuspended(), nil, ""},
		} {
			to := l.spawn("", c.target)
			if c.then != nil || c.want == "" {
				l.say(to, "suspend")
			}
			answer := ask(to)
			l.run()
			if c.then != nil {
				if early := answer(); early != "" {
					l.t.Errorf("%s: %s before the end", c.name, early)
				}
				c.then(to)
			}
			if got := answer(); got != c.want {
				l.t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
		// Dropped: the mailbox is full, or the actor has gone.
		gone := l.spawn("", newCounter())
		l.Stop(gone)
		l.run()
		if p, err := l.Request(gone, "get"); !errors.Is(err, ErrUnknown) {
			l.t.Error(p, err)
		}
	})
	for _, name := range []string{"native", "guest"} {
		for _, a := range askers {
			if a.name != name {
				continue
			}
			l := newStage(t, nil)
			full := l.spawn("full", newSuspended().WithLimits(Limits{Mailbox: 1}))
			l.say(full, "suspend")
			l.say(full, "fills it")
			gone := l.spawn("gone", newCounter())
			l.Stop(gone)
			l.run()
			for _, to := range []Ref{full, gone} {
				answer := a.ask(l, to)
				l.run()
				if got := answer(); got != "error" {
					t.Errorf("%s: %q", name, got)
				}
			}
		}
	}
}

// newSuspended is an actor that is left suspended when it is told to, with its messages.
func newSuspended() Props {
	return parentOf(supervision.Default().WithOtherwise(supervision.Suspend)).withReceive(func(ctx *Context, m Message) error {
		ctx.actor.life.Suspend() // nobody will take it back
		return nil
	})
}

func (p Props) withReceive(f func(*Context, Message) error) Props {
	q := Func(f)
	q.strategy = p.strategy
	return q
}

// An answer counts from whom was asked. Another actor that knows the correlation and the
// asker's ref gets a dead letter, and the ask goes on.
func TestForgedAnswers(t *testing.T) {
	eachAsker(t, nil, func(l *stage, ask func(Ref) func() string) {
		var asked Message
		target := l.spawn("target", Func(func(_ *Context, m Message) error { asked = m.Clone(); return nil }))
		forger := l.spawn("forger", newCounter())
		answer := ask(target)
		l.run()
		reply := func(from Ref, v string) {
			e, err := message.Envelope(v)
			if err != nil {
				l.t.Fatal(err)
			}
			e.Kind, e.Sender, e.SenderPath, e.Correlation = abi.KindReply, from.UID(), from.URI(), asked.Correlation
			_ = l.deliver(nil, asked.Sender.UID(), e)
			l.run()
		}
		reply(forger, "forged")
		reply(Ref{}, "from nobody")
		if got := answer(); got != "" {
			l.t.Errorf("a forged answer counts: %q", got)
		}
		if got := l.letters(); len(got) != 2 || got[0] != DeadForged.String()+": forged" {
			l.t.Errorf("%v", got)
		}
		reply(target, "true")
		if got := answer(); got != "answer" {
			l.t.Errorf("%q", got)
		}
	})
}

// A forward and the answer to it can both arrive while the asker is at its messages: it has
// looked for system messages, and sees the answer first. The answer waits until the forward
// has been handled; it is neither refused nor handed over before.
func TestAnAnswerOvertakesItsForward(t *testing.T) {
	l := newStage(t, nil)
	var asked Message
	target := l.spawn("target", Func(func(_ *Context, m Message) error { asked = m.Clone(); return nil }))
	other := l.spawn("other", newCounter())
	answers := 0
	asker := l.spawn("asker", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindMessage {
			return ctx.Ask(target, "question", 7, time.Minute)
		}
		answers++
		return nil
	}))
	l.say(asker, "ask")

	question := must(message.Envelope("question"))(t)
	question.Sender, question.Correlation = asked.Sender.UID(), asked.Correlation
	l.delegate(nil, question, target.UID(), other.UID())
	reply := must(message.Envelope("answer"))(t)
	reply.Kind, reply.Sender, reply.Correlation = abi.KindReply, other.UID(), asked.Correlation
	if err := l.deliver(nil, asker.UID(), reply); err != nil {
		t.Fatal(err)
	}
	a := l.table.Get(asker.UID())
	if e := a.peek(&scratch{}); e != nil {
		t.Errorf("the answer counts before the forward has been handled: %v", e.Kind)
	}
	if a.box.Len() != 1 {
		t.Error("the answer does not wait")
	}
	l.run()
	if answers != 1 || len(l.letters()) != 0 {
		t.Errorf("%d answers, %v", answers, l.letters())
	}
}

// Who a question was forwarded to may answer, over several hops, and through a resender;
// also when all of it happens in one spell of a worker.
func TestForwardedQuestions(t *testing.T) {
	for _, throughput := range []int{1, 16} {
		change := func(c Config) Config { return c.WithThroughput(throughput) }
		eachAsker(t, change, func(l *stage, ask func(Ref) func() string) {
			end := l.spawn("end", newCounter())
			forward := func(to Ref) Props { return Func(func(ctx *Context, _ Message) error { return ctx.Forward(to) }) }
			hop := l.spawn("hop", forward(end))
			for name, to := range map[string]Ref{
				"one hop":  hop,
				"two hops": l.spawn("two", forward(hop)),
				"three, a guest among them": l.spawn("three", puppet(l.t, on(abi.KindMessage)).
					withForward(l.t, l.spawn("two2", forward(hop)))),
				"resender":                      l.spawn("resender", Resender(newCounter(), Resend{})),
				"resender whose child forwards": l.spawn("resender2", Resender(forward(hop), Resend{})),
			} {
				answer := ask(to)
				l.run()
				if got := answer(); got != "answer" {
					l.t.Errorf("%s: %q; %v", name, got, l.letters())
				}
			}
		})
	}
}

// withForward is an actor in Go in the guest's place: puppets do what their messages say, and a
// question is not one of theirs.
func (p Props) withForward(t testing.TB, to Ref) Props {
	return Func(func(ctx *Context, _ Message) error { return ctx.Forward(to) })
}

// A guest forwards a question, and the answer counts.
func TestAGuestForwardsAQuestion(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		end := l.spawn("end", Func(func(ctx *Context, _ Message) error { return ctx.Reply("answer") }))
		inner := l.spawn("inner", Func(func(ctx *Context, _ Message) error { return ctx.Forward(end) }))
		g := l.spawn("g", puppet(t))
		p := must(l.Request(g, script(now(abi.AppendForward(nil, inner.UID(), "")))))(t)
		l.run()
		if m := <-p.Answer(); m.Err() != nil || m.Sender != end {
			t.Errorf("%+v", m)
		}
	})
}

// AskAs decodes the answer.
func TestAskAs(t *testing.T) {
	s := newSystem(t, NewConfig("asks"))
	a := must(s.Spawn("a", newCounter()))(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Tell(a, 5); err != nil {
		t.Fatal(err)
	}
	if n, err := AskAs[int](ctx, s, a, "get"); err != nil || n != 5 {
		t.Error(n, err)
	}
	if _, err := AskAs[string](ctx, s, a, "get"); err == nil {
		t.Error("a number is a text")
	}
	var failed *TurnError
	if _, err := AskAs[int](ctx, s, a, "crash"); !errors.As(err, &failed) || failed.Ref != a || failed.Failure.Reason != "crashed" {
		t.Error(err)
	}
	if _, err := AskAs[int](ctx, s, Ref{}, "get"); err == nil {
		t.Error("nobody answers")
	}
}

// An ask without a deadline ends after the system's time, to within a quarter.
func TestAsksDoNotWaitForEver(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithAskTimeout(time.Second) })
	silent := l.spawn("silent", Func(func(*Context, Message) error { return nil }))
	e, err := message.Envelope("get")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.outside.Request(silent, e, l.outside.Patience(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.pass(250 * ms)
		if len(p.Answer()) != 0 {
			t.Fatal("early")
		}
	}
	l.pass(500 * ms)
	if m := <-p.Answer(); !errors.Is(m.Err(), ErrTimeout) {
		t.Error(m.Err())
	}
}

// A guest's ask that is refused is answered with its own correlation, unless another ask has that one: so
// what was to happen with the answer happens, and the other ask goes on. A restart forgets it, as all asks.
func TestRefusedAsksAreAnswered(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		mute := l.spawn("mute", Func(func(*Context, Message) error { return nil }))
		g := l.spawn("g", puppet(t).WithLimits(Limits{Asks: 1}))
		var heard []string
		stop := must(l.View().Tap(g, 1<<10, func(m *Tapped) {
			if !m.Out && (m.Kind == abi.KindReplyError || m.Kind == abi.KindAskTimeout) {
				heard = append(heard, fmt.Sprint(m.Kind, " ", m.Correlation))
			}
		}, nil))(t)
		defer stop()
		ask := func(correlation uint64) []byte {
			return abi.AppendAsk(nil, mute.UID(), "", correlation, uint64(time.Second), nil, nullPayload)
		}
		l.post(g, script(now(ask(1), ask(2), ask(1))))
		l.run()
		l.pass(time.Second)
		if want := []string{"reply_error 2", "reply_error 0", "ask_timeout 1"}; !slices.Equal(heard, want) {
			t.Errorf("%q, want %q", heard, want)
		}
		heard = nil
		l.post(g, script(now(ask(3), ask(4))))
		l.post(g, script(trap()))
		l.run()
		l.pass(time.Second)
		for _, text := range heard {
			if text != "reply_error 4" { // it may have come before the crash
				t.Errorf("%q after a restart", heard)
			}
		}
	})
}

// A guest that goes on asking whenever it is told that this was refused, or has a crowd of children refused,
// fails when its mailbox is full twice over: what the host holds for it has a bound.
func TestRefusalsAreBounded(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		mute := l.spawn("mute", Func(func(*Context, Message) error { return nil }))
		var asks, spawns [][]byte
		for i := range 120 {
			asks = append(asks, abi.AppendAsk(nil, mute.UID(), "", uint64(i+1), uint64(time.Hour), nil, nullPayload))
		}
		for name, again := range map[string]*[][]byte{"asks": &asks, "spawns": &spawns} {
			g := l.spawn("", puppet(t, on(abi.KindReplyError, asks...)).WithLimits(Limits{Asks: 1, Mailbox: 50}))
			for i := range uint64(120) {
				spawns = append(spawns[:i], abi.AppendSpawn(nil, abi.ChildRef(childKeyOf(guestOf(l.table.Get(g.UID()))), 0, i), "nobody", "", nil, nil))
			}
			before, most := l.View().Stats().Crashes, 0
			l.post(g, script(now(*again...)))
			for range 50 {
				l.RunUntilIdle(1)
				most = max(most, l.table.Get(g.UID()).box.Len())
			}
			if crashed := l.View().Stats().Crashes - before; crashed == 0 || most != 100 {
				t.Errorf("%s: %d messages at most, %d crashes", name, most, crashed)
			}
			l.Stop(g)
			l.RunUntilIdle(1000)
		}
	})
}

// A timer's message that is handed on, to nobody or to who fails, ends no ask of its actor that has the timer's
// key as its correlation.
func TestForwardedTimersEndNoAsk(t *testing.T) {
	failing := puppet(t, on(abi.KindMessage, trap()))
	for name, forward := range map[string][]byte{
		"a path of nobody": abi.AppendForward(nil, 0, "/user/none"),
		"a ref of nobody":  abi.AppendForward(nil, 999, ""),
		"one that fails":   abi.AppendForward(nil, 0, "/user/failing"),
	} {
		t.Run(name, func(t *testing.T) {
			l := newStage(t, nil)
			l.spawn("mute", Func(func(*Context, Message) error { return nil }))
			l.spawn("failing", failing)
			l.spawn("guest", puppet(t, on(abi.KindReplyError, toProbe("ask has failed")), on(abi.KindTimer, forward),
				on(abi.KindStart, abi.AppendAsk(nil, 0, "/user/mute", 7, uint64(time.Hour), nil, encoded("q")), abi.AppendTimer(nil, 7, 1000, 0, nil))))
			l.run()
			l.clock.Advance(time.Millisecond)
			l.run()
			if len(l.got) > 0 {
				t.Errorf("%q", l.got)
			}
		})
	}
}
