package host

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// stasherSort is an actor of either sort: what it keeps comes again after "open", or at the next
// restart.
type stasherSort struct {
	name  string
	props func(*testing.T) Props
	keep  func(v string) any // told to the probe at the second time
	open  any
	crash any
}

var stashers = []stasherSort{
	{"native", func(*testing.T) Props { return Native(func() Actor { return &keeper{} }) }, func(v string) any { return v }, "open", "crash"},
	// The puppet keeps a message by forwarding it to itself in the turn that stashes, so the probe sees both.
	{"guest", func(t *testing.T) Props { return puppet(t) },
		func(v string) any { return script(now(abi.AppendStash(nil), toProbe(v))) }, script(now(abi.AppendUnstash(nil))), script(trap())},
}

// keeper stashes until it is opened, and tells the probe of what it handles then.
type keeper struct{ open bool }

func (a *keeper) Receive(ctx *Context, m Message) error {
	var v string
	_ = m.Decode(&v)
	switch {
	case v == "open":
		a.open = true
		ctx.Unstash()
	case v == "crash":
		return errors.New("crashed")
	case !a.open:
		return ctx.Stash()
	default:
		return tellProbe(ctx, m.Kind.String()+" "+v)
	}
	return nil
}

// B34: behaviour is state of the instance: a restart begins with the first one.
func TestB34_BecomeIsResetByRestart(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", Native(func() Actor { return &keeper{} }))
	for _, v := range []string{"open", "one", "crash", "two"} {
		l.say(a, v)
	}
	l.wants("message message one") // "two" is stashed again
}

// B35: a message is stashed once in a turn; the stash is bounded.
func TestB35_Stash(t *testing.T) { everyManner(t, rowB35_Stash) }

func rowB35_Stash(t *testing.T) {
	l := newStage(t, nil)
	var errs []error
	n := l.spawn("native", Func(func(ctx *Context, _ Message) error {
		errs = append(errs, ctx.Stash(), ctx.Stash())
		return nil
	}).WithLimits(Limits{Stash: 2}))
	for i := range 3 {
		l.say(n, i)
	}
	for i, want := range []error{nil, ErrStashed, nil, ErrStashed, ErrLimit, ErrLimit} {
		if !errors.Is(errs[i], want) || want == nil && errs[i] != nil {
			t.Errorf("%d: %v, want %v", i, errs[i], want)
		}
	}
	l.equal("dead letters", l.letters(), []string{"stash full: 2", "stash full: 2"})
	g := l.spawn("guest", puppet(t).WithLimits(Limits{Stash: 1}))
	l.raw()
	l.say(g, script(now(abi.AppendStash(nil))))
	l.say(g, script(now(abi.AppendStash(nil))))
	if e := l.raw(EventDeadLetter, EventFailed); len(e) != 1 || e[0].Dead == nil || e[0].Dead.Reason != DeadStashFull {
		t.Errorf("%v", e)
	}
	l.say(g, script(now(abi.AppendStash(nil), abi.AppendStash(nil))))
	if e := l.raw(EventFailed); len(e) != 1 || e[0].Failure.Kind != abi.FailureABIViolation {
		t.Errorf("%v", e)
	}
}

// B36: what was stashed comes back to the front, in its order, before what came later, also beyond
// the mailbox's bound; sender and correlation stay.
func TestB36_Unstash(t *testing.T) { everyManner(t, rowB36_Unstash) }

func rowB36_Unstash(t *testing.T) {
	l := newStage(t, nil)
	var froms []Ref
	var got []string
	open := false
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		var v string
		if err := m.Decode(&v); err != nil {
			return err
		}
		if v == "open" {
			open = true
			ctx.Unstash()
			return nil
		}
		if !open {
			return ctx.Stash()
		}
		got, froms = append(got, v), append(froms, m.Sender)
		return nil
	}).WithLimits(Limits{Mailbox: 2}))
	for _, v := range []string{"a", "b", "c"} {
		l.say(a, v)
	}
	l.post(a, "open")
	l.post(a, "d")
	l.run()
	l.equal("in the order", got, []string{"a", "b", "c", "d"})
	if !slices.Equal(froms, []Ref{l.probe, l.probe, l.probe, l.probe}) {
		t.Errorf("%v", froms)
	}
	g := l.spawn("guest", puppet(t))
	l.say(g, script(now(abi.AppendStash(nil), toProbe("1"))))
	l.say(g, script(now(abi.AppendStash(nil), toProbe("2"))))
	l.wants("message 1", "message 2")
	l.post(g, script(now(abi.AppendUnstash(nil))))
	l.post(g, script(now(toProbe("3"))))
	l.run()
	l.wants("message 1", "message 2", "message 3")
}

// B37: a restart puts what was stashed back to the mailbox, before the rest; an end makes it dead
// letters.
func TestB37_StashSurvivesARestart(t *testing.T) { everyManner(t, rowB37_StashSurvivesARestart) }

