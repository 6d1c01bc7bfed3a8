package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// B24: every actor is identified without its doing, in its turn; a path that names nobody is
// answered in the negative, a pattern that matches nobody is not.
func TestB24_Identify(t *testing.T) { everyManner(t, rowB24_Identify) }

func rowB24_Identify(t *testing.T) {
	l := newStage(t, nil)
	a, b := l.spawn("a1", newCounter()), l.spawn("a2", puppet(t))
	in := l.Inbox(0)
	defer in.Close()
	if n := in.Identify("/user/a?", 5); n != 2 {
		t.Errorf("%d asked", n)
	}
	l.run()
	var who []Ref
	for m, ok := in.TryReceive(); ok; m, ok = in.TryReceive() {
		if m.Kind != abi.KindReply || m.Correlation != 5 {
			t.Errorf("%+v", m)
		}
		who = append(who, m.Sender)
	}
	if len(who) != 2 || !slices.Contains(who, a) || !slices.Contains(who, b) {
		t.Errorf("%v", who)
	}
	in.Identify("/user/b?", 6)
	in.Identify("/user/b", 7)
	l.run()
	if m, _ := in.TryReceive(); m.Kind != abi.KindReplyError || m.Correlation != 7 {
		t.Errorf("%+v", m)
	}
	// What it was sent before is handled before it answers; what is drained answers, too.
	l.post(a, "get")
	in.Identify("/user/a1", 8)
	l.Stop(a)
	l.run()
	if m, _ := in.TryReceive(); m.Kind != abi.KindReplyError || m.Correlation != 8 {
		t.Errorf("%+v", m)
	}
	if _, more := in.TryReceive(); more {
		t.Error("answered twice")
	}
	// An actor asks.
	var answers []string
	asker := l.spawn("asker", Func(func(ctx *Context, m Message) error {
		if m.Kind != abi.KindMessage {
			answers = append(answers, m.Kind.String()+" "+m.Sender.Name())
			return nil
		}
		return errors.Join(ctx.At("../a2").Identify(1, time.Second), ctx.At("../a1").Identify(2, time.Second), ctx.At("../a*").Identify(3, time.Second))
	}))
	l.say(asker, 1)
	slices.Sort(answers)
	l.equal("answers", answers, []string{"reply a2", "reply_error ", "reply_error "})
}

