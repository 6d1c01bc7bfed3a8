package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/supervision"
)

// 3.2(5): the seven steps of a restart, in their order; no message slips in.
func TestC_3_2_5_RestartSteps(t *testing.T) { everyManner(t, rowC_3_2_5_RestartSteps) }

func rowC_3_2_5_RestartSteps(t *testing.T) {
	for _, keep := range []bool{false, true} {
		l := newStage(t, func(c Config) Config {
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
	everyManner(t, rowC_3_2_5_FailureBeforeTheRestartIsLogged)
}

func rowC_3_2_5_FailureBeforeTheRestartIsLogged(t *testing.T) {
	l := newStage(t, nil)
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

// 3.2(5): a restart waits for the children that it stops; a restart that concerns an actor below
// one that has failed keeps the counts.
func TestC_3_2_5_ChildrenStartedWhileSuspended(t *testing.T) {
	policy := delayOf(t, time.Second)
	l := newStage(t, strict)
	p := l.spawn("p", newCounter().WithSupervision(supervision.Default().WithBackoff(supervision.Backoff{Policy: policy})).
		WithChildren(Child{"a", newCounter().WithChildren(Child{"child", newCounter()})}))
	a := must(l.Lookup("/user/p/a"))(t)
	l.say(a, "crash") // waits a second
	l.say(p, "crash") // suspends what is below
	l.pass(time.Second)
	child := must(l.Lookup("/user/p/a/child"))(t) // made while its grandparent is suspended
	l.say(child, "get")
	l.wants()
	if err := l.Operate().Decide(p, supervision.Resume); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.wants("reply 0")
}

// 3.2(6): a restart of one that is stopping does nothing, and holds nothing up.
func TestC_3_2_6_RestartOfOneThatStops(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter().WithChildren(Child{"child", newCounter()}))
	child := l.cellOf(must(l.Lookup("/user/a/child"))(t))
	child.post(nil, sysmail.Msg{Kind: sysmail.Suspend}) // does not matter either
	c := l.cellOf(a)
	for _, k := range []sysmail.Kind{sysmail.Stop, sysmail.Restart, sysmail.Suspend, sysmail.Resume, sysmail.Unsuspend} {
		c.post(nil, sysmail.Msg{Kind: k})
	}
	l.raw()
	l.run()
	l.equal("events", l.events(), []string{"stopped child", "stopped a"})
}

// 3.2(7): failures while stopping go nowhere; watches of the dead are taken back.
func TestC_3_2_7_Terminate(t *testing.T) { everyManner(t, rowC_3_2_7_Terminate) }

func rowC_3_2_7_Terminate(t *testing.T) {
	l := newStage(t, nil)
	other := l.spawn("other", newCounter())
	for name, p := range map[string]Props{
		"native": Native(func() Actor { return &panicsAtStop{} }),
		"guest":  puppet(t, onTrap(abi.KindStop), on(abi.KindStart, abi.AppendReceiveTimeout(nil, 1e9), abi.AppendWatch(nil, other.UID(), ""))),
	} {
		ref := l.spawn(name, p)
		l.raw()
		l.Stop(ref)
		l.run()
		l.equal(name, l.events(), []string{"log " + name, "stopped " + name})
	}
	if n := len(l.cellOf(other).work.Watch.Watchers()); n != 0 || l.clock.Pending() != 0 {
		t.Errorf("%d watchers, %d timers are left", n, l.clock.Pending())
	}
}

// 3.2(8): a watcher that is stopping hears of nobody's end any more.
func TestC_3_2_8_AStoppingWatcherIgnoresEnds(t *testing.T) {
	l := newStage(t, nil)
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
