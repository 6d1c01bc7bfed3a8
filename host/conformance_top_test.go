package host

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

func delayOf(t *testing.T, d time.Duration) backoff.Policy {
	t.Helper()
	return must(backoff.Spec{Min: d, Max: d}.Policy())(t)
}

// 3.6: a child's failure that its parent escalates fails the parent; the guardian restarts it,
// and that stops its children and starts those that it has by its props anew.
func TestC_3_6_EscalationRestartsTheParent(t *testing.T) {
	everyManner(t, rowC_3_6_EscalationRestartsTheParent)
}

func rowC_3_6_EscalationRestartsTheParent(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		top := l.spawn("top", s.props(l.t).WithSupervision(supervision.Default().WithOtherwise(supervision.Escalate)).
			WithChildren(Child{"child", s.props(l.t)}))
		child := must(l.Lookup("/user/top/child"))(l.t)
		l.say(top, s.add(3))
		l.raw()
		l.say(child, s.crash)
		l.equal("events", l.events(EventFailed, EventEscalated, EventStopped, EventRestarted, EventTerminated),
			[]string{"failed child", "escalated top", "stopped child", "restarted top"})
		if again := must(l.Lookup("/user/top/child"))(l.t); again == child || l.alive(child) {
			l.t.Error("the child was kept")
		}
		l.got = nil
		l.say(top, s.report)
		l.equal("told", values(l.got), []string{"0"})
	})
}

// 3.6: what the host cannot mend escalates to the top: /user stops, then /system, then the
// system has ended, with the cause.
func TestC_3_6_EscalationToTheTop(t *testing.T) {
	l := newStage(t, nil)
	l.spawn("top", newCounter().WithChildren(Child{"child", Func(func(*Context, Message) error {
		return &abi.Failure{Kind: abi.FailureHost, Reason: "a bug"}
	})}))
	l.raw()
	l.say(must(l.Lookup("/user/top/child"))(t), 1)
	ends := l.events(EventFailed, EventEscalated, EventStopped, EventTerminated)
	slices.Sort(ends[2:5])
	l.equal("events", ends, []string{"failed child", "escalated top", "stopped child", "stopped probe", "stopped top", "stopped user", "stopped system", "terminated "})
	select {
	case <-l.Terminated():
	default:
		t.Error("it goes on")
	}
	var f *abi.Failure
	if !errors.As(l.Cause(), &f) || f.Reason != "a bug" {
		t.Error(l.Cause())
	}
}

// 3.6: shutting down is orderly from any state: running, suspended, failed, waiting for a
// restart; nothing is left.
func TestC_3_6_ShutdownFromAnyState(t *testing.T) { everyManner(t, rowC_3_6_ShutdownFromAnyState) }

func rowC_3_6_ShutdownFromAnyState(t *testing.T) {
	l := newStage(t, strict)
	must(l.Spawn("new", newCounter()))(t)
	failed := l.spawn("failed", newCounter().WithChildren(Child{"suspended", newCounter()}))
	l.say(failed, "crash")
	waits := l.spawn("waits", newCounter().WithSupervision(supervision.Default().WithBackoff(supervision.Backoff{Policy: delayOf(t, time.Hour)})).
		WithChildren(Child{"restarting", newCounter()}))
	l.say(must(l.Lookup(waits.Path()+"/restarting"))(t), "panic")
	g := l.spawn("guest", puppet(t))
	l.post(g, script(now(abi.AppendStash(nil))))
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := l.View().Stats().Actors; n != 0 || l.clock.Pending() != 0 || l.Cause() != nil {
		t.Errorf("%d actors, %d timers, %v", n, l.clock.Pending(), l.Cause())
	}
}
