package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/supervision"
)

// Rules of turns, stops and reports that were broken once, each with its test.

// What was stashed comes before the rest of the batch that has brought it back.
func TestUnstashComesBeforeTheRestOfTheBatch(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		g := l.spawn("g", puppet(t))
		l.say(g, script(now(abi.AppendStash(nil), toProbe("kept 1"))))
		l.say(g, script(now(abi.AppendStash(nil), toProbe("kept 2"))))
		l.got = nil
		for _, m := range []Raw{script(now(toProbe("a"))), script(now(abi.AppendUnstash(nil), toProbe("open"))), script(now(toProbe("b"))), script(now(toProbe("c")))} {
			l.post(g, m)
		}
		l.run()
		l.wants("message a", "message open", "message kept 1", "message kept 2", "message b", "message c")
	})
}

// A timer that is set again with its own key, in its own turn, rings again.
func TestATimerSetsItselfAgain(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		both(t, nil, func(l *stage, s sort) {
			again := abi.AppendTimer(nil, 5, uint64(10*ms), 0, encoded("again"))
			p := puppet(l.t, on(abi.KindStart, again), on(abi.KindTimer, again, toProbe("tick")))
			if s.name == "native" {
				p = Native(func() Actor { return &ticker{} })
			}
			l.spawn("a", p)
			for range 3 {
				l.pass(10 * ms)
				l.wants("message tick")
			}
		})
	})
}

type ticker struct{}

func (a *ticker) Started(ctx *Context) error { return ctx.After(5, 10*ms, 0, "again") }
func (a *ticker) Receive(ctx *Context, m Message) error {
	return errors.Join(tellProbe(ctx, "tick"), a.Started(ctx))
}

// There are as many timers as the limit says; one that replaces another is none more.
func TestLimitOfTimers(t *testing.T) {
	l := newLab(t, supervision.Default())
	var errs []error
	l.tell(l.spawn("a", Func(func(ctx *Context, _ Message) error {
		for _, key := range []uint64{1, 2, 2, 3} {
			errs = append(errs, ctx.After(key, time.Hour, 0, nil))
		}
		ctx.Cancel(1)
		errs = append(errs, ctx.After(4, time.Hour, 0, nil))
		return nil
	}).WithLimits(Limits{Timers: 2})), 1)
	for i, err := range errs {
		if (i == 3) != errors.Is(err, ErrLimit) || i != 3 && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// A correlation is free again in the turn of its answer, and of its timeout.
func TestACorrelationIsFreeInTheTurnOfItsAnswer(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		left := 3
		target := l.spawn("target", Func(func(ctx *Context, m Message) error {
			if left--; left < 0 {
				return nil
			}
			return ctx.Reply(left)
		}))
		ask := abi.AppendAsk(nil, target.UID(), "", 7, uint64(10*ms), nil, encoded("get"))
		g := l.spawn("g", puppet(t, on(abi.KindReply, ask, toProbe("answer")), on(abi.KindReplyError, toProbe("refused")), on(abi.KindAskTimeout, ask, toProbe("late"))))
		l.say(g, script(now(ask)))
		l.wants("message answer", "message answer", "message answer")
		l.pass(11 * ms)
		l.wants("message late")
		left = 1
		l.pass(11 * ms)
		l.wants("message late", "message answer")
	})
}

// Behind an own stop nothing is handled, however many messages wait.
func TestNothingIsHandledBehindAnOwnStop(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		g := l.spawn("g", puppet(t))
		l.post(g, script(now(toProbe("before"))))
		l.post(g, script(now(toProbe("last"), abi.AppendStop(nil, g.UID(), ""))))
		for range 9 {
			l.post(g, script(now(toProbe("behind"))))
		}
		l.run()
		l.wants("message before", "message last")
		if n := len(l.letters()); n != 9 || l.alive(g) {
			t.Errorf("%d dead letters", n)
		}
	})
}

