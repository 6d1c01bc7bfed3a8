//go:build !wasip1

package events_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/events"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// watcher notes what it hears.
type watcher struct {
	events events.Subscriptions
	topics pubsub.Topics
	notes  []string
}

var options events.Options

func (x *watcher) event(_ *actor.Context, e events.Event) error {
	if e.Path == "/user/fail" {
		return errors.New("failed")
	}
	x.notes = append(x.notes, fmt.Sprintf("%+v", e))
	return nil
}

func (x *watcher) Receive(ctx *actor.Context, msg *actor.Message) error {
	if mine, err := x.topics.Receive(ctx, msg); mine {
		return err
	}
	if mine, err := x.events.Receive(ctx, msg); mine {
		return err
	}
	switch what, rest, _ := strings.Cut(msg.Text(), " "); what {
	case "subscribe":
		x.events.Subscribe(ctx, rest, options, x.event)
	case "unsubscribe":
		x.events.Unsubscribe(ctx, rest)
	default:
		return actor.ErrUnhandled
	}
	return nil
}

func init() { actor.Register("watcher", func() actor.Actor { return &watcher{} }) }

type bench struct {
	*testing.T
	w   *actortest.World
	a   *actortest.Actor
	svc *actortest.Fake
	sub *actortest.Fake
	n   uint64
}

func start(t *testing.T, o events.Options) *bench {
	options = o
	b := &bench{T: t, w: actortest.NewWorld(t)}
	b.svc = b.w.Serve("events", nil)
	b.a = b.w.Spawn("watcher")
	return b
}

func (b *bench) subscribe(channel string) {
	b.Helper()
	b.w.Tell(b.a, actor.Text("subscribe "+channel))
	b.sub, b.n = b.svc.Open(nil), 0
	b.last().Answer(actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("later")
		w.Null()
		w.Text("subscription")
		w.Ref(b.sub.Ref())
	}))
}

func (b *bench) last() *actortest.Call { return b.svc.Calls()[len(b.svc.Calls())-1] }

// event sends what an event's value is made of: pairs of texts and numbers.
func (b *bench) event(from *actortest.Fake, topic string, missed uint64, value ...any) {
	b.n++
	from.Tell(b.a.Ref(), actor.Func(func(w *abi.Writer) {
		w.Array(2)
		w.Text("happened")
		w.Map(4)
		w.Text("n")
		w.Uint(b.n)
		w.Text("topic")
		w.Text(topic)
		w.Text("value")
		w.Map(len(value) / 2)
		for _, v := range value {
			switch v := v.(type) {
			case string:
				w.Text(v)
			case int:
				w.Int(int64(v))
			}
		}
		w.Text("missed")
		w.Uint(missed)
	}))
}

func (b *bench) expect(want ...string) {
	b.Helper()
	x := b.a.Actor().(*watcher)
	if got := strings.Join(x.notes, "\n"); got != strings.Join(want, "\n") {
		b.Errorf("%s\nwant %s", got, strings.Join(want, "\n"))
	}
	x.notes = nil
}

