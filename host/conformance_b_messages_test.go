package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// B16: telling never waits and never panics; without a sender an answer goes to nobody.
func TestB16_Tell(t *testing.T) {
	l := newKit(t, nil)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		if !m.Sender.IsZero() {
			t.Errorf("from %v", m.Sender)
		}
		if err := ctx.Reply("answer"); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
		return nil
	}))
	g := l.spawn("guest", puppet(t))
	for _, ref := range []Ref{a, g} {
		if err := l.Tell(ref, script(now(abi.AppendSend(nil, 7, "", 0, 0, nil, encoded("to none"))))); err != nil {
			t.Fatal(err)
		}
	}
	l.run()
	l.equal("dead letters", l.letters(), []string{"no sender: answer", "unknown actor: to none"})
	if e := l.raw(EventFailed); len(e) != 0 {
		t.Errorf("%v", e)
	}
}

// B17: what an actor knows of itself and of those around it.
func TestB17_Context(t *testing.T) {
	l := newKit(t, nil)
	var self, parent, sender, child Ref
	var children []Ref
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		child, _ = ctx.Spawn("", newCounter())
		self, parent, sender, children = ctx.Self(), ctx.Parent(), m.Sender, ctx.Children()
		if ctx.System() != l.System || !ctx.Now().Equal(l.clock.Now()) {
			t.Error("another system")
		}
		return nil
	}))
	l.say(a, 1)
	if self != a || parent.Path() != "/user" || sender != l.probe || !slices.Equal(children, []Ref{child}) {
		t.Errorf("%v %v %v %v", self, parent, sender, children)
	}
}

// B18: a forwarded message keeps its sender and its correlation.
func TestB18_Forward(t *testing.T) {
	l := newKit(t, nil)
	for _, p := range []Props{
		Func(func(ctx *Context, _ Message) error { return ctx.Forward(must(l.Lookup("/user/end"))(t)) }),
		puppet(t),
	} {
		end := l.spawn("end", Func(func(ctx *Context, m Message) error { return ctx.Reply(m.Correlation) }))
		middle := l.spawn("", p)
		in := l.Inbox(0)
		if err := in.Ask(middle, script(now(abi.AppendForward(nil, end.uid, ""))), 9); err != nil {
			t.Fatal(err)
		}
		l.run()
		if m, ok := in.TryReceive(); !ok || m.Sender != end || m.Correlation != 9 || describe(m) != "reply 9" {
			t.Errorf("%+v", m)
		}
		in.Close()
		l.Stop(end)
		l.run()
	}
}

// B19: an ask has a deadline; a target that fails does not answer; a late answer is a dead letter.
func TestB19_Ask(t *testing.T) {
	for _, s := range []struct {
		name string
		ask  func(to Ref) (Props, any)
	}{
		{"native", func(to Ref) (Props, any) {
			return Func(func(ctx *Context, m Message) error {
				if m.Kind == abi.KindMessage {
					return ctx.Ask(to, "get", 7, time.Second)
				}
				if m.Correlation != 7 {
					t.Errorf("%+v", m)
				}
				return tellProbe(ctx, m.Kind.String())
			}), 1
		}},
		{"guest", func(to Ref) (Props, any) {
			return puppet(t, on(abi.KindReply, toProbe("reply")), on(abi.KindReplyError, toProbe("reply_error")), on(abi.KindAskTimeout, toProbe("ask_timeout"))),
				script(now(abi.AppendAsk(nil, to.uid, "", 7, 1e9, nil, encoded("get"))))
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			l := newKit(t, nil)
			var late func() error
			for i, target := range []Props{
				newCounter(),
				Func(func(ctx *Context, _ Message) error { return ctx.ReplyError("no") }),
				Func(func(*Context, Message) error { return errors.New("crashed") }),
				Func(func(_ *Context, m Message) error {
					late = func() error {
						e, _ := envelope("late")
						e.Kind, e.Correlation = abi.KindReply, m.Correlation
						return l.deliver(nil, m.Sender.uid, e)
					}
					return nil
				}),
			} {
				props, order := s.ask(l.spawn("", target))
				l.say(l.spawn("", props), order)
				l.pass(time.Second - 1)
				if early := []string{"message reply", "message reply_error", "", ""}[i]; early != "" {
					l.wants(early)
					l.pass(1)
					l.wants()
					continue
				}
				l.wants()
				l.pass(1)
				l.wants("message ask_timeout")
			}
			if err := late(); err != nil { // the asker's mailbox takes it; it is looked at there
				t.Error(err)
			}
			l.run()
			l.wants()
			l.equal("dead letters", l.letters(), []string{"late reply: late"})
		})
	}
	// From outside.
	l := newKit(t, nil)
	a := l.spawn("a", newCounter())
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Ask(over, a, "get"); !errors.Is(err, ErrTimeout) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.run()
	l.equal("dead letters", l.letters(), []string{"late reply: 0"})
}

// B20: the result of something outside is piped to an actor as a message, in any actor's name.
func TestB20_Pipe(t *testing.T) {
	l := newKit(t, nil)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		if m.Sender == ctx.Self() {
			return tellProbe(ctx, Raw(m.Payload))
		}
		self, sys := ctx.Self(), ctx.System()
		return l.drainless(func() error { return sys.TellFrom(self, self, "result") })
	}))
	l.say(a, "fetch")
	l.wants("message result")
}

// drainless runs f on another goroutine, as work outside of actors does, and waits for it.
func (l *kit) drainless(f func() error) error {
	done := make(chan error)
	go func() { done <- f() }()
	return <-done
}

