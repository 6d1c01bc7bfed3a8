package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// cellOf is the actor's inside.
func (l *kit) cellOf(ref Ref) *cell { return l.table.get(ref.uid) }

// 3.1: what the system says overtakes what users say, between any two turns.
func TestC_3_1_SystemMessagesOvertake(t *testing.T) {
	both(t, func(c Config) Config { return c.WithThroughput(100) }, func(l *kit, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.got = nil
		for range 5 {
			l.post(a, s.report)
		}
		l.cellOf(a).post(nil, sysMsg{kind: sysSuspend}) // behind all of them, in another queue
		l.run()
		l.wants()
		if n := l.cellOf(a).mbox.Len(); n != 5 {
			l.t.Errorf("%d wait", n)
		}
		l.cellOf(a).post(nil, sysMsg{kind: sysUnsuspend})
		l.run()
		l.equal("told", len(l.got), 5)
	})
	// Also what comes during a spell of many turns: the first one suspends the actor itself.
	l := newKit(t, func(c Config) Config { return c.WithThroughput(100) })
	n := 0
	a := l.spawn("a", Func(func(ctx *Context, _ Message) error {
		n++
		ctx.cell.post(ctx.scr, sysMsg{kind: sysSuspend})
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
	l := newKit(t, func(c Config) Config { return c.WithThroughput(2) })
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
func TestC_3_1_SuspendCounter(t *testing.T) {
	both(t, nil, func(l *kit, s sort) {
		a := l.spawn("a", s.props(l.t).WithChildren(Child{"child", s.props(l.t)}))
		child := must(l.Lookup("/user/a/child"))(l.t)
		l.got = nil
		for range 2 {
			l.cellOf(a).post(nil, sysMsg{kind: sysSuspend})
		}
		l.run()
		l.post(a, s.report)
		l.say(child, s.report)
		l.cellOf(a).post(nil, sysMsg{kind: sysUnsuspend})
		l.run()
		l.wants()
		l.cellOf(a).post(nil, sysMsg{kind: sysUnsuspend})
		l.run()
		l.equal("told", len(l.got), 2)
		if n := l.cellOf(child).suspends; n != 0 {
			l.t.Errorf("the child is suspended %d times", n)
		}
	})
}

// 3.1: what was left in the queue of one that has closed is answered: a late watch is told.
func TestC_3_1_LateWatch(t *testing.T) {
	l := newKit(t, nil)
	a := l.spawn("a", newCounter())
	in := l.Inbox(0)
	defer in.Close()
	c := l.cellOf(a)
	l.Stop(a)
	if !c.post(nil, sysMsg{kind: sysWatch, ref: in.Ref().UID()}) { // behind the stop, before the queue is closed
		t.Fatal("closed already")
	}
	in.mu.Lock()
	in.watched[a.uid] = a
	in.mu.Unlock()
	l.run()
	if m, ok := in.TryReceive(); !ok || m.Sender != a {
		t.Errorf("%+v", m)
	}
	if c.post(nil, sysMsg{kind: sysStop}) {
		t.Error("the queue of the dead is open")
	}
}

// strict is a supervisor that leaves failures to the test: everything stays suspended.
func strict(c Config) Config {
	return c.WithGuardian(supervision.Default().WithOtherwise(supervision.Suspend))
}

// 3.2(1): a failure suspends the actor and all below it; messages go on queueing.
func TestC_3_2_1_FailureSuspendsAllBelow(t *testing.T) {
	both(t, strict, func(l *kit, s sort) {
		a := l.spawn("a", s.props(l.t).WithChildren(Child{"b", s.props(l.t).WithChildren(Child{"c", s.props(l.t)})}))
		b, c := must(l.Lookup("/user/a/b"))(l.t), must(l.Lookup("/user/a/b/c"))(l.t)
		l.say(a, s.crash)
		l.got = nil
		for _, ref := range []Ref{a, b, c} {
			l.post(ref, s.report)
		}
		l.run()
		l.wants()
		if err := l.Decide(a, supervision.Stop); err != nil {
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
	l := newKit(t, strict)
	a := l.spawn("a", newCounter().WithChildren(Child{"child", newCounter()}))
	child := must(l.Lookup("/user/a/child"))(t)
	l.say(a, "crash")
	c := l.cellOf(a)
	c.fail(&scratch{w: nil}, &abi.Failure{Kind: abi.FailureTrap})
	l.run()
	if n := len(l.raw(EventFailed)); n != 1 || l.cellOf(child).suspends != 1 {
		t.Errorf("%d failures, %d suspensions", n, l.cellOf(child).suspends)
	}

	fails := false
	l = newKit(t, nil)
	b := l.spawn("b", Native(func() Actor { return &startsUnless{fails: &fails} }))
	fails = true
	l.say(b, "crash")
	e := l.raw(EventFailed)
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

// 3.2(3): the failure of one that is no child (any more) is dropped, also if its name is
// taken by another; what is not decided fails the supervisor.
func TestC_3_2_3_FailureOfAStranger(t *testing.T) {
	l := newKit(t, nil)
	first := l.spawn("a", newCounter())
	old := l.cellOf(first)
	l.Stop(first)
	l.run()
	second := l.spawn("a", newCounter())
	l.raw()
	l.user.post(nil, sysMsg{kind: sysChildFailed, child: old, failure: &abi.Failure{Kind: abi.FailureTrap}})
	l.run()
	if e := l.raw(); len(e) != 0 || l.incarnation(second) != 0 {
		t.Errorf("%v", e)
	}
}

// 3.2(3): escalating fails the supervisor with the same cause; the child stays suspended, once.
func TestC_3_2_3_EscalationKeepsTheChildSuspended(t *testing.T) {
	l := newKit(t, strict)
	p := l.spawn("p", newCounter().WithSupervision(supervision.Default().WithOtherwise(supervision.Escalate)).
		WithChildren(Child{"culprit", newCounter()}, Child{"sibling", newCounter()}))
	culprit, sibling := must(l.Lookup("/user/p/culprit"))(t), must(l.Lookup("/user/p/sibling"))(t)
	l.say(culprit, 3)
	l.say(culprit, "crash")
	e := l.raw(EventFailed)
	if len(e) != 2 || e[0].Failure != e[1].Failure || e[1].Ref != p {
		t.Fatalf("%v", e)
	}
	if a, b := l.cellOf(culprit).suspends, l.cellOf(sibling).suspends; a != 1 || b != 1 || l.cellOf(culprit).state != stateFailed {
		t.Errorf("suspended %d and %d times", a, b)
	}
	// Resuming the supervisor resumes the culprit and its siblings.
	if err := l.Decide(p, supervision.Resume); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.say(culprit, "get")
	l.say(sibling, "get")
	l.wants("reply 3", "reply 0")
}

// 3.2(4): resume brings the actor back to before the failing turn and wakes its children.
func TestC_3_2_4_Resume(t *testing.T) {
	both(t, strict, func(l *kit, s sort) {
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

// 3.2(4): one that never came up is made anew by resume; it does not run half begun.
func TestC_3_2_4_ResumeOfWhatNeverBegan(t *testing.T) {
	fails := true
	for name, p := range map[string]Props{
		"native": Native(func() Actor { return &startsUnless{fails: &fails} }),
		"guest":  puppet(t, onTrap(abi.KindStart)),
	} {
		t.Run(name, func(t *testing.T) {
			l := newKit(t, strict)
			fails = true
			a := l.spawn("a", p.WithChildren(Child{"child", newCounter()}))
			fails = false
			l.raw()
			if err := l.Decide(a, supervision.Resume); err != nil {
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

// 3.2(5): the seven steps of a restart, in their order; no message slips in.
func TestC_3_2_5_RestartSteps(t *testing.T) {
	for _, keep := range []bool{false, true} {
		l := newKit(t, func(c Config) Config {
			return c.WithGuardian(supervision.Default().WithKeepChildren(keep))
		})
		props := puppetHooks(t)
		a := l.spawn("a", props.WithChildren(Child{"child", props}))
		child := must(l.Lookup("/user/a/child"))(t)
		l.got = nil
		for _, v := range []Raw{script(now(abi.AppendFail(nil, "failed"))), script(now(toProbe("next")))} {
			l.post(a, v)
		}
		l.post(child, script(now(toProbe("child's next"))))
		l.run()
		got := strings.ReplaceAll(strings.Join(l.got, ","), "message ", "")
		want := "pre_restart,stop,start,start,next" // of the old one; of its child; the new ones, and then what waits
		if keep {
			want = "pre_restart,pre_restart,start,start,next,child's next"
		}
		sorted := func(s string) []string { return slices.Sorted(slices.Values(strings.Split(s, ","))) }
		// Between parent and child there is no order but these: hooks of the old ones, the new ones, messages.
		if !slices.Equal(sorted(got), sorted(want)) || strings.Index(got, "pre_restart") != 0 || strings.Index(got, "next") < strings.Index(got, "start") {
			t.Errorf("keep %v: %s, want %s", keep, got, want)
		}
		e := l.events(EventFailed, EventStopped, EventRestarted)
		if !keep {
			l.equal("events", e, []string{"failed a", "stopped child", "restarted a"})
			if !strings.HasPrefix(got, "pre_restart,stop,start") {
				t.Error(got)
			}
		}
	}
}

// 3.2(5): a failure in the hook of the old instance is only logged.
func TestC_3_2_5_FailureBeforeTheRestartIsLogged(t *testing.T) {
	l := newKit(t, nil)
	a := l.spawn("a", puppet(t, onTrap(abi.KindPreRestart)))
	l.raw()
	l.say(a, script(now(abi.AppendFail(nil, "failed"))))
	l.equal("events", l.events(EventFailed, EventLog, EventRestarted), []string{"failed a", "log a", "restarted a"})
	n := l.spawn("n", Native(func() Actor { return &panicsAtStop{} }))
	l.raw()
	l.say(n, "crash")
	l.equal("events", l.events(EventFailed, EventLog, EventRestarted), []string{"failed n", "log n", "restarted n"})
}

type panicsAtStop struct{ counter }

func (*panicsAtStop) Stopped(*Context) { panic("at the end") }

// 3.2(5): a restart waits for the children that it stops; a restart that befalls an actor below
// one that has failed keeps the counts.
func TestC_3_2_5_ChildrenStartedWhileSuspended(t *testing.T) {
	policy := delayOf(t, time.Second)
	l := newKit(t, strict)
	p := l.spawn("p", newCounter().WithSupervision(supervision.Default().WithBackoff(supervision.Backoff{Policy: policy})).
		WithChildren(Child{"a", newCounter().WithChildren(Child{"child", newCounter()})}))
	a := must(l.Lookup("/user/p/a"))(t)
	l.say(a, "crash") // waits a second
	l.say(p, "crash") // suspends what is below
	l.pass(time.Second)
	child := must(l.Lookup("/user/p/a/child"))(t) // made while its grandparent is suspended
	l.say(child, "get")
	l.wants()
	if err := l.Decide(p, supervision.Resume); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.wants("reply 0")
}

// 3.2(6): a restart of one that is stopping does nothing, and holds nothing up.
func TestC_3_2_6_RestartOfOneThatStops(t *testing.T) {
	l := newKit(t, nil)
	a := l.spawn("a", newCounter().WithChildren(Child{"child", newCounter()}))
	child := l.cellOf(must(l.Lookup("/user/a/child"))(t))
	child.post(nil, sysMsg{kind: sysSuspend}) // does not matter either
	c := l.cellOf(a)
	for _, k := range []sysKind{sysStop, sysRestart, sysSuspend, sysResume, sysUnsuspend} {
		c.post(nil, sysMsg{kind: k})
	}
	l.raw()
	l.run()
	l.equal("events", l.events(), []string{"stopped child", "stopped a"})
}

// 3.2(7): failures while stopping go nowhere; watches of the dead are taken back.
func TestC_3_2_7_Terminate(t *testing.T) {
	l := newKit(t, nil)
	other := l.spawn("other", newCounter())
	for name, p := range map[string]Props{
		"native": Native(func() Actor { return &panicsAtStop{} }),
		"guest":  puppet(t, onTrap(abi.KindStop), on(abi.KindStart, abi.AppendReceiveTimeout(nil, 1e9), abi.AppendWatch(nil, other.uid, ""))),
	} {
		ref := l.spawn(name, p)
		l.raw()
		l.Stop(ref)
		l.run()
		l.equal(name, l.events(), []string{"log " + name, "stopped " + name})
	}
	if n := len(l.cellOf(other).watchers); n != 0 || l.clock.Pending() != 0 {
		t.Errorf("%d watchers, %d timers are left", n, l.clock.Pending())
	}
}

// 3.2(8): a mourner that is stopping hears of nobody's end any more.
func TestC_3_2_8_AStoppingWatcherIgnoresEnds(t *testing.T) {
	l := newKit(t, nil)
	told := 0
	p := l.spawn("p", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindTerminated {
			told++
			return nil
		}
		for i := range 3 {
			child, err := ctx.Spawn(fmt.Sprint("c", i), newCounter())
			if err != nil {
				return err
			}
			if err := ctx.Watch(child); err != nil {
				return err
			}
		}
		return nil
	}))
	l.say(p, "go")
	l.Stop(p)
	l.run()
	if told != 0 || l.alive(p) || len(l.letters()) != 0 {
		t.Errorf("told %d times, %v", told, l.letters())
	}
}