// A guest whose batch goes on where it must end breaks the contract.
func TestABatchThatGoesOn(t *testing.T) {
	inBatches.run(t, "in batches", func(t *testing.T) {
		for name, cmd := range map[string]func(g Ref) []byte{
			"stash":   func(Ref) []byte { return abi.AppendStash(nil) },
			"unstash": func(Ref) []byte { return abi.AppendUnstash(nil) },
			"stop":    func(g Ref) []byte { return abi.AppendStop(nil, g.UID(), "") },
			"fail":    func(Ref) []byte { return abi.AppendFail(nil, "no") },
		} {
			l := newStage(t, nil)
			g := l.spawn("g", puppet(t))
			l.post(g, script(rec(recNow, 0, slices.Concat(cmd(g), toProbe("one")))))
			l.post(g, script(now(toProbe("two"))))
			l.run()
			e := l.raw(EventFailed)
			if len(e) != 1 || name != "fail" && (e[0].Failure.Kind != abi.FailureABIViolation || !strings.Contains(e[0].Failure.Reason, "the batch went on after")) {
				t.Errorf("%s: %+v", name, e)
			}
			l.wants("message two") // by the next incarnation
		}
	})
}

// StopGracefully stops a permanent actor for good, and returns.
func TestStopGracefullyOfAPermanentActor(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		both(t, nil, func(l *stage, s sort) {
			a := l.spawn("a", s.props(l.t).WithLifetime(supervision.Permanent))
			l.got = nil
			l.post(a, s.add(1))
			l.post(a, s.report)
			if err := l.drive(func() error { return l.StopGracefully(context.Background(), a) }); err != nil {
				l.t.Error(err)
			}
			l.run()
			if l.equal("told", values(l.got), []string{"1", "stop"}); l.alive(a) {
				l.t.Error("it lives")
			}
		})
	})
}

// At its deadline a graceful stop stops an actor that does not reach the pill.
func TestGracefulStopEndsAtItsDeadline(t *testing.T) {
	l := newLab(t, otherwise(supervision.Suspend))
	a := l.spawn("a", newCounter())
	l.tell(a, "crash")
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.StopGracefully(over, a); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.run()
	if l.state("a") != "gone" {
		t.Error(l.View().Tree())
	}
}

// A message that is stashed and forwarded in one turn is with both.
func TestStashAndForwardInOneTurn(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		end := l.spawn("end", Func(func(ctx *Context, m Message) error { return tellProbe(ctx, "end "+m.Kind.String()) }))
		for _, g := range []Ref{
			l.spawn("guest", puppet(t)),
			l.spawn("native", Func(func(ctx *Context, m Message) error {
				if m.Kind == abi.KindReply {
					return nil
				}
				if ctx.actor.work.Stash.Len() > 0 {
					ctx.Unstash()
					return nil
				}
				return errors.Join(ctx.Stash(), ctx.Forward(end), tellProbe(ctx, "kept"))
			})),
		} {
			m := script(now(abi.AppendStash(nil), abi.AppendForward(nil, end.UID(), ""), toProbe("kept")))
			l.say(g, m)
			slices.Sort(l.got)
			l.wants("message end message", "message kept")
			if l.table.Get(g.UID()).work.Stash.Len() != 1 {
				t.Error("nothing is stashed")
			}
			l.Stop(g)
			l.run()
			l.equal("dead letters", len(l.letters()), 1)
			l.audience.Letters = look.Letters{}
			l.audience.Letters.Init(l.cfg.Dead, l.cfg.DeadBytes)
			l.got = nil
		}
	})
}

