package host

import (
	"errors"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/supervision"
)

// cellOf is the actor's inside.
func (l *stage) cellOf(ref Ref) *actor { return l.table.Get(ref.UID()) }

// 3.1: what the system says overtakes what users say, between any two turns.
func TestC_3_1_SystemMessagesOvertake(t *testing.T) { everyManner(t, rowC_3_1_SystemMessagesOvertake) }

func rowC_3_1_SystemMessagesOvertake(t *testing.T) {
	both(t, func(c Config) Config { return c.WithThroughput(100) }, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.got = nil
		for range 5 {
			l.post(a, s.report)
		}
		l.cellOf(a).post(nil, sysmail.Msg{Kind: sysmail.Suspend}) // behind all of them, in another queue
		l.run()
		l.wants()
		if n := l.cellOf(a).box.Len(); n != 5 {
			l.t.Errorf("%d wait", n)
		}
		l.cellOf(a).post(nil, sysmail.Msg{Kind: sysmail.Unsuspend})
		l.run()
		l.equal("told", len(l.got), 5)
	})
	// Also what comes during a spell of many turns: the first one suspends the actor itself.
	l := newStage(t, func(c Config) Config { return c.WithThroughput(100) })
	n := 0
	a := l.spawn("a", Func(func(ctx *Context, _ Message) error {
		n++
		ctx.actor.post(ctx.scr, sysmail.Msg{Kind: sysmail.Suspend})
		return nil
	}))
	for range 3 {
		l.post(a, 1)
	}
	l.run()
	l.equal("turns", n, 1)
}

// 3.1: a spell has so many turns at the most; then others have theirs.
func TestC_3_1_Throughput(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithThroughput(2) })
	var order string
	note := func(s string) Props { return Func(func(*Context, Message) error { order += s; return nil }) }
	a, b := l.spawn("a", note("a")), l.spawn("b", note("b"))
	for range 4 {
		l.post(a, 1)
		l.post(b, 1)
	}
	l.run()
	if order != "aabbaabb" && order != "bbaabbaa" {
		t.Error(order)
	}
}

// 3.1: a suspended actor takes messages in and handles none; suspensions are counted.
func TestC_3_1_SuspendCounter(t *testing.T) { everyManner(t, rowC_3_1_SuspendCounter) }

func rowC_3_1_SuspendCounter(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t).WithChildren(Child{"child", s.props(l.t)}))
		child := must(l.Lookup("/user/a/child"))(l.t)
		l.got = nil
		for range 2 {
			l.cellOf(a).post(nil, sysmail.Msg{Kind: sysmail.Suspend})
		}
		l.run()
		l.post(a, s.report)
		l.say(child, s.report)
		l.cellOf(a).post(nil, sysmail.Msg{Kind: sysmail.Unsuspend})
		l.run()
		l.wants()
		l.cellOf(a).post(nil, sysmail.Msg{Kind: sysmail.Unsuspend})
		l.run()
		l.equal("told", len(l.got), 2)
		if n := l.cellOf(child).life.Suspended(); n != 0 {
			l.t.Errorf("the child is suspended %d times", n)
		}
	})
}

// 3.1: what was left in the queue of one that has closed is answered: a late watch is told.
func TestC_3_1_LateWatch(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	in := l.Inbox(0)
	defer in.Close()
	c := l.cellOf(a)
	l.Stop(a)
	in.Watch(a) // behind the stop, before the queue is closed
	l.run()
	if m, ok := in.TryReceive(); !ok || m.Sender != a {
		t.Errorf("%+v", m)
	}
	if c.post(nil, sysmail.Msg{Kind: sysmail.Stop}) {
		t.Error("the queue of the dead is open")
	}
}

// strict is a supervisor that leaves failures to the test: everything stays suspended.
func strict(c Config) Config {
	return c.WithGuardian(supervision.Default().WithOtherwise(supervision.Suspend))
}

// 3.2(1): a failure suspends the actor and all below it; messages go on queueing.
func TestC_3_2_1_FailureSuspendsAllBelow(t *testing.T) {
	everyManner(t, rowC_3_2_1_FailureSuspendsAllBelow)
}

func rowC_3_2_1_FailureSuspendsAllBelow(t *testing.T) {
	both(t, strict, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t).WithChildren(Child{"b", s.props(l.t).WithChildren(Child{"c", s.props(l.t)})}))
		b, c := must(l.Lookup("/user/a/b"))(l.t), must(l.Lookup("/user/a/b/c"))(l.t)
		l.say(a, s.crash)
		l.got = nil
		for _, ref := range []Ref{a, b, c} {
			l.post(ref, s.report)
		}
		l.run()
		l.wants()
		if err := l.Operate().Decide(a, supervision.Stop); err != nil {
			l.t.Fatal(err)
		}
		l.run()
		if l.alive(c) {
			l.t.Error("the end was held up by the suspension")
		}
	})
}