// B25: one ref for a path, or the reason why not.
func TestB25_ResolveOne(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	var got Ref
	err := l.drive(func() (err error) { got, err = l.Identify(context.Background(), "/user/a"); return err })
	if err != nil || got != a {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := l.Identify(context.Background(), "/user/b"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Identify(over, "/user/a"); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
}

// B26: nobody is stopped or asked by a pattern. Watching by one is watching all that match, by their
// refs: now, or in future as well.
func TestB26_Patterns(t *testing.T) { everyManner(t, rowB26_Patterns) }

func rowB26_Patterns(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	g := l.spawn("guest", puppet(t, on(abi.KindTerminated, toProbe("terminated")), on(abi.KindReply, toProbe("reply"))))
	l.say(g, script(now(abi.AppendStop(nil, 0, "/user/a*"), abi.AppendAsk(nil, 0, "/user/a*", 1, 1e9, nil, encoded("get")))))
	if !l.alive(a) {
		t.Error("stopped by a pattern")
	}
	l.wants()
	l.equal("dead letters", l.letters(), []string{"unknown actor: <nil>", "unknown actor: get"})
}

func TestB26_WatchingByPatterns(t *testing.T) { everyManner(t, rowB26_WatchingByPatterns) }

func rowB26_WatchingByPatterns(t *testing.T) {
	for _, s := range []struct {
		name  string
		props Props
		do    func(op, path string) any
	}{
		{"native", Func(func(ctx *Context, m Message) error {
			if m.Kind == abi.KindTerminated {
				return tellProbe(ctx, "terminated")
			}
			var w []string
			if m.Decode(&w) != nil {
				return nil
			}
			path, future := strings.CutPrefix(w[1], "+")
			switch {
			case w[0] == "unwatch":
				ctx.At(path).Unwatch()
			case future:
				_, _ = ctx.At(path).Watch(PresentAndFuture)
			default:
				_, _ = ctx.At(path).Watch(Present)
			}
			return nil
		}), func(op, path string) any { return []string{op, path} }},
		{"guest", puppet(t, on(abi.KindTerminated, toProbe("terminated"))), func(op, path string) any {
			if op == "unwatch" {
				return script(now(abi.AppendUnwatch(nil, 0, "+"+path)))
			}
			return script(now(abi.AppendWatch(nil, 0, path)))
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			l := newStage(t, nil)
			w := l.spawn("watcher", s.props)
			end := func(name string) {
				t.Helper()
				ref, err := l.Lookup("/user/" + name)
				if err != nil {
					t.Fatal(err)
				}
				l.Stop(ref)
				l.run()
			}
			for _, name := range []string{"a1", "a2", "b1"} {
				l.spawn(name, newCounter())
			}
			for _, path := range []string{"/user/a*", "/user/a*", "../a1"} {
				l.say(w, s.do("watch", path))
			}
			l.spawn("a3", newCounter()) // later, and not wanted
			for _, name := range []string{"a1", "a2", "a3", "b1"} {
				end(name)
			}
			l.wants("message terminated", "message terminated")

			l.spawn("c1", newCounter())
			for range 2 { // now and later, told once
				l.say(w, s.do("watch", "+/user/c?"))
			}
			l.spawn("c2", newCounter())
			l.spawn("c20", newCounter())
			for _, name := range []string{"c1", "c2", "c20"} {
				end(name)
			}
			l.wants("message terminated", "message terminated")
			l.spawn("c1", newCounter()) // another of the name
			end("c1")
			l.wants("message terminated")
			if err := l.System.Operate().Restart(w); err != nil { // watches survive
				t.Fatal(err)
			}
			l.run()
			l.spawn("c3", newCounter())
			end("c3")
			l.wants("message terminated")
			l.spawn("c4", newCounter())
			l.say(w, s.do("unwatch", "/user/c?"))
			end("c4")
			l.spawn("c5", newCounter())
			end("c5")
			l.wants()
			l.Stop(w)
			l.run()
			if n := l.lookouts.Len(); n != 0 {
				t.Errorf("%d patterns are left", n)
			}
		})
	}
}

// B27: a receive timeout comes after a time without messages, and again; every message begins
// the time anew; 0 turns it off.
func TestB27_ReceiveTimeout(t *testing.T) { everyManner(t, rowB27_ReceiveTimeout) }

func rowB27_ReceiveTimeout(t *testing.T) {
	const ms = time.Millisecond
	for _, s := range []struct {
		name  string
		props Props
		set   func(time.Duration) any
		other any
	}{
		{"native", Func(func(ctx *Context, m Message) error {
			if m.Kind == abi.KindReceiveTimeout {
				return tellProbe(ctx, "idle")
			}
			var d int
			if m.Decode(&d) == nil {
				ctx.SetReceiveTimeout(time.Duration(d))
			}
			return nil
		}), func(d time.Duration) any { return int(d) }, "other"},
		{"guest", puppet(t, on(abi.KindReceiveTimeout, toProbe("idle"))),
			func(d time.Duration) any { return script(now(abi.AppendReceiveTimeout(nil, uint64(d)))) }, script()},
	} {
		t.Run(s.name, func(t *testing.T) {
			l := newStage(t, nil)
			a := l.spawn("a", s.props)
			l.say(a, s.set(10*ms))
			l.pass(10*ms - time.Microsecond)
			l.wants()
			l.pass(time.Microsecond)
			l.wants("message idle")
			l.pass(10 * ms)
			l.wants("message idle")
			l.pass(6 * ms)
			l.say(a, s.other)
			l.pass(6 * ms)
			l.wants()
			l.pass(4 * ms)
			l.wants("message idle")

			// B28: a message marked so does not begin the time anew.
			l.pass(6 * ms)
			l.say(a, Marked{Value: s.other, Marks: NoInfluence})
			l.pass(4 * ms)
			l.wants("message idle")

			l.say(a, s.set(0))
			l.pass(time.Hour)
			l.wants()
		})
	}
}

// B28: what a guest marks so does not begin the receiver's time anew either.
func TestB28_NotInfluenceReceiveTimeout(t *testing.T) {
	everyManner(t, rowB28_NotInfluenceReceiveTimeout)
}

func rowB28_NotInfluenceReceiveTimeout(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", puppet(t, on(abi.KindStart, abi.AppendReceiveTimeout(nil, 10e6)), on(abi.KindReceiveTimeout, toProbe("idle"))))
	g := l.spawn("guest", puppet(t))
	for flags, want := range map[uint64][]string{abi.FlagNoInfluence: {"message idle"}, 0: nil} {
		l.say(a, script()) // from here
		l.pass(6 * time.Millisecond)
		l.say(g, script(now(abi.AppendSend(nil, a.UID(), "", 0, flags, nil, script()))))
		l.pass(4 * time.Millisecond)
		l.wants(want...)
	}
	// So it is with what Go code marks, also if it comes by way of another actor.
	by := l.spawn("by", Func(func(ctx *Context, _ Message) error { return ctx.Forward(a) }))
	for _, to := range []Ref{a, by} {
		for _, v := range []any{script(), Marked{Value: script(), Marks: NoInfluence}} {
			l.say(a, script()) // from here
			l.pass(6 * time.Millisecond)
			l.say(to, v)
			l.pass(4 * time.Millisecond)
			if _, marked := v.(Marked); marked {
				l.wants("message idle")
			} else {
				l.wants()
			}
		}
	}
}
