package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
)

// B16: telling never waits and never panics; without a sender an answer goes to nobody.
func TestB16_Tell(t *testing.T) { everyManner(t, rowB16_Tell) }

func rowB16_Tell(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		if !m.Sender.IsZero() {
			t.Errorf("from %v", m.Sender)
		}
		if err := ctx.Reply("answer"); err != nil { // a dead letter, and no failure of this actor
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
	l := newStage(t, nil)
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
func TestB18_Forward(t *testing.T) { everyManner(t, rowB18_Forward) }

func rowB18_Forward(t *testing.T) {
	l := newStage(t, nil)
	for _, p := range []Props{
		Func(func(ctx *Context, _ Message) error { return ctx.Forward(must(l.Lookup("/user/end"))(t)) }),
		puppet(t),
	} {
		end := l.spawn("end", Func(func(ctx *Context, m Message) error { return ctx.Reply(m.Correlation) }))
		middle := l.spawn("", p)
		in := l.Inbox(0)
		if err := in.Ask(middle, script(now(abi.AppendForward(nil, end.UID(), ""))), 9); err != nil {
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
func TestB19_Ask(t *testing.T) { everyManner(t, rowB19_Ask) }

func rowB19_Ask(t *testing.T) {
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
				script(now(abi.AppendAsk(nil, to.UID(), "", 7, 1e9, nil, encoded("get"))))
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			l := newStage(t, nil)
			var late func() error
			for i, target := range []Props{
				newCounter(),
				Func(func(ctx *Context, _ Message) error { return ctx.ReplyError("no") }),
				Func(func(*Context, Message) error { return errors.New("crashed") }),
				Func(func(_ *Context, m Message) error {
					late = func() error {
						e, _ := message.Envelope("late")
						e.Kind, e.Correlation = abi.KindReply, m.Correlation
						return l.deliver(nil, m.Sender.UID(), e)
					}
					return nil
				}),
			} {
				props, order := s.ask(l.spawn("", target))
				l.say(l.spawn("", props), order)
				l.pass(time.Second - time.Microsecond)
				// One whose turn fails is not an answer to be waited for.
				if early := []string{"message reply", "message reply_error", "message reply_error", ""}[i]; early != "" {
					l.wants(early)
					l.pass(time.Microsecond)
					l.wants()
					continue
				}
				l.wants()
				l.pass(time.Microsecond)
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
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Ask(over, a, Marked{Value: "get", Marks: Lasting}); !errors.Is(err, ErrTimeout) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.run()
	l.equal("dead letters", l.letters(), []string{"late reply: 0"})
}

// B20: the result of something outside, which is ready after the turn, is piped to an actor as a
// message, in any actor's name; so is its error. The actor handles others meanwhile.
func TestB20_Pipe(t *testing.T) {
	l := newStage(t, nil)
	other := l.spawn("other", newCounter())
	work := make(chan error) // what has become of the work
	piped := make(chan error)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		var v any
		if err := m.Decode(&v); err != nil {
			return err
		}
		if v == "fetch" {
			self, sys := ctx.Self(), ctx.System()
			go func() {
				if err := <-work; err != nil {
					piped <- sys.TellFrom(self, self, err.Error())
				} else {
					piped <- sys.TellFrom(other, self, "result")
				}
			}()
			return nil
		}
		return tellProbe(ctx, fmt.Sprint(v, " from ", m.Sender.Name()))
	}))
	l.say(a, "fetch")
	l.say(a, "meanwhile")
	l.wants("message meanwhile from probe")
	for _, c := range []struct {
		err  error
		want string
	}{{nil, "message result from other"}, {errors.New("no such thing"), "message no such thing from a"}} {
		work <- c.err
		if err := <-piped; err != nil {
			t.Error(err)
		}
		l.run()
		l.wants(c.want)
		l.say(a, "fetch")
	}
	// Of one that has gone it is a dead letter, and the error says so.
	l.Stop(a)
	l.run()
	work <- nil
	if err := <-piped; !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// B21: an inbox sends, receives, and watches for code that is not an actor.
func TestB21_Inbox(t *testing.T) {
	l := newStage(t, nil)
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
	// The three questions were still in the mailbox; there is room for two answers.
	for i := range 2 {
		if m, ok := in.TryReceive(); !ok || m.Correlation != uint64(i+1) || !errors.Is(m.Err(), ErrStopped) {
			t.Errorf("%+v", m)
		}
	}
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
