package host

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// B01: props are immutable, may be shared, and are checked before there is an actor.
func TestB01_Props(t *testing.T) { everyManner(t, rowB01_Props) }

func rowB01_Props(t *testing.T) {
	l := newStage(t, nil)
	base := newCounter()
	limited := base.WithLimits(Limits{Mailbox: 1}).WithArgs(7)
	a, b := l.spawn("a", base), l.spawn("b", limited)
	for _, ref := range []Ref{a, a} {
		l.post(ref, 1)
	}
	l.post(b, 1)
	if err := l.Tell(b, 1); !errors.Is(err, ErrMailboxFull) {
		t.Error(err)
	}
	for _, c := range []struct {
		props Props
		why   string
	}{
		{Props{}, "neither an image nor a factory"},
		{Guest(puppetImage(t), "marionette"), `no actor type "marionette", it has puppet`},
		{base.WithChildren(Child{"x", base}, Child{"x", base}), `two children are called "x"`},
		{base.WithChildren(Child{"x", Props{}}), `child "x": `},
		{base.WithSignificant(true).WithLifetime(supervision.Permanent), "a permanent actor cannot be significant"},
	} {
		if _, err := l.Spawn("", c.props); !errors.Is(err, ErrBadProps) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v, want %s", err, c.why)
		}
	}
	if _, err := l.Spawn("", base.WithArgs(func() {})); err == nil {
		t.Error("arguments that are no CBOR were taken")
	}
}

// B02: every incarnation is a fresh instance; a factory must make one.
func TestB02_FreshInstances(t *testing.T) { everyManner(t, rowB02_FreshInstances) }

func rowB02_FreshInstances(t *testing.T) {
	l := newStage(t, nil)
	made := 0
	a := l.spawn("a", Native(func() Actor { made++; return &counter{} }))
	l.say(a, "crash")
	l.spawn("nil", Native(func() Actor { return nil }))
	e := l.raw(EventFailed)
	if made != 2 || len(e) != 2 || e[1].Failure.Kind != abi.FailureInit || e[1].Directive != supervision.Stop {
		t.Errorf("made %d, %v", made, e)
	}
	// One image, two actors, nothing shared.
	x, y := l.spawn("x", puppet(t)), l.spawn("y", puppet(t))
	l.post(x, sorts[1].add(3))
	l.post(y, sorts[1].report)
	l.run()
	l.wants("reply 0")
}