// 3.2(2): failing again while failed changes nothing; failing at the start of a re-creation is
// a new failure.
func TestC_3_2_2_DoubleFailure(t *testing.T) {
	l := newStage(t, strict)
	a := l.spawn("a", newCounter().WithChildren(Child{"child", newCounter()}))
	child := must(l.Lookup("/user/a/child"))(t)
	l.say(a, "crash")
	c := l.cellOf(a)
	c.fail(&scratch{w: nil}, &abi.Failure{Kind: abi.FailureTrap}, life.ByItself)
	l.run()
	if n := len(l.raw(EventFailed)); n != 1 || l.cellOf(child).life.Suspended() != 1 {
		t.Errorf("%d failures, %d suspensions", n, l.cellOf(child).life.Suspended())
	}

	fails := false
	l = newStage(t, nil)
	b := l.spawn("b", Native(func() Actor { return &startsUnless{fails: &fails} }))
	fails = true
	l.say(b, "crash")
	e := l.raw(EventFailed, EventEscalated)
	if len(e) != 2 || e[0].Directive != supervision.Restart || e[1].Failure.Kind != abi.FailureInit || e[1].Directive != supervision.Stop || l.alive(b) {
		t.Errorf("%v", e)
	}
}

type startsUnless struct {
	counter
	fails *bool
}

func (a *startsUnless) Started(*Context) error {
	if *a.fails {
		return errors.New("not now")
	}
	return nil
}

// 3.2(3): the failure of one that is not a child (any more) is dropped, also if its name is
// taken by another; what is not decided fails the supervisor.
func TestC_3_2_3_FailureOfAStranger(t *testing.T) {
	l := newStage(t, nil)
	first := l.spawn("a", newCounter())
	old := l.cellOf(first)
	l.Stop(first)
	l.run()
	second := l.spawn("a", newCounter())
	l.raw()
	l.user.post(nil, sysmail.Msg{Kind: sysmail.ChildFailed, Kin: sysmail.Kin{Child: old, Failure: &abi.Failure{Kind: abi.FailureTrap}}})
	l.run()
	if e := l.raw(); len(e) != 0 || l.incarnation(second) != 0 {
		t.Errorf("%v", e)
	}
}

// 3.2(3): escalating fails the supervisor with the same cause; the child stays suspended, once.
func TestC_3_2_3_EscalationKeepsTheChildSuspended(t *testing.T) {
	l := newStage(t, strict)
	p := l.spawn("p", newCounter().WithSupervision(supervision.Default().WithOtherwise(supervision.Escalate)).
		WithChildren(Child{"failing", newCounter()}, Child{"sibling", newCounter()}))
	failing, sibling := must(l.Lookup("/user/p/failing"))(t), must(l.Lookup("/user/p/sibling"))(t)
	l.say(failing, 3)
	l.say(failing, "crash")
	e := l.raw(EventFailed, EventEscalated)
	if len(e) != 2 || e[0].Failure != e[1].Failure || e[1].Ref != p {
		t.Fatalf("%v", e)
	}
	for _, ref := range []Ref{failing, sibling, p} {
		l.say(ref, 1)
	}
	l.wants()
	for _, ref := range []Ref{failing, sibling} {
		if n := l.cellOf(ref).box.Len(); n != 1 {
			t.Errorf("%d wait for %v", n, ref)
		}
	}
	// Resuming the supervisor resumes the failing and its siblings.
	if err := l.Operate().Decide(p, supervision.Resume); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.say(failing, "get")
	l.say(sibling, "get")
	l.wants("reply 4", "reply 1")
}

// 3.2(4): resume brings the actor back to before the failing turn and wakes its children.
func TestC_3_2_4_Resume(t *testing.T) { everyManner(t, rowC_3_2_4_Resume) }

func rowC_3_2_4_Resume(t *testing.T) {
	both(t, strict, func(l *stage, s sort) {
		// Only an actor whose supervisor may resume keeps what that needs: a rule says so.
		p := l.spawn("p", Func(func(*Context, Message) error { return nil }).
			WithSupervision(supervision.Default().WithRules(supervision.Rule{Directive: supervision.Resume})).
			WithChildren(Child{"a", s.props(l.t).WithChildren(Child{"child", s.props(l.t)})}))
		a, child := must(l.Lookup(p.Path()+"/a"))(l.t), must(l.Lookup(p.Path()+"/a/child"))(l.t)
		l.got = nil
		for _, v := range []any{s.add(4), s.crash, s.add(1), s.report} {
			l.post(a, v)
		}
		l.post(child, s.report)
		l.run()
		got := values(l.got)
		slices.Sort(got)
		l.equal("told", got, []string{"0", "5"})
		l.equal("events", l.events(EventResumed, EventRestarted), []string{"resumed a"})
	})
}

// 3.2(4): one that never came up is made again by resume; it does not run half begun.
func TestC_3_2_4_ResumeOfWhatNeverBegan(t *testing.T) {
	everyManner(t, rowC_3_2_4_ResumeOfWhatNeverBegan)
}

func rowC_3_2_4_ResumeOfWhatNeverBegan(t *testing.T) {
	fails := true
	for name, p := range map[string]Props{
		"native": Native(func() Actor { return &startsUnless{fails: &fails} }),
		"guest":  puppet(t, onTrap(abi.KindStart)),
	} {
		t.Run(name, func(t *testing.T) {
			l := newStage(t, strict)
			fails = true
			a := l.spawn("a", p.WithChildren(Child{"child", newCounter()}))
			fails = false
			l.raw()
			if err := l.Operate().Decide(a, supervision.Resume); err != nil {
				t.Fatal(err)
			}
			l.run()
			if l.incarnation(a) != 1 {
				t.Error("it was not made anew")
			}
			if _, err := l.Lookup("/user/a/child"); (err == nil) != (name == "native") { // the guest fails again
				t.Error(err)
			}
		})
	}
}
