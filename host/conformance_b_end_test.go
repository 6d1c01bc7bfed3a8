package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// B44: ending the system stops all actors, and tells when it has ended.
func TestB44_Terminate(t *testing.T) {
	l := newStage(t, nil)
	refs := []Ref{l.spawn("native", sorts[0].props(t)), l.spawn("guest", sorts[1].props(t))}
	l.raw()
	select {
	case <-l.Terminated():
		t.Fatal("it has ended")
	default:
	}
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-l.Terminated()
	if e := l.raw(); e[len(e)-1].Kind != EventTerminated || l.Cause() != nil {
		t.Errorf("%v, %v", e[len(e)-1], l.Cause())
	}
	for _, ref := range refs {
		if l.alive(ref) {
			t.Errorf("%v lives on", ref)
		}
	}
	if _, err := l.Spawn("late", newCounter()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := l.Tell(refs[0], 1); err == nil {
		t.Error("accepted")
	}
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// B45: a periodic timer never piles up and ends with the incarnation; one that is set again
// replaces the first.
func TestB45_PeriodicMessages(t *testing.T) { everyManner(t, rowB45_PeriodicMessages) }

func rowB45_PeriodicMessages(t *testing.T) {
	set := func(period time.Duration) []byte {
		return abi.AppendTimer(nil, 1, uint64(time.Second), uint64(period), encoded("tick"))
	}
	for name, p := range map[string]Props{
		"native": Func(func(ctx *Context, m Message) error {
			if m.Kind == abi.KindTimer {
				return tellProbe(ctx, Raw(m.Payload))
			}
			var v string
			if m.Decode(&v) == nil && v == "crash" {
				return errors.New("crashed")
			}
			return ctx.After(1, time.Second, time.Second, "tick")
		}),
		"guest": puppet(t, on(abi.KindTimer, toProbe("tick"))),
	} {
		t.Run(name, func(t *testing.T) {
			l := newStage(t, nil)
			a := l.spawn("a", p)
			start, crash := any(script(now(set(time.Second)))), any(script(trap()))
			if name == "native" {
				start, crash = "start", "crash"
			}
			l.say(a, start)
			for range 3 {
				l.pass(time.Second)
			}
			l.wants("message tick", "message tick", "message tick")
			l.clock.Advance(10 * time.Second) // it has no time to look
			l.run()
			l.wants("message tick")
			l.pass(time.Second / 2)
			l.say(a, start) // anew
			l.pass(time.Second / 2)
			l.wants()
			l.pass(time.Second / 2)
			l.wants("message tick")
			l.say(a, crash)
			l.pass(time.Minute)
			l.wants()
		})
	}
}

// B46: an actor for one question: its answer, its failure, its end or the deadline.
func TestB46_AskOnce(t *testing.T) {
	l := newStage(t, nil)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	silent := Func(func(*Context, Message) error { return nil })
	for _, c := range []struct {
		what  string
		ctx   context.Context
		props Props
		want  error
		text  string
	}{
		{"answers", nil, newCounter(), nil, "reply 0"},
		{"fails", nil, Func(func(*Context, Message) error { return errOutOfOrder }), errOutOfOrder, "out of order"},
		{"does not start", nil, Native(func() Actor { return &failsToStart{} }), ErrStopped, ""}, // it may have gone before anybody could ask
		{"stops", nil, Func(func(ctx *Context, _ Message) error { ctx.Stop(ctx.Self()); return nil }), ErrStopped, "stopped"},
		{"is silent", over, silent, ErrTimeout, "canceled"},
		{"is none", nil, Props{}, ErrBadProps, "neither"},
	} {
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		var m Message
		err := l.drive(func() (err error) { m, err = l.AskOnce(c.ctx, c.props, "get"); return err })
		var turn *TurnError
		if c.want == errOutOfOrder && errors.As(err, &turn) {
			c.want = turn
		}
		if !errors.Is(err, c.want) || c.want == nil && describe(m) != c.text || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, %v", c.what, m, err)
		}
		l.run()
		if n := len(l.View().Tree().Children); n != 1 {
			t.Errorf("%s: %v", c.what, l.View().Tree())
		}
	}
	err := l.drive(func() error {
		_, err := l.AskOnce(context.Background(), Func(func(ctx *Context, _ Message) error { return ctx.ReplyError("no") }), 1)
		return err
	})
	var refused *ReplyError
	if !errors.As(err, &refused) || refused.Reason != "no" {
		t.Error(err)
	}
}

var errOutOfOrder = errors.New("out of order")