// B03: one message at a time, in the order of the mailbox; nothing is picked from behind. With
// many senders and several workers, and for an actor that blocks.
func TestB03_OneAtATime(t *testing.T) {
	s := newSystem(t, NewConfig("one").WithWorkers(4))
	const senders, each = 8, 200
	var inside, most, handled atomic.Int64
	last := map[uint64]uint64{} // no lock: the race detector looks
	a := must(s.Spawn("a", Func(func(ctx *Context, m Message) error {
		if n := inside.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer inside.Add(-1)
		var v [2]uint64
		if err := m.Decode(&v); err != nil {
			return err
		}
		if v[1] != last[v[0]]+1 {
			t.Errorf("%d of %d comes after %d", v[1], v[0], last[v[0]])
		}
		last[v[0]] = v[1]
		if v[1]%50 == 0 {
			ctx.Block() // another worker takes over what waits, but not this actor
			time.Sleep(time.Millisecond)
		}
		handled.Add(1)
		return nil
	})))(t)
	var group sync.WaitGroup
	for i := range uint64(senders) {
		group.Go(func() {
			for n := range uint64(each) {
				if err := s.Tell(a, [2]uint64{i, n + 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	waitFor(t, "all of them", func() bool { return handled.Load() == senders*each })
	if most.Load() != 1 {
		t.Errorf("%d at a time", most.Load())
	}
	// What an actor sends itself runs after its turn, behind what waits.
	l := newStage(t, nil)
	b := l.spawn("b", Func(func(ctx *Context, m Message) error {
		if m.Sender == l.probe {
			_ = ctx.Tell(ctx.Self(), "to myself")
		}
		return tellProbe(ctx, Raw(m.Payload))
	}))
	l.post(b, "one")
	l.post(b, "two")
	l.run()
	l.wants("message one", "message two", "message to myself", "message to myself")
}

// B04: a message that was not handled is an event, no failure.
func TestB04_Unhandled(t *testing.T) { everyManner(t, rowB04_Unhandled) }

func rowB04_Unhandled(t *testing.T) {
	l := newStage(t, nil)
	n := l.spawn("native", Func(func(*Context, Message) error { return ErrUnhandled }))
	g := l.spawn("guest", puppet(t))
	l.raw()
	l.post(n, "what?")
	l.post(g, script(now(abi.AppendUnhandled(nil))))
	l.run()
	events := l.raw(EventUnhandled, EventFailed, EventDeadLetter)
	if len(events) != 2 {
		t.Fatalf("%v", events)
	}
	for i, ref := range []Ref{n, g} {
		if e := events[i]; e.Kind != EventUnhandled || e.Ref != ref || e.Dead.Sender != l.probe.UID() || e.Dead.Recipient != ref.UID() {
			t.Errorf("%+v", e)
		}
	}
}

// B05: the start comes before the first message, again at every restart; failing there is a
// failure of initialisation, and stops.
func TestB05_Start(t *testing.T) { everyManner(t, rowB05_Start) }

func rowB05_Start(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := must(l.Spawn("a", s.props(l.t)))(l.t)
		l.post(a, s.report)
		l.run()
		l.equal("told", values(l.got), []string{"start", "0"})
		l.got = nil
		l.post(a, s.crash)
		l.post(a, s.report)
		l.run()
		if v := values(l.got); v[len(v)-2] != "start" || v[len(v)-1] != "0" {
			l.t.Errorf("%q", l.got)
		}
	})
	l := newStage(t, nil)
	l.spawn("native", Native(func() Actor { return &failsToStart{} }))
	l.spawn("guest", puppet(t, onTrap(abi.KindStart)))
	failed := l.raw(EventFailed)
	for _, e := range failed {
		if e.Failure.Kind != abi.FailureInit || e.Directive != supervision.Stop {
			t.Errorf("%v: %v", e.Failure, e.Directive)
		}
	}
	if len(failed) != 2 {
		t.Errorf("%v", failed)
	}
	if n := len(l.View().Tree().Children); n != 1 {
		t.Errorf("%v", l.View().Tree())
	}
}

type failsToStart struct{ counter }

func (failsToStart) Started(*Context) error { return errors.New("no database") }

// B06: before a restart the old instance hears of it, if it can still be called, also when
// no message of its own was the cause; its children are unwatched and stopped.
func TestB06_PreRestart(t *testing.T) { everyManner(t, rowB06_PreRestart) }

func rowB06_PreRestart(t *testing.T) {
	for _, c := range []struct {
		name  string
		props func(*testing.T) Props
		fail  any
		want  []string // what the failing one tells
		other string   // and its sibling
	}{
		{"error", sorts[0].props, "crash", []string{"stop", "start"}, "stop"},
		{"panic", sorts[0].props, "panic", []string{"start"}, "stop"},
		{"guest's error", puppetHooks, script(now(abi.AppendFail(nil, "no"))), []string{"pre_restart", "start"}, "pre_restart"},
		{"trap", puppetHooks, script(trap()), []string{"start"}, "pre_restart"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newStage(t, nil)
			p := l.spawn("p", Func(func(*Context, Message) error { return nil }).
				WithSupervision(supervision.Default().WithKind(supervision.AllForOne)).
				WithChildren(Child{"a", c.props(t)}, Child{"b", c.props(t)}))
			a := must(l.Lookup(p.Path() + "/a"))(t)
			l.got, l.mail = nil, nil
			l.say(a, c.fail)
			var tolds [2][]string
			for i, who := range []string{"a", "b"} {
				ref := must(l.Lookup(p.Path() + "/" + who))(t)
				for _, m := range l.mail {
					if m.Sender == ref {
						_, v, _ := strings.Cut(describe(m), " ")
						tolds[i] = append(tolds[i], v)
					}
				}
			}
			l.equal("a", tolds[0], c.want)
			l.equal("b", tolds[1], []string{c.other, "start"})
		})
	}
}

// B06: what the old instance watched of its own children is no news to the new one.
func TestB06_ARestartUnwatchesItsChildren(t *testing.T) {
	l := newStage(t, nil)
	p := l.spawn("p", Native(func() Actor { return &parentOfWatched{} }))
	first := must(l.Lookup(p.Path() + "/child"))(t)
	l.raw()
	l.say(p, "crash")
	l.equal("events", l.events(EventFailed, EventRestarted, EventStopped), []string{"failed p", "stopped child", "restarted p"})
	if second := must(l.Lookup(p.Path() + "/child"))(t); second == first {
		t.Error("the child was kept")
	}
}

// parentOfWatched has a child and watches it, and does not expect it to end.
type parentOfWatched struct{ counter }

func (*parentOfWatched) Started(ctx *Context) error { return watchesItsChild{}.Started(ctx) }

// B07: the new instance knows that it is one, and why.
func TestB07_PostRestart(t *testing.T) { everyManner(t, rowB07_PostRestart) }

func rowB07_PostRestart(t *testing.T) {
	l := newStage(t, nil)
	var causes []string
	n := l.spawn("native", Native(func() Actor { return &knowsWhy{told: &causes} }))
	l.say(n, "crash")
	l.equal("causes", causes, []string{"0 <nil>", "1 guest_error: crashed"})

	g := l.spawn("guest", puppet(t, on(abi.KindStart, abi.AppendForward(nil, 0, "/user/probe"))))
	l.say(g, script(now(abi.AppendFail(nil, "crashed"))))
	var starts []abi.Start
	for _, m := range l.mail {
		if m.Sender == g {
			var s abi.Start
			if err := abi.DecodeStart(&s, m.Payload); err != nil {
				t.Fatal(err)
			}
			starts = append(starts, s)
		}
	}
	if len(starts) != 2 || starts[0].Reason != "" || starts[1].Incarnation != 1 || !strings.Contains(starts[1].Reason, "crashed") {
		t.Errorf("%+v", starts)
	}
}

type knowsWhy struct {
	counter
	told *[]string
}

func (a *knowsWhy) Started(ctx *Context) error {
	why := "<nil>"
	if f := ctx.Cause(); f != nil {
		why = f.Kind.String() + ": " + f.Reason
	}
	*a.told = append(*a.told, string(rune('0'+ctx.Head().Incarnation()))+" "+why)
	return nil
}

// B08: the stop hook runs once, at the real end; what is sent from then on is a dead letter.
func TestB08_Stop(t *testing.T) { everyManner(t, rowB08_Stop) }

func rowB08_Stop(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.got = nil
		l.Stop(a)
		l.run()
		l.wants("message stop")
		if err := l.TellFrom(l.probe, a, s.add(1)); err == nil {
			l.t.Error("a message to the dead was accepted")
		}
	})
	l := newStage(t, nil)
	a := l.spawn("a", Native(func() Actor { return &lastWish{} }))
	l.raw()
	l.Stop(a)
	l.run()
	l.equal("its last wish", l.events(EventDeadLetter, EventStopped), []string{"dead_letter temp", "stopped a"})
}

// lastWish sends itself a message when it ends.
type lastWish struct{ counter }

func (lastWish) Stopped(ctx *Context) { _ = ctx.Tell(ctx.Self(), "go on") }

// B09: children can outlive a restart by choice; they are restarted with their parent.
func TestB09_ChildrenKept(t *testing.T) {
	for _, keep := range []bool{false, true} {
		l := newStage(t, func(c Config) Config {
			return c.WithGuardian(supervision.Default().WithKeepChildren(keep))
		})
		a := l.spawn("a", newCounter().WithChildren(Child{"child", newCounter()}))
		first := must(l.Lookup("/user/a/child"))(t)
		l.say(first, 5)
		l.raw()
		l.say(a, "crash")
		child := must(l.Lookup("/user/a/child"))(t)
		if (child == first) != keep {
			t.Errorf("keep %v: %v after %v", keep, child, first)
		}
		if keep && l.incarnation(child) != 1 {
			t.Error("it was kept and not restarted")
		}
		l.say(child, "get")
		l.wants("reply 0")
	}
}

// B10: a restart makes a new instance; ref, uid, watchers and mailbox stay, the failing
// message is gone, timers, the receive timeout and asks are, too.
func TestB10_RestartEffects(t *testing.T) { everyManner(t, rowB10_RestartEffects) }

func rowB10_RestartEffects(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		in := l.Inbox(0)
		defer in.Close()
		in.Watch(a)
		l.got = nil
		for _, v := range []any{s.add(1), s.crash, s.add(2), s.report} {
			l.post(a, v)
		}
		l.run()
		if v := values(l.got); v[len(v)-1] != "2" {
			l.t.Errorf("%q", l.got)
		}
		if _, told := in.TryReceive(); told || l.incarnation(a) != 1 || must(l.Lookup("/user/a"))(l.t) != a {
			l.t.Errorf("told %v, incarnation %d", told, l.incarnation(a))
		}
		l.Stop(a)
		l.run()
		if m, ok := in.TryReceive(); !ok || m.Sender != a {
			l.t.Errorf("the watch has not survived the restart: %v", m)
		}
	})
	l := newStage(t, nil)
	n := l.spawn("native", Func(func(ctx *Context, m Message) error {
		if m.Kind != abi.KindMessage {
			return tellProbe(ctx, m.Kind.String())
		}
		ctx.SetReceiveTimeout(5)
		return errors.Join(ctx.After(1, 5, 0, 1), ctx.Ask(l.probe, "hm", 1, 5), errors.New("crashed"))
	}))
	g := l.spawn("guest", puppet(t, on(abi.KindTimer, toProbe("timer")), on(abi.KindReceiveTimeout, toProbe("receive_timeout")), on(abi.KindAskTimeout, toProbe("ask_timeout"))))
	l.say(n, 1)
	l.say(g, script(now(abi.AppendTimer(nil, 1, 5, 0, nil), abi.AppendReceiveTimeout(nil, 1e6), abi.AppendAsk(nil, l.probe.UID(), "", 1, 1e6, nil, nil))))
	l.say(g, script(trap()))
	l.got = nil
	l.pass(1e9)
	l.wants()
	if n := l.clock.Pending(); n != 0 {
		t.Errorf("%d timers are left", n)
	}
}
