package host

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/supervision"
)

// watcherSort is an actor of either sort that hands every end on to the probe, and watches
// and unwatches as it is told.
type watcherSort struct {
	name    string
	props   func(*testing.T) Props
	watch   func(Ref) any
	unwatch func(Ref) any
}

var watchers = []watcherSort{
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
				return ctx.Watch(newRef(abi.Ref(uid), ""))
			}
			ctx.Unwatch(newRef(abi.Ref(order["unwatch"]), ""))
			return nil
		})
	}, func(r Ref) any { return map[string]uint64{"watch": uint64(r.UID())} }, func(r Ref) any { return map[string]uint64{"unwatch": uint64(r.UID())} }},
	{"guest", func(t *testing.T) Props {
		return puppet(t, on(abi.KindTerminated, abi.AppendForward(nil, 0, "/user/probe")))
	}, func(r Ref) any { return script(now(abi.AppendWatch(nil, r.UID(), ""))) }, func(r Ref) any { return script(now(abi.AppendUnwatch(nil, r.UID(), ""))) }},
}

func eachWatcher(t *testing.T, f func(l *stage, w watcherSort, ref Ref)) {
	for _, w := range watchers {
		t.Run(w.name, func(t *testing.T) {
			l := newStage(t, nil)
			f(l, w, l.spawn("watcher", w.props(t)))
		})
	}
}

// B11: a watcher learns of the real end, not of restarts; also of one that came before; the
// order of registration and death does not matter.
func TestB11_DeathWatch(t *testing.T) { everyManner(t, rowB11_DeathWatch) }

func rowB11_DeathWatch(t *testing.T) {
	eachWatcher(t, func(l *stage, w watcherSort, ref Ref) {
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
		if err := l.Operate().Kill(failing); err != nil {
			l.t.Fatal(err)
		}
		l.run()
		l.wants("message failed: killed: killed")
	})
}

// B12: watching twice is watching once; watching again after the end is told again.
func TestB12_RepeatedWatch(t *testing.T) { everyManner(t, rowB12_RepeatedWatch) }

func rowB12_RepeatedWatch(t *testing.T) {
	eachWatcher(t, func(l *stage, w watcherSort, ref Ref) {
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
func TestB13_Unwatch(t *testing.T) { everyManner(t, rowB13_Unwatch) }

func rowB13_Unwatch(t *testing.T) {
	eachWatcher(t, func(l *stage, w watcherSort, ref Ref) {
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
	// The news is in the mailbox for certain: the watcher is behind a stop of a child of its own.
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	var box *actor
	w := l.spawn("w", Func(func(ctx *Context, m Message) error {
		var v string
		if m.Kind == abi.KindTerminated || m.Decode(&v) != nil {
			return tellProbe(ctx, "too late")
		}
		if v == "watch" {
			return ctx.Watch(a)
		}
		if box.box.Len() != 1 {
			t.Errorf("%d wait", box.box.Len())
		}
		ctx.Unwatch(a)
		return nil
	}))
	box = l.table.Get(w.UID())
	l.say(w, "watch")
	box.post(nil, sysmail.Msg{Kind: sysmail.Suspend})
	l.post(w, "unwatch")
	l.Stop(a)
	l.run()
	box.post(nil, sysmail.Msg{Kind: sysmail.Unsuspend})
	l.run()
	l.wants()
}

// B14: the news of the end comes behind everything that the dead actor had sent before.
func TestB14_TerminatedComesLast(t *testing.T) { everyManner(t, rowB14_TerminatedComesLast) }

func rowB14_TerminatedComesLast(t *testing.T) {
	eachWatcher(t, func(l *stage, w watcherSort, ref Ref) {
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

// B15: an end that was not handled is a failure of the watcher; by default it stops.
func TestB15_DeathPact(t *testing.T) { everyManner(t, rowB15_DeathPact) }

func rowB15_DeathPact(t *testing.T) {
	for _, w := range []Props{
		Func(func(ctx *Context, m Message) error {
			if m.Kind == abi.KindTerminated {
				return ErrUnhandled
			}
			return ctx.Watch(newRef(abi.Ref(m.Correlation), ""))
		}),
		puppet(t, on(abi.KindTerminated, abi.AppendUnhandled(nil))),
	} {
		l := newStage(t, nil)
		a, ref := l.spawn("a", newCounter()), l.spawn("w", w)
		in := l.Inbox(0)
		defer in.Close()
		if err := in.Ask(ref, script(now(abi.AppendWatch(nil, a.UID(), ""))), uint64(a.UID())); err != nil {
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