// B21: an inbox sends, receives, and watches for code that is no actor.
func TestB21_Inbox(t *testing.T) {
	l := newKit(t, nil)
	in := l.Inbox(2)
	a := l.spawn("a", newCounter())
	in.Watch(a)
	for i := range 3 {
		if err := in.Ask(a, "get", uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	l.raw()
	l.Stop(a)
	l.PoisonPill(a)
	l.run()
	// The three questions were still in the mailbox.
	if m, ok := in.TryReceive(); !ok || m.Kind != abi.KindTerminated || m.Sender != a || len(l.raw(EventDeadLetter)) != 3 {
		t.Errorf("%+v", m)
	}
	b := l.spawn("b", newCounter())
	in.Watch(b)
	for i := range 3 {
		if err := in.Ask(b, "get", uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	l.run()
	l.Stop(b)
	l.run()
	ctx := context.Background()
	for _, want := range []string{"reply 0", "reply 0", "terminated stopped"} { // the third did not fit, the news always does
		m, err := in.Receive(ctx)
		if err != nil || describe(m) != want {
			t.Errorf("%v, %v; want %s", describe(m), err, want)
		}
	}
	l.equal("what did not fit", l.raw(EventDeadLetter)[0].Dead.Reason.String(), "mailbox full")
	c := l.spawn("c", newCounter())
	in.Watch(c)
	in.Unwatch(c)
	l.Stop(c)
	l.run()
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := in.Receive(over); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := in.Receive(ctx); waiting <- err }()
	in.Close()
	if err := <-waiting; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := l.Tell(in.Ref(), 1); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// B22: a path is resolved at each delivery: absolute, relative, "..".
func TestB22_Paths(t *testing.T) {
	l := newKit(t, nil)
	l.spawn("other", sinkTo(l))
	child := Child{"child", sinkTo(l)}
	native := l.spawn("native", Func(func(ctx *Context, m Message) error {
		var path string
		if err := m.Decode(&path); err != nil {
			return err
		}
		_ = ctx.TellPath(path, path)
		return nil
	}).WithChildren(child))
	guest := l.spawn("guest", puppet(t).WithChildren(child))
	for _, path := range []string{"/user/other", "wasm://test/user/other", "./child", "../other", "../native/child", "../../user/other"} {
		l.say(native, path)
		l.say(guest, script(now(sendPath(path, path))))
		l.wants("message "+path, "message "+path)
	}
	for _, path := range []string{"/user/nobody", "./nobody", "../../../..", ".", "./../other", "/user/other/"} {
		l.say(native, path)
		l.say(guest, script(now(sendPath(path, path))))
		l.wants()
	}
	if n := len(l.letters()); n != 12 {
		t.Errorf("%d dead letters", n)
	}
	// A new incarnation is found by the same path.
	l.Stop(must(l.Lookup("/user/other"))(t))
	l.run()
	l.spawn("other", sinkTo(l))
	l.say(native, "/user/other")
	l.wants("message /user/other")
	// With a uid it is that one or nobody.
	if err := l.TellPath(native.String(), "x"); err != nil {
		t.Error(err)
	}
	if err := l.TellPath("/user/other#1", "x"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// B23: '*' and '?' within an element; every match gets the message, the sender, too, if it matches.
func TestB23_Wildcards(t *testing.T) {
	l := newKit(t, nil)
	told := map[string]int{}
	note := Func(func(ctx *Context, m Message) error {
		var v any
		if m.Decode(&v) == nil && v == "say" {
			return ctx.TellPath("../w*", "hello")
		}
		told[ctx.Self().Path()]++
		return nil
	})
	for _, name := range []string{"w1", "w2", "w10", "x1"} {
		l.spawn(name, note.WithChildren(Child{"in", note}))
	}
	check := func(want ...string) {
		t.Helper()
		var got []string
		for path, n := range told {
			if n == 1 {
				got = append(got, path)
			}
		}
		slices.Sort(got)
		l.equal("told", got, want)
		clear(told)
	}
	tell := func(path string) {
		t.Helper()
		if err := l.TellPath(path, 1); err != nil {
			t.Error(err)
		}
		l.run()
	}
	tell("/user/w?")
	check("/user/w1", "/user/w2")
	tell("/user/w*/in")
	check("/user/w1/in", "/user/w10/in", "/user/w2/in")
	tell("/us*/?1/i*")
	check("/user/w1/in", "/user/x1/in")
	l.say(must(l.Lookup("/user/w1"))(t), "say")
	check("/user/w1", "/user/w10", "/user/w2")
	if err := l.TellPath("/user/y*", 1); !errors.Is(err, ErrUnknown) || len(l.letters()) != 1 {
		t.Errorf("%v, %v", err, l.letters())
	}
	if err := l.TellPath("/user/**", 1); err != nil { // no more than "*"
		t.Error(err)
	}
	l.run()
	l.got = nil
	check("/user/w1", "/user/w10", "/user/w2", "/user/x1")
	l.equal("selected", fmt.Sprint(len(l.Select("/user/w*")), len(l.Select("/user/y*"))), "3 0")
	// A guest reaches those that it may send to.
	g := l.spawn("guest", puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/w*"}}))
	l.say(g, script(now(sendPath("/user/?1", 1))))
	check("/user/w1")
	l.say(g, script(now(abi.AppendForward(nil, 0, "../w?"))))
	check("/user/w1", "/user/w2")
	l.raw()
	l.say(g, script(now(sendPath("/user/x?", 1), sendPath("/user/y?", 1))))
	check()
	var why []string
	for _, e := range l.raw(EventDeadLetter) {
		why = append(why, e.Dead.Reason.String())
	}
	l.equal("refused", why, []string{"denied by capability", "unknown actor"})
}