// What is noted about a message on its way to one actor is not the next one's: a forwarded
// message has not crashed there.
func TestForwardOfARedeliveredMessage(t *testing.T) {
	l := newLab(t, supervision.Default())
	turns := 0
	end := l.spawn("end", Func(func(*Context, Message) error { turns++; return errors.New("no") }).WithCrashedMessage(RedeliverCrashed(1)))
	first := true
	a := l.spawn("a", Func(func(ctx *Context, _ Message) error {
		if first {
			first = false
			return errors.New("the first time")
		}
		return ctx.Forward(end)
	}).WithCrashedMessage(RedeliverCrashed(1)))
	l.tell(a, 1)
	if turns != 2 {
		t.Errorf("%d turns", turns)
	}
}

// So is the host's own news: what comes out of the stash counts, and what was forwarded is a
// message for whoever gets it.
func TestStashAndForwardOfNews(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		end := l.spawn("end", Func(func(ctx *Context, m Message) error { return tellProbe(ctx, "end "+m.Kind.String()) }))
		l.spawn("g", puppet(t, on(abi.KindStart, abi.AppendTimer(nil, 1, uint64(10*ms), 0, encoded("x"))),
			on(abi.KindTimer, abi.AppendStash(nil), abi.AppendForward(nil, end.UID(), ""), toProbe("kept"))))
		l.pass(10 * ms)
		slices.Sort(l.got)
		l.wants("message end message", "message kept")
	})
}

// What a resender's child forwards is an ordinary message: if it is lost it is a dead letter.
func TestLostForwardOfAResendersChild(t *testing.T) {
	l := newLab(t, supervision.Default())
	gone := l.spawn("gone", newCounter())
	l.Stop(gone)
	l.run()
	ref := l.spawn("r", Resender(Func(func(ctx *Context, m Message) error { return errors.Join(ctx.Forward(gone), ctx.Head().Confirm(m.ID())) }), Resend{}))
	l.tell(ref, "lost")
	if got := l.letters(); !slices.Equal(got, []DeadReason{DeadUnknown}) {
		t.Errorf("%v", got)
	}
	asked := must(l.Request(ref, "get"))(t)
	l.run()
	if m := <-asked.Answer(); !errors.Is(m.Err(), ErrUnknown) {
		t.Error(m.Err())
	}
}

// A delay's stash is trimmed of messages alone: a poison pill keeps its place, and who wants
// to know who the actor is is told.
func TestTrimmingSparesPillsAndIdentify(t *testing.T) {
	var got []string
	l := newLab(t, delayed(t, supervision.Backoff{Stash: 1}))
	ref := l.spawn("a", newLister(&got, nil))
	l.tell(ref, "crash")
	in := l.Inbox(0)
	defer in.Close()
	in.Identify("/user/a", 1)
	l.tell(ref, "1", "2")
	if err := l.PoisonPill(ref); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.tell(ref, "3")
	l.pass(200 * ms)
	if m, ok := in.TryReceive(); !ok || m.Sender != ref {
		t.Errorf("%+v", m)
	}
	// The pill came before 3, which is a dead letter of the end, and not of the trimming.
	if reasons := l.letters(); !slices.Equal(reasons, []DeadReason{DeadEvicted, DeadEvicted, DeadStopped}) || len(got) != 0 || l.state("a") != "gone" {
		t.Errorf("%v, %v, %s", got, reasons, l.state("a"))
	}
}

