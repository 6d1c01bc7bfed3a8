//go:build !wasip1

package pubsub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// reader notes what it gets of the pattern "a.>".
type reader struct {
	topics pubsub.Topics
	notes  []string
	held   []pubsub.Event
}

// decoded reads a text.
type decoded string

func (d *decoded) UnmarshalCBOR(r *abi.Reader) { *d = decoded(r.Text()) }

var options pubsub.Options

func (x *reader) note(format string, a ...any) { x.notes = append(x.notes, fmt.Sprintf(format, a...)) }

func (x *reader) event(ctx *actor.Context, e pubsub.Event) error {
	if e.Text() == "fail" {
		return errors.New("failed")
	}
	x.note("%s=%s missed %d %v", e.Topic, e.Text(), e.Missed, e.Retained)
	var d decoded
	if err := e.Decode(&d); err != nil || string(d) != e.Text() {
		x.note("decoded as %q: %v", d, err)
	}
	x.held = append(x.held, e)
	return nil
}

func (x *reader) Receive(ctx *actor.Context, msg *actor.Message) error {
	if mine, err := x.topics.Receive(ctx, msg); mine {
		return err
	}
	switch what, rest, _ := strings.Cut(msg.Text(), " "); what {
	case "subscribe":
		x.topics.Subscribe(ctx, rest, options, x.event)
	case "unsubscribe":
		x.topics.Unsubscribe(ctx, rest)
	case "done":
		for _, e := range x.held {
			if e.Topic == rest {
				e.Done(ctx)
			}
		}
	case "publish":
		then := func(ctx *actor.Context, r pubsub.Result, err error) error {
			x.note("%d %d %v", r.Taken, r.Missed, err)
			return nil
		}
		pubsub.Publish(ctx, rest, actor.Int(1), then)
		pubsub.Retain(ctx, rest, nil, then)
		pubsub.Tell(ctx, rest, actor.Text("x"))
		pubsub.Forget(ctx, rest, func(ctx *actor.Context, err error) error { x.note("forgotten %v", err); return nil })
	default:
		return actor.ErrUnhandled
	}
	return nil
}

func init() { actor.Register("reader", func() actor.Actor { return &reader{} }) }

// bench is a reader in a world with a fake service.
type bench struct {
	*testing.T
	w   *actortest.World
	a   *actortest.Actor
	svc *actortest.Fake
	sub *actortest.Fake
	n   uint64
}

func start(t *testing.T, o pubsub.Options) *bench {
	options = o
	b := &bench{T: t, w: actortest.NewWorld(t)}
	b.svc = b.w.Serve("pubsub", nil)
	b.a = b.w.Spawn("reader")
	return b
}

func (b *bench) subscribe(pattern string) {
	b.Helper()
	b.w.Tell(b.a, actor.Text("subscribe "+pattern))
	b.sub, b.n = b.svc.Open(nil), 0
	b.last().Answer(actor.Func(func(w *abi.Writer) { w.Map(1); w.Text("subscription"); w.Ref(b.sub.Ref()) }))
}

func (b *bench) last() *actortest.Call { return b.svc.Calls()[len(b.svc.Calls())-1] }

func (b *bench) event(from *actortest.Fake, n uint64, topic, value string, missed uint64) {
	from.Tell(b.a.Ref(), actor.Func(func(w *abi.Writer) {
		w.Array(2)
		w.Text("event")
		w.Map(5)
		w.Text("n")
		w.Uint(n)
		w.Text("later")
		w.Null()
		w.Text("topic")
		w.Text(topic)
		w.Text("value")
		w.Text(value)
		w.Text("missed")
		w.Uint(missed)
	}))
}

func (b *bench) ended(sub *actortest.Fake) {
	sub.Tell(b.a.Ref(), actor.Func(func(w *abi.Writer) {
		w.Array(2)
		w.Text("ended")
		w.Text("too slow")
	}))
}

func (b *bench) expect(what, want string) {
	b.Helper()
	x := b.a.Actor().(*reader)
	if got := strings.Join(x.notes, "; "); got != want {
		b.Errorf("%s: %q, want %q", what, got, want)
	}
	x.notes = nil
}

