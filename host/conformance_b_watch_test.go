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

// mourner is an actor of either sort that hands every end on to the probe, and watches
// and unwatches as it is told.
type mourner struct {
	name    string
	props   func(*testing.T) Props
	watch   func(Ref) any
	unwatch func(Ref) any
}

var watchers = []mourner{
	{"native", func(*testing.T) Props {
		return Func(func(ctx *Context, m Message) error {
			var order map[string]uint64
			switch {
			case m.Kind == abi.KindTerminated:
				return tellProbe(ctx, Raw(m.Payload))
			case m.Decode(&order) != nil:
				return tellProbe(ctx, Raw(m.Payload))
			}
			if uid := order["watch"]; uid != 0 {
				return ctx.Watch(Ref{uid: abi.Ref(uid)})
			}
			ctx.Unwatch(Ref{uid: abi.Ref(order["unwatch"])})
			return nil
		})
	}, func(r Ref) any { return map[string]uint64{"watch": uint64(r.uid)} }, func(r Ref) any { return map[string]uint64{"unwatch": uint64(r.uid)} }},
	{"guest", func(t *testing.T) Props {
		return puppet(t, on(abi.KindTerminated, abi.AppendForward(nil, 0, "/user/probe")))
	}, func(r Ref) any { return script(now(abi.AppendWatch(nil, r.uid, ""))) }, func(r Ref) any { return script(now(abi.AppendUnwatch(nil, r.uid, ""))) }},
}

func eachWatcher(t *testing.T, f func(l *kit, w mourner, ref Ref)) {
	for _, w := range watchers {
		t.Run(w.name, func(t *testing.T) {
			l := newKit(t, nil)
			f(l, w, l.spawn("mourner", w.props(t)))
		})
	}
}

// B11: a mourner learns of the real end, not of restarts; also of one that came before; the
// order of registration and death does not matter.
func TestB11_DeathWatch(t *testing.T) {
	eachWatcher(t, func(l *kit, w mourner, ref Ref) {
		a := l.spawn("a", newCounter())
		l.say(ref, w.watch(a))
		l.say(a, "crash")
		l.wants()
		l.Stop(a)
		l.run()
		l.wants("message stopped")
		l.say(ref, w.watch(a))
		l.wants("message unknown")
		b := l.spawn("b", newCounter())
		l.Stop(b) // both at once: the watch may come after the end
		l.post(ref, w.watch(b))
		l.run()
		if len(l.got) != 1 {
			l.t.Errorf("%q", l.got)
		}
		l.got = nil
		failing := l.spawn("failing", newCounter())
		l.say(ref, w.watch(failing))
		if err := l.Kill(failing); err != nil {
			l.t.Fatal(err)
		}
		l.run()
		l.wants("message failed: killed: killed")
	})
}

// B12: watching twice is watching once; watching again after the end is told again.
func TestB12_RepeatedWatch(t *testing.T) {
	eachWatcher(t, func(l *kit, w mourner, ref Ref) {
		a := l.spawn("a", newCounter())
		l.say(ref, w.watch(a))
		l.say(ref, w.watch(a))
		l.Stop(a)
		l.run()
		l.wants("message stopped")
		l.say(ref, w.watch(a))
		l.wants("message unknown")
	})
}

// B13: unwatch also takes back what waits in the mailbox already.
func TestB13_Unwatch(t *testing.T) {
	eachWatcher(t, func(l *kit, w mourner, ref Ref) {
		a, b := l.spawn("a", newCounter()), l.spawn("b", newCounter())
		l.say(ref, w.watch(a))
		l.say(ref, w.unwatch(a))
		l.Stop(a)
		l.run()
		l.wants()
		l.say(ref, w.watch(b))
		l.post(ref, w.unwatch(b)) // it is in the mailbox before the news
		l.Stop(b)
		l.run()
		l.wants()
	})
	// The news is in the mailbox for certain: the mourner is behind a stop of a child of its own.
	l := newKit(t, nil)
	a := l.spawn("a", newCounter())
	var box *cell
	w := l.spawn("w", Func(func(ctx *Context, m Message) error {
		var v string
		if m.Kind == abi.KindTerminated || m.Decode(&v) != nil {
			return tellProbe(ctx, "too late")
		}
		if v == "watch" {
			return ctx.Watch(a)
		}
		if box.mbox.Len() != 1 {
			t.Errorf("%d wait", box.mbox.Len())
		}
		ctx.Unwatch(a)
		return nil
	}))
	box = l.table.get(w.uid)
	l.say(w, "watch")
	box.post(nil, sysMsg{kind: sysSuspend})
	l.post(w, "unwatch")
	l.Stop(a)
	l.run()
	box.post(nil, sysMsg{kind: sysUnsuspend})
	l.run()
	l.wants()
}