// A failure that is escalated is reported once; above, what becomes of those that it reaches.
// WithSilence keeps it out of logs.
func TestAnEscalatedFailureIsReportedOnce(t *testing.T) {
	for _, silent := range []bool{false, true} {
		up := otherwise(supervision.Escalate)
		var log strings.Builder
		var mu lockedWriter
		mu.to = &log
		s, _ := manual(t, func(c Config) Config {
			return c.WithGuardian(otherwise(supervision.Restart)).WithLog(slog.New(slog.NewTextHandler(&mu, nil)))
		})
		events := s.Subscribe(100, nil)
		deep := parentOf(up, Child{"b", parentOf(up, Child{"c", parentOf(up.WithSilence(silent), Child{"d", newCounter()})})})
		must(s.Spawn("a", deep))(t)
		s.RunUntilIdle(1000)
		d := must(s.Lookup("/user/a/b/c/d"))(t)
		if err := s.Tell(d, "crash"); err != nil {
			t.Fatal(err)
		}
		s.RunUntilIdle(1000)
		var told []string
		for len(events.C()) > 0 {
			if e := <-events.C(); e.Kind == EventFailed || e.Kind == EventEscalated {
				told = append(told, fmt.Sprint(e.Kind, " ", e.Ref.Name(), " ", e.Directive, " ", e.Silent))
			}
		}
		want := []string{fmt.Sprint("failed d escalate ", silent), "escalated c escalate false", "escalated b escalate false", "escalated a restart false"}
		if !slices.Equal(told, want) {
			t.Errorf("%v, want %v", told, want)
		}
		if st := s.View().Stats(); st.Crashes != 1 {
			t.Errorf("%d crashes", st.Crashes)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "msg=failed"); n != map[bool]int{false: 1, true: 0}[silent] {
			t.Errorf("silent: %v; %s", silent, log.String())
		}
	}
}

// An actor that stops itself and then fails in the same turn has failed, and that is all: the turn has done
// nothing, its stop included, and the supervisor decides.
func TestAnOwnStopIsUndoneByTheFailureOfItsTurn(t *testing.T) {
	for what, p := range map[string]Props{
		"error": Func(func(ctx *Context, m Message) error { ctx.Stop(ctx.Self()); return errors.New("failed") }),
		"panic": Func(func(ctx *Context, m Message) error { ctx.Stop(ctx.Self()); panic("failed") }),
	} {
		for _, d := range []supervision.Directive{supervision.Restart, supervision.Stop} {
			l := newLab(t, otherwise(d))
			a := l.spawn("a", p)
			l.tell(a, 1)
			kinds := []EventKind{}
			for _, e := range l.seen(EventFailed, EventRestarted, EventStopped) {
				kinds = append(kinds, e.Kind)
			}
			want := map[supervision.Directive][]EventKind{supervision.Restart: {EventFailed, EventRestarted}, supervision.Stop: {EventFailed, EventStopped}}[d]
			if !slices.Equal(kinds, want) || (l.state("a") == "gone") != (d == supervision.Stop) {
				t.Errorf("%s: %v, want %v\n%s", what, kinds, want, l.View().Tree())
			}
		}
	}
	// So has a guest.
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		g := l.spawn("g", puppet(t))
		l.say(g, script(trap(abi.AppendStop(nil, g.UID(), ""))))
		if !l.alive(g) {
			t.Error("it has stopped")
		}
	})
}

// An answer whose turn fails follows the policy for crashed messages, as any other message.
func TestACrashInAnAnswersTurn(t *testing.T) {
	for _, c := range []struct {
		policy  CrashedMessage
		turns   int
		letters []DeadReason
	}{{DropCrashed(), 1, nil}, {DeadLetterCrashed(), 1, []DeadReason{DeadCrashed}}, {RedeliverCrashed(2), 3, []DeadReason{DeadCrashed}}} {
		l := newLab(t, supervision.Default())
		target := l.spawn("target", newCounter())
		turns := 0
		a := l.spawn("a", Func(func(ctx *Context, m Message) error {
			if m.Kind != abi.KindReply {
				return ctx.Ask(target, "get", 1, time.Second)
			}
			turns++
			return errors.New("crashed over the answer")
		}).WithCrashedMessage(c.policy))
		l.tell(a, 1)
		if turns != c.turns || !slices.Equal(l.letters(), c.letters) {
			t.Errorf("%v: %d turns, %v", c.policy, turns, l.letters())
		}
	}
}