// acks are what the subscription was told.
func (b *bench) acks(want string) {
	b.Helper()
	var got []string
	for _, c := range b.sub.Calls() {
		got = append(got, fmt.Sprintf("%s%x", c.Op, c.Args))
	}
	if strings.Join(got, " ") != want {
		b.Errorf("the subscription was told %v, want %s", got, want)
	}
}

func TestEvents(t *testing.T) {
	b := start(t, pubsub.Options{Window: 4, AckWait: time.Minute, Overflow: pubsub.DropNewest, Queue: 5000, Retained: true})
	b.subscribe("a.>")
	want := `subscribe "\xa6gpatternca.>fwindow\x04equeue\x19\x13\x88hoverflowfnewesthack_wait\x1b\x00\x00\x00\r\xf8GX\x00hretained\xf5"`
	if got := fmt.Sprintf("%s %q", b.last().Op, b.last().Args); got != want {
		t.Error(got)
	}
	b.event(b.sub, 1, "a.b", "x", 0)
	b.event(b.sub, 2, "a.c", "fail", 0) // and the actor forgets what it was
	b.expect("after a failure", "")
	b.subscribe("a.>")
	for i := range uint64(5) {
		b.event(b.sub, i+1, "a.b", fmt.Sprint(i), i)
	}
	b.expect("events", "a.b=0 missed 0 false; a.b=1 missed 1 false; a.b=2 missed 2 false; a.b=3 missed 3 false; a.b=4 missed 4 false")
	b.acks("ack02 ack04")
}

// What a turn that failed was about does not come again, and does not hold the window back.
func TestResume(t *testing.T) {
	b := start(t, pubsub.Options{Window: 2})
	b.w.Supervise(func(*actortest.Actor, *abi.Failure) actor.Directive { return actor.Resume })
	b.subscribe("a.>")
	b.event(b.sub, 1, "a.b", "x", 0)
	b.event(b.sub, 4, "a.b", "y", 0) // 2 and 3 were lost
	b.acks("ack01 ack04")
}

// With Manual the window opens as far as everything is done.
func TestManual(t *testing.T) {
	b := start(t, pubsub.Options{Window: 1, Manual: true})
	b.subscribe("a.>")
	for i, s := range []string{"a.1", "a.2", "a.3"} {
		b.event(b.sub, uint64(i)+1, s, "x", 0)
	}
	b.acks("")
	for i, want := range []string{"", "", "ack02", "ack02", "ack02 ack03"} {
		if i > 0 {
			b.w.Tell(b.a, actor.Text("done "+[]string{"", "a.2", "a.1", "a.1", "a.3"}[i]))
		}
		b.acks(want)
	}
}

