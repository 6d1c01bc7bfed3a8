package host

import (
	"context"
	"errors"
	"slices"
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
		return errors.Join(ctx.Identify("../a2", 1, time.Second), ctx.Identify("../a1", 2, time.Second), ctx.Identify("../a*", 3, time.Second))
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

// B26: a pattern cannot be watched, asked or stopped; for actors in Go it is no ref.
func TestB26_PatternsAreOnlySentTo(t *testing.T) { everyManner(t, rowB26_PatternsAreOnlySentTo) }

func rowB26_PatternsAreOnlySentTo(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	g := l.spawn("guest", puppet(t, on(abi.KindTerminated, toProbe("terminated")), on(abi.KindReply, toProbe("reply"))))
	l.say(g, script(now(abi.AppendWatch(nil, 0, "/user/a*"), abi.AppendStop(nil, 0, "/user/a*"), abi.AppendAsk(nil, 0, "/user/a*", 1, 1e9, nil, encoded("get")))))
	if !l.alive(a) {
		t.Error("stopped by a pattern")
	}
	l.Stop(a)
	l.run()
	l.wants()
	l.equal("dead letters", l.letters(), []string{"unknown actor: <nil>", "unknown actor: <nil>", "unknown actor: get"})
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
			l.say(a, Marked{s.other, NoInfluence})
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
		l.say(g, script(now(abi.AppendSend(nil, a.uid, "", 0, flags, nil, script()))))
		l.pass(4 * time.Millisecond)
		l.wants(want...)
	}
}