// A receive timeout that has rung does not count when a message has come before it, nor
// when it was turned off.
func TestStaleReceiveTimeouts(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		for _, off := range []bool{false, true} {
			both(t, nil, func(l *stage, s sort) {
				p := puppet(l.t, on(abi.KindStart, abi.AppendReceiveTimeout(nil, uint64(10*ms))), on(abi.KindReceiveTimeout, toProbe("idle")))
				var m any = script()
				if off {
					m = script(now(abi.AppendReceiveTimeout(nil, 0)))
				}
				if s.name == "native" {
					p = Native(func() Actor { return &idler{off} })
				}
				a := l.spawn("a", p)
				l.post(a, m)
				l.clock.Advance(10 * ms) // it rings while the message waits
				l.run()
				l.wants()
				l.pass(10 * ms)
				if off {
					l.wants()
				} else {
					l.wants("message idle")
				}
			})
		}
	})
}

type idler struct{ off bool }

func (a *idler) Started(ctx *Context) error { ctx.SetReceiveTimeout(10 * ms); return nil }
func (a *idler) Receive(ctx *Context, m Message) error {
	if m.Kind == abi.KindReceiveTimeout {
		return tellProbe(ctx, "idle")
	}
	if a.off {
		ctx.SetReceiveTimeout(0)
	}
	return nil
}

// A message is confirmed in any turn, by its number; the failing turn of one message is not
// blamed on another that is slow.
func TestASlowMessageIsNotBlamed(t *testing.T) {
	l := newLab(t, supervision.Default())
	var slow uint64
	var got []string
	r := l.spawn("r", Resender(Func(func(ctx *Context, m Message) error {
		var text string
		if err := m.Decode(&text); err != nil {
			return err
		}
		got = append(got, text)
		switch text {
		case "slow":
			slow = m.ID()
			return nil
		case "bad":
			return errors.New("bad")
		}
		return errors.Join(ctx.Head().Confirm(slow), ctx.Head().Confirm(m.ID()))
	}), Resend{Policy: always(10 * ms), Attempts: 3, Patience: 20 * ms}))
	l.tell(r, "slow", "bad")
	for range 8 { // the bad one is given up; the slow one outlives it
		l.pass(10 * ms)
	}
	if n := strings.Count(strings.Join(got, " "), "bad"); n != 3 {
		t.Errorf("%v", got)
	}
	l.tell(r, "end")
	l.pass(100 * ms)
	if reasons := l.letters(); !slices.Equal(reasons, []DeadReason{DeadCrashed}) {
		t.Errorf("%v", reasons)
	}
	if x := l.table.Get(r.UID()).behaviour.(*native).now.(*resender).keeper.State(); len(x.Unconfirmed) != 0 {
		t.Errorf("%d are unconfirmed", len(x.Unconfirmed))
	}
}

// To send to nobody is an error that says so; for a guest it is a violation that says so.
func TestASendToNobody(t *testing.T) {
	l := newStage(t, nil)
	var errs []error
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		errs = append(errs, ctx.Tell(Ref{}, 1), ctx.Forward(Ref{}), ctx.Ask(Ref{}, 1, 5, time.Second))
		if n := ctx.actor.work.Asks.Len(); n != 0 {
			t.Errorf("%d asks wait", n)
		}
		return nil
	}))
	l.say(a, 1)
	for _, err := range errs {
		if !errors.Is(err, ErrNobody) {
			t.Error(err)
		}
	}
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		g := l.spawn("g", puppet(t))
		send := abi.AppendSend(nil, 1, "", 0, 0, nil, encoded("x"))
		send[2] = 0 // the ref
		l.say(g, script(now(send)))
		if e := l.raw(EventFailed); len(e) != 1 || e[0].Failure.Kind != abi.FailureABIViolation || !strings.Contains(e[0].Failure.Reason, "a ref must not be 0") {
			t.Errorf("%+v", e)
		}
	})
}