// Retained values come before events, page by page.
func TestRetained(t *testing.T) {
	b := start(t, pubsub.Options{Retained: true})
	page := func(first bool, next string, topics ...string) {
		b.last().Answer(actor.Func(func(w *abi.Writer) {
			w.Map(3)
			w.Text("subscription")
			w.Ref(b.sub.Ref())
			w.Text("retained")
			w.Array(len(topics))
			for _, s := range topics {
				w.Array(2)
				w.Text(s)
				w.Text("v")
			}
			if next == "" {
				w.Text("later")
				w.Null()
			} else {
				w.Text("next")
				w.Text(next)
			}
		}))
	}
	b.w.Tell(b.a, actor.Text("subscribe a.>"))
	b.sub = b.svc.Open(nil)
	page(true, "a.b", "a.a", "a.b")
	b.expect("first", "a.a=v missed 0 true; a.b=v missed 0 true")
	if c := b.last(); c.Op != "retained" || string(c.Field("after")) != "ca.b" || string(c.Field("pattern")) != "ca.>" {
		t.Errorf("%s %q", c.Op, c.Args)
	}
	page(false, "", "a.c")
	b.expect("second", "a.c=v missed 0 true")
	if n := len(b.svc.Calls()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// Subscriptions end: by wish, by another one, by the service, with an incarnation.
func TestEnds(t *testing.T) {
	var said []string
	b := start(t, pubsub.Options{Ended: func(_ *actor.Context, reason string) error { said = append(said, reason); return nil }})
	b.subscribe("a.>")
	old := b.sub
	b.subscribe("a.>")
	b.event(old, 1, "a.b", "late", 0)
	b.event(old, 2, "a.b", "later", 0)
	if calls := old.Calls(); len(calls) != 1 || calls[0].Op != "close" {
		t.Errorf("%+v", calls)
	}
	b.ended(old)
	b.event(b.sub, 1, "a.b", "x", 0)
	b.expect("of the second", "a.b=x missed 0 false")

	b.w.Tell(b.a, actor.Text("unsubscribe a.>"))
	b.w.Tell(b.a, actor.Text("unsubscribe a.>"))
	if c := b.last(); c.Op != "unsubscribe" || c.Wanted || string(c.Field("pattern")) != "ca.>" || len(b.svc.Calls()) != 3 {
		t.Errorf("%+v", c)
	}
	b.event(b.sub, 2, "a.b", "x", 0)
	b.expect("after the end", "")

	b.subscribe("a.>")
	b.ended(b.sub)
	if len(said) != 1 {
		t.Errorf("%v", said)
	}
	if len(b.w.Failures()) > 0 {
		t.Errorf("%+v", b.w.Failures())
	}
	options.Ended = nil
	b.subscribe("a.>")
	b.ended(b.sub)
	if f := b.w.Failures(); len(f) != 1 || !strings.Contains(f[0].Failure.Reason, "a subscription has ended: too slow") {
		t.Errorf("%+v", f)
	}
}

// A refusal fails the turn, unless somebody wants to hear of it.
func TestRefused(t *testing.T) {
	b := start(t, pubsub.Options{})
	b.w.Tell(b.a, actor.Text("subscribe a.>"))
	b.last().Fail(service.Denied, "no")
	if f := b.w.Failures(); len(f) != 1 || f[0].Failure.Reason != "denied: no" {
		t.Errorf("%+v", f)
	}
	var heard error
	options.Then = func(_ *actor.Context, err error) error { heard = err; return nil }
	b.w.Tell(b.a, actor.Text("subscribe a.>"))
	b.last().Fail(service.Quota, "full")
	if !errors.Is(heard, service.ErrQuota) {
		t.Error(heard)
	}
	b.subscribe("a.>")
	if heard != nil {
		t.Error(heard)
	}
}

func TestPublishing(t *testing.T) {
	b := start(t, pubsub.Options{})
	b.w.Tell(b.a, actor.Text("publish a.b"))
	var ops []string
	for _, c := range b.svc.Calls() {
		ops = append(ops, fmt.Sprintf("%s %q %v", c.Op, c.Args, c.Wanted))
	}
	want := `publish "\xa2etopicca.bevalue\x01" true; publish "\xa3etopicca.bevalue\xf6fretain\xf5" true; publish "\xa2etopicca.bevalueax" false; forget "\xa1etopicca.b" true`
	if got := strings.Join(ops, "; "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	calls := b.svc.Calls()
	calls[0].Answer(actor.Func(func(w *abi.Writer) {
		w.Map(3)
		w.Text("taken")
		w.Int(2)
		w.Text("later")
		w.Null()
		w.Text("missed")
		w.Int(1)
	}))
	calls[1].Fail(service.Quota, "full")
	calls[3].Answer(nil)
	b.expect("answers", "2 1 <nil>; 0 0 quota: full; forgotten <nil>")
}

// Messages of others are not events, whatever they look like.
func TestOthers(t *testing.T) {
	b := start(t, pubsub.Options{})
	b.subscribe("a.>")
	other := b.svc.Open(nil)
	b.event(other, 1, "a.b", "forged", 0)
	for _, raw := range []string{"\x01", "\x80", "\x82\x01\x02", "\x82eevent\xa0", "\x82eevent\x01", "\x82eended\x01", "\x82eevent\xa1an\x01"} {
		other.Tell(b.a.Ref(), actor.Raw(raw))
		b.sub.Tell(b.a.Ref(), actor.Raw(raw))
	}
	b.expect("forged", "")
	if f := b.w.Failures(); len(f) != 0 {
		t.Errorf("%+v", f)
	}
}