// B14: the news of the end comes behind everything that the dead actor had sent before.
func TestB14_TerminatedComesLast(t *testing.T) {
	eachWatcher(t, func(l *kit, w mourner, ref Ref) {
		words := func(i int) any {
			if w.name == "guest" {
				return script(now(toProbe(i)))
			}
			return i
		}
		talker := l.spawn("talker", Func(func(ctx *Context, _ Message) error {
			for i := range 5 {
				if err := ctx.Tell(ref, words(i)); err != nil {
					return err
				}
			}
			ctx.Stop(ctx.Self())
			return nil
		}))
		l.say(ref, w.watch(talker))
		l.say(talker, "go")
		l.wants("message 0", "message 1", "message 2", "message 3", "message 4", "message stopped")
	})
}

// B15: an end that was not handled is a failure of the mourner; by default it stops.
func TestB15_DeathPact(t *testing.T) {
	for _, w := range []Props{
		Func(func(ctx *Context, m Message) error {
			if m.Kind == abi.KindTerminated {
				return ErrUnhandled
			}
			return ctx.Watch(Ref{uid: abi.Ref(m.Correlation)})
		}),
		puppet(t, on(abi.KindTerminated, abi.AppendUnhandled(nil))),
	} {
		l := newKit(t, nil)
		a, ref := l.spawn("a", newCounter()), l.spawn("w", w)
		in := l.Inbox(0)
		defer in.Close()
		if err := in.Ask(ref, script(now(abi.AppendWatch(nil, a.uid, ""))), uint64(a.uid)); err != nil {
			t.Fatal(err)
		}
		l.run()
		l.Stop(a)
		l.run()
		e := l.raw(EventFailed)
		if len(e) != 1 || e[0].Failure.Kind != abi.FailureDeathPact || e[0].Directive != supervision.Stop || l.alive(ref) {
			t.Errorf("%v", e)
		}
	}
}

// B29: a stop ends the actor behind its current turn; the rest of the mailbox is dead letters.
func TestB29_Stop(t *testing.T) {
	both(t, nil, func(l *kit, s sort) {
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
	// It stops itself, its child, and whom a capability names, but nobody else.
	l := newKit(t, nil)
	other, denied := l.spawn("other", newCounter()), l.spawn("denied", newCounter())
	g := l.spawn("guest", puppet(t, on(abi.KindStart, abi.AppendSpawn(nil, 0, "puppet", "x", nil, nil))).WithCapabilities(Capabilities{Stop: []string{"/user/oth?r"}}))
	if l.alive(g) {
		t.Error("a forged ref of a child was accepted")
	}
	g = l.spawn("guest", puppet(t).WithCapabilities(Capabilities{Stop: []string{"/user/oth?r"}}))
	l.say(g, script(now(abi.AppendStop(nil, other.uid, ""), abi.AppendStop(nil, denied.uid, ""), toProbe("x"))))
	l.say(g, script(now(abi.AppendStop(nil, g.uid, ""))))
	if l.alive(other) || !l.alive(denied) || l.alive(g) {
		t.Errorf("%v", l.Tree())
	}
}

// B30: children first, then the last turn, then the mailbox, then the parent, then the watchers.
func TestB30_OrderOfTheEnd(t *testing.T) {
	both(t, nil, func(l *kit, s sort) {
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
					l.t.Error("a mourner knew before the end")
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
	l := newKit(t, nil)
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
func TestB31_PoisonPill(t *testing.T) {
	both(t, nil, func(l *kit, s sort) {
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
func TestB32_Kill(t *testing.T) {
	for directive, want := range map[supervision.Directive][]string{
		0: {"1", "stop"}, supervision.Resume: {"1", "1"}, supervision.Restart: {"1", "0"}, supervision.Stop: {"1", "stop"},
	} {
		both(t, func(c Config) Config { return c.WithGuardian(supervision.Default().WithOtherwise(directive)) }, func(l *kit, s sort) {
			a := l.spawn("a", s.props(l.t))
			l.got = nil
			l.post(a, s.add(1))
			l.post(a, s.report)
			if err := l.Kill(a); err != nil {
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
func TestB33_GracefulStop(t *testing.T) {
	both(t, nil, func(l *kit, s sort) {
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
func (l *kit) drive(call func() error) error {
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