// Rest-for-one, with actors: they stop in reverse order, and then begin in order, behind the
// delay.
func TestRestForOneStopsThenStarts(t *testing.T) {
	var got []string
	l := newLab(t, supervision.Default())
	kid := func(name string) Child {
		return Child{name, Native(func() Actor { return &noted{name, &got} })}
	}
	l.spawn("top", parentOf(delayed(t, supervision.Backoff{}).WithKind(supervision.RestForOne), kid("a"), kid("b"), kid("c"), kid("d")))
	got = nil
	l.tell(l.at("top/b"), "crash")
	if want := []string{"stop d", "stop c", "stop b"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	l.pass(200*ms - 1)
	if len(got) != 3 {
		t.Errorf("before the delay is over: %v", got)
	}
	l.pass(1)
	if want := []string{"start b", "start c", "start d"}; !slices.Equal(got[3:], want) {
		t.Errorf("%v, want %v", got[3:], want)
	}
	// One that an operator stops on the way does not hold up the others.
	got = nil
	l.tell(l.at("top/a"), "crash")
	l.Stop(l.at("top/c"))
	l.pass(time.Second)
	if want := []string{"stop d", "stop c", "stop b", "stop a", "start a", "start b", "start d"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

type noted struct {
	name string
	got  *[]string
}

func (a *noted) Started(*Context) error { *a.got = append(*a.got, "start "+a.name); return nil }
func (a *noted) Stopped(*Context)       { *a.got = append(*a.got, "stop "+a.name) }
func (a *noted) Receive(_ *Context, m Message) error {
	return errors.New("crashed")
}

// The options of a guest's spawn say what the child's lifetime is, and the rest.
func TestOptionsOfASpawn(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		strategy := supervision.Default().WithKind(supervision.RestForOne)
		want := SpawnOptions{Lifetime: supervision.Permanent, Crashed: RedeliverCrashed(3), Supervision: &strategy}
		l := newStage(t, func(c Config) Config {
			return c.WithSpawnOptions(func(options []byte) (SpawnOptions, error) {
				if string(options) == "\xa1\x60\x00" {
					return SpawnOptions{Significant: true}, nil
				}
				if string(options) != "\xa0" {
					return SpawnOptions{}, errors.New("other options")
				}
				return want, nil
			})
		})
		g := l.spawn("g", puppet(t, on(abi.KindSpawnFailed, toProbe("refused"))).WithSupervision(supervision.Default().WithKind(supervision.AllForOne)))
		a := l.table.Get(g.UID())
		spawn := func(n uint64, name string, options []byte) []byte {
			return abi.AppendSpawn(nil, abi.ChildRef(childKeyOf(guestOf(a)), 0, n), "puppet", name, encoded(script()), options)
		}
		l.say(g, script(now(spawn(0, "plain", nil), spawn(1, "told", []byte{0xa0}), spawn(2, "half", []byte{0xa1, 0x60, 0}))))
		plain, told, half := a.child("plain"), a.child("told"), a.child("half")
		if plain == nil || told == nil || half == nil {
			t.Fatalf("%v", l.got)
		}
		if p := plain.props; p.life == want.Lifetime || p.significant || p.crashed != (CrashedMessage{}) || p.strategy.Kind() != a.props.strategy.Kind() {
			t.Errorf("%+v", p)
		}
		if p := half.props; !p.significant || p.strategy.Kind() != supervision.AllForOne {
			t.Errorf("what is not said of its children is not as its parent does: %+v", p)
		}
		if p := told.props; p.life != want.Lifetime || p.significant || p.crashed != want.Crashed || p.strategy.Kind() != supervision.RestForOne {
			t.Errorf("%+v", p)
		}
		// A permanent child that stops itself is there again.
		before := told.Incarnation()
		l.say(told.ref(), script(now(abi.AppendStop(nil, told.uid, ""))))
		if now := a.child("told"); now == nil || now.Incarnation() != before+1 {
			t.Error(l.View().Tree())
		}
	})
}