func TestEventsArrive(t *testing.T) {
	b := start(t, events.Options{Paths: []string{"/user/a", "/user/b/**"}, Window: 4, Queue: 5000, Overflow: events.DropNewest, AckWait: time.Minute})
	b.subscribe("lifecycle")
	want := `subscribe "\xa6gchannelilifecyclefwindow\x04equeue\x19\x13\x88hoverflowfnewesthack_wait\x1b\x00\x00\x00\r\xf8GX\x00epaths\x82g/user/aj/user/b/**"`
	if got := fmt.Sprintf("%s %q", b.last().Op, b.last().Args); got != want {
		t.Error(got)
	}
	b.event(b.sub, "lifecycle.failed", 2, "time", 1_000_000_007, "path", "/user/a", "type", "m/a", "incarnation", 3, "failure", "trap", "directive", "restart",
		"delay", 1_000_000, "failures", 4, "reason", "why", "later", "x")
	b.event(b.sub, "dead-letters.late", 0, "from", "/user/b", "kind", "reply", "bytes", 9)
	b.expect("{Channel:lifecycle.failed Time:1970-01-01 00:00:01.000000007 +0000 UTC Path:/user/a From: Kind: Bytes:0 Type:m/a Incarnation:3 Failure:trap Directive:restart Delay:1ms Failures:4 Reason:why Missed:2}",
		"{Channel:dead-letters.late Time:0001-01-01 00:00:00 +0000 UTC Path: From:/user/b Kind:reply Bytes:9 Type: Incarnation:0 Failure: Directive: Delay:0s Failures:0 Reason: Missed:0}")
	if calls := b.sub.Calls(); len(calls) != 1 || calls[0].Op != "ack" || string(calls[0].Args) != "\x02" {
		t.Errorf("%+v", calls)
	}
	b.event(b.sub, "lifecycle.failed", 0, "path", "/user/fail")
	if n := len(b.w.Failures()); n != 1 {
		t.Errorf("%d failures", n)
	}
}

// An event is not a topic's, and the other way round, so that an actor can have both.
func TestEventsAreNoTopics(t *testing.T) {
	b := start(t, events.Options{})
	topics := b.w.Serve("pubsub", nil)
	b.subscribe("unhandled")
	b.event(b.sub, "unhandled", 0, "path", "/user/a")
	if x := b.a.Actor().(*watcher); len(x.notes) != 1 {
		t.Errorf("%q", x.notes)
	}
	if n := len(b.sub.Calls()) + len(topics.Calls()); n != 0 {
		t.Errorf("%d orders: the subscription of another service was closed", n)
	}
	other := b.svc.Open(nil)
	b.event(other, "unhandled", 0)
	b.event(other, "unhandled", 0)
	if calls := other.Calls(); len(calls) != 1 || calls[0].Op != "close" {
		t.Errorf("%+v: one of an earlier incarnation goes on", calls)
	}
}

func TestEventsEnd(t *testing.T) {
	ended := ""
	b := start(t, events.Options{Ended: func(_ *actor.Context, reason string) error { ended = reason; return nil }})
	b.subscribe("lifecycle")
	over := actor.Func(func(w *abi.Writer) { w.Array(2); w.Text("over"); w.Text("too slow") })
	b.sub.Tell(b.a.Ref(), over)
	if ended != "too slow" {
		t.Error(ended)
	}
	b.subscribe("lifecycle")
	b.w.Tell(b.a, actor.Text("unsubscribe lifecycle"))
	if b.last().Op != "unsubscribe" || string(b.last().Args) != "\xa1gchannelilifecycle" {
		t.Errorf("%+v", b.last())
	}
	n := len(b.svc.Calls())
	b.w.Tell(b.a, actor.Text("unsubscribe lifecycle"))
	if len(b.svc.Calls()) != n {
		t.Error("there is nothing to end")
	}
	options.Ended = nil
	b.subscribe("lifecycle")
	b.sub.Tell(b.a.Ref(), over)
	if f := b.w.Failures(); len(f) != 1 || !strings.Contains(f[0].Failure.Error(), "events: a subscription has ended: too slow") {
		t.Errorf("%v", f)
	}
}

func TestEventsRefused(t *testing.T) {
	var got error
	b := start(t, events.Options{Then: func(_ *actor.Context, err error) error { got = err; return nil }})
	b.w.Tell(b.a, actor.Text("subscribe lifecycle"))
	b.last().Fail(service.Denied, "no")
	if !errors.Is(got, service.ErrDenied) {
		t.Error(got)
	}
	b.subscribe("lifecycle")
	if got != nil {
		t.Error(got)
	}
	options.Then = nil
	b.w.Tell(b.a, actor.Text("subscribe unhandled"))
	b.last().Fail(service.Denied, "no")
	if f := b.w.Failures(); len(f) != 1 {
		t.Errorf("%v", f)
	}
}