func rowB37_StashSurvivesARestart(t *testing.T) {
	for _, s := range stashers {
		t.Run(s.name, func(t *testing.T) {
			l := newStage(t, nil)
			a := l.spawn("a", s.props(t))
			l.say(a, s.keep("one"))
			l.say(a, s.keep("two"))
			l.got = nil
			l.say(a, s.crash)
			if s.name == "guest" {
				l.wants("message one", "message two") // handled, and stashed, once more
			}
			l.say(a, s.open)
			l.equal("told", len(l.got), 2)
			b := l.spawn("b", s.props(t))
			l.say(b, s.keep("three"))
			l.Stop(b)
			l.run()
			if letters, n := l.DeadLetters(); n != 1 || letters[0].Reason != DeadStopped {
				t.Errorf("%v", l.letters())
			}
		})
	}
}

// B35, B36: news of the host's can be stashed, too; of a former incarnation's timers and asks
// nothing comes.
func TestB36_NewsCanBeStashed(t *testing.T) {
	l := newStage(t, nil)
	gone := l.spawn("gone", newCounter())
	counter := l.spawn("counter", newCounter())
	spawn := func(name string) Ref {
		a := l.spawn(name, Native(func() Actor { return &keeper{} }))
		c := l.table.Get(a.UID())
		for _, f := range []func(*Context) error{
			func(ctx *Context) error { return ctx.After(1, time.Second, 0, "timer") },
			func(ctx *Context) error { return ctx.Ask(counter, "get", 2, time.Second) },
			func(ctx *Context) error { return ctx.Watch(gone) },
		} {
			ctx := Context{actor: c}
			if err := f(&ctx); err != nil { // the system is at rest: nobody else is within the actor
				t.Fatal(err)
			}
		}
		l.run()
		return a
	}
	a, b := spawn("a"), spawn("b")
	l.Stop(gone)
	l.pass(time.Second)
	l.say(a, "open")
	got := values(l.got)
	slices.Sort(got)
	l.equal("told", got, []string{"reply ", "terminated stopped", "timer timer"})
	l.got = nil
	l.say(b, "crash")
	l.say(b, "open")
	l.equal("told after a restart", values(l.got), []string{"terminated stopped"})
}

// B39: the message of a failed turn is gone, or comes again so many times, as the props say.
func TestB39_FateOfTheMessage(t *testing.T) { everyManner(t, rowB39_FateOfTheMessage) }

func rowB39_FateOfTheMessage(t *testing.T) {
	for _, c := range []struct {
		crashed CrashedMessage
		crashes int
		letters int
	}{{DropCrashed(), 1, 0}, {DeadLetterCrashed(), 1, 1}, {RedeliverCrashed(2), 3, 1}} {
		both(t, nil, func(l *stage, s sort) {
			a := l.spawn("a", s.props(l.t).WithCrashedMessage(c.crashed))
			l.say(a, s.crash)
			if n := len(l.raw(EventFailed)); n != c.crashes || len(l.letters()) != c.letters {
				l.t.Errorf("%d crashes, %v", n, l.letters())
			}
		})
	}
}

// B40: the mailbox is not touched by a failure.
func TestB40_FateOfTheMailbox(t *testing.T) { everyManner(t, rowB40_FateOfTheMailbox) }

func rowB40_FateOfTheMailbox(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		for range 3 {
			l.post(a, s.crash)
			l.post(a, s.add(1))
		}
		l.post(a, s.report)
		l.run()
		if v := values(l.got); v[len(v)-1] != "1" {
			l.t.Errorf("%q", l.got)
		}
		if n := len(l.raw(EventRestarted)); n != 3 {
			l.t.Errorf("%d restarts", n)
		}
	})
}

// B41: a message cannot be changed by whoever has sent or received it.
func TestB41_MessagesAreCopied(t *testing.T) {
	l := newStage(t, nil)
	spoil := Func(func(ctx *Context, m Message) error {
		clear(m.Payload)
		return nil
	})
	a, b := l.spawn("n1", spoil), l.spawn("n2", sinkTo(l))
	fan := l.spawn("fan", Func(func(ctx *Context, m Message) error {
		text := Raw(m.Payload)
		err := errors.Join(ctx.Tell(a, text), ctx.Tell(b, text))
		clear(text)
		return err
	}))
	l.say(fan, "whole")
	l.say(must(l.Lookup("/user/n1"))(t), "x")
	l.wants("message whole")
	if err := l.TellPath("/user/n?", "to both"); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.wants("message to both")
}

// B42: an actor can wait for its first message and keep the others meanwhile.
func TestB42_InitialisationByMessage(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", Native(func() Actor { return &keeper{} }))
	for _, v := range []string{"one", "two", "open", "three"} {
		l.post(a, v)
	}
	l.run()
	l.wants("message message one", "message message two", "message message three")
}

// B43: what the host answers itself does not reach the actor.
func TestB43_AutoReceived(t *testing.T) {
	l := newStage(t, nil)
	n := 0
	a := l.spawn("a", Func(func(*Context, Message) error { n++; return nil }))
	in := l.Inbox(0)
	defer in.Close()
	in.Identify("/user/a", 1)
	l.run()
	b := l.spawn("b", Func(func(*Context, Message) error { n++; return nil }))
	if err := errors.Join(l.Operate().Kill(a), l.PoisonPill(b)); err != nil {
		t.Fatal(err)
	}
	l.run()
	if _, ok := in.TryReceive(); !ok || n != 0 || l.alive(a) || l.alive(b) {
		t.Errorf("%d were received", n)
	}
}
