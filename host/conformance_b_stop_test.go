package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// B29: a stop ends the actor behind its current turn; the rest of the mailbox is dead letters.
func TestB29_Stop(t *testing.T) { everyManner(t, rowB29_Stop) }

func rowB29_Stop(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.got = nil
		l.post(a, s.add(1))
		l.post(a, s.report)
		l.Stop(a)
		l.run()
		l.wants("message stop")
		if n := len(l.letters()); n != 2 {
			l.t.Errorf("%d dead letters", n)
		}
	})
	// It stops itself, its child, and what a capability names, but nobody else.
	l := newStage(t, nil)
	other, denied := l.spawn("other", newCounter()), l.spawn("denied", newCounter())
	g := l.spawn("guest", puppet(t, on(abi.KindStart, abi.AppendSpawn(nil, 0, "puppet", "x", nil, nil))).WithCapabilities(Capabilities{Stop: []string{"/user/oth?r"}}))
	if l.alive(g) {
		t.Error("a forged ref of a child was accepted")
	}
	g = l.spawn("guest", puppet(t).WithCapabilities(Capabilities{Stop: []string{"/user/oth?r"}}))
	l.say(g, script(now(abi.AppendStop(nil, other.UID(), ""), abi.AppendStop(nil, denied.UID(), ""), toProbe("x"))))
	l.say(g, script(now(abi.AppendStop(nil, g.UID(), ""))))
	if l.alive(other) || !l.alive(denied) || l.alive(g) {
		t.Errorf("%v", l.View().Tree())
	}
}

// B30: children first, then the last turn, then the mailbox, then the parent, then the watchers.
func TestB30_OrderOfTheEnd(t *testing.T) { everyManner(t, rowB30_OrderOfTheEnd) }

func rowB30_OrderOfTheEnd(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t).WithChildren(Child{"child", s.props(l.t)}))
		child := must(l.Lookup("/user/a/child"))(l.t)
		l.got, l.mail = nil, nil
		l.raw()
		in := l.Inbox(0)
		defer in.Close()
		in.Watch(a)
		l.Stop(a)
		l.post(a, s.add(1))
		for l.Step() {
			if m, ok := in.TryReceive(); ok && m.Kind == abi.KindTerminated {
				if l.alive(a) {
					l.t.Error("a watcher knew before the end")
				}
			}
		}
		var order []string
		for _, m := range l.mail {
			order = append(order, fmt.Sprint(m.Sender.UID() == child.UID()))
		}
		l.equal("last turns, of the child first", order, []string{"true", "false"})
		l.equal("events", l.events(EventStopped, EventDeadLetter), []string{"stopped child", "dead_letter temp", "stopped a"})
	})
	// A parent that watches its child has given the name free when it is told.
	l := newStage(t, nil)
	l.spawn("p", Native(func() Actor { return &replacesItsChild{} }))
	first := must(l.Lookup("/user/p/child"))(t)
	l.Stop(first)
	l.run()
	if second := must(l.Lookup("/user/p/child"))(t); second == first {
		t.Error("it was not replaced")
	}
}

type replacesItsChild struct{ watchesItsChild }

func (a *replacesItsChild) Receive(ctx *Context, m Message) error { return a.Started(ctx) }

// B31: a poison pill stops the actor when it is reached.
func TestB31_PoisonPill(t *testing.T) { everyManner(t, rowB31_PoisonPill) }

func rowB31_PoisonPill(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.got = nil
		l.post(a, s.add(1))
		l.post(a, s.report)
		if err := l.PoisonPill(a); err != nil {
			l.t.Fatal(err)
		}
		l.post(a, s.report)
		l.run()
		l.equal("told", values(l.got), []string{"1", "stop"})
		if n := len(l.letters()); n != 1 {
			l.t.Errorf("%d dead letters", n)
		}
	})
}

// B32: a kill is a failure when it is reached; the supervisor decides: stop by default, but it may
// resume or restart.
func TestB32_Kill(t *testing.T) { everyManner(t, rowB32_Kill) }

func rowB32_Kill(t *testing.T) {
	for directive, want := range map[supervision.Directive][]string{
		0: {"1", "stop"}, supervision.Resume: {"1", "1"}, supervision.Restart: {"1", "0"}, supervision.Stop: {"1", "stop"},
	} {
		both(t, func(c Config) Config { return c.WithGuardian(supervision.Default().WithOtherwise(directive)) }, func(l *stage, s sort) {
			a := l.spawn("a", s.props(l.t))
			l.got = nil
			l.post(a, s.add(1))
			l.post(a, s.report)
			if err := l.Operate().Kill(a); err != nil {
				l.t.Fatal(err)
			}
			l.post(a, s.report)
			l.run()
			got := values(l.got)
			if got = []string{got[0], got[len(got)-1]}; !slices.Equal(got, want) {
				l.t.Errorf("%v: %v, want %v", directive, got, want)
			}
			if e := l.raw(EventFailed); len(e) != 1 || e[0].Failure.Kind != abi.FailureKilled {
				l.t.Errorf("%v", e)
			}
		})
	}
}

// B33: a graceful stop waits until the actor has gone, its last turn included, and stops it at
// once when the time is over.
func TestB33_GracefulStop(t *testing.T) { everyManner(t, rowB33_GracefulStop) }

func rowB33_GracefulStop(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.got = nil
		l.post(a, s.add(2))
		l.post(a, s.report)
		if err := l.drive(func() error { return l.StopGracefully(context.Background(), a) }); err != nil {
			l.t.Error(err)
		}
		l.run() // the probe
		l.equal("told", values(l.got), []string{"2", "stop"})
		over, cancel := context.WithCancel(context.Background())
		cancel()
		b := l.spawn("b", s.props(l.t))
		l.post(b, s.report)
		if err := l.StopGracefully(over, b); !errors.Is(err, context.Canceled) {
			l.t.Error(err)
		}
		l.run()
		if l.alive(b) {
			l.t.Error("it was left alive")
		}
		if err := l.StopGracefully(over, b); err != nil {
			l.t.Errorf("of one that has gone: %v", err)
		}
	})
}

// drive runs the system until a call that waits for it has returned.
func (l *stage) drive(call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	for {
		l.run()
		select {
		case err := <-done:
			return err
		default:
			runtime.Gosched()
		}
	}
}
