//go:build !wasip1

package flow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	guestflow "github.com/wasmactors/wasmactors/guest-sdk/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
)

var (
	from, to  actor.Ref // of the test that runs
	collected []string
	ended     []error
	crash     bool
)

func collect[T any]() flow.Sink[T] {
	return flow.Drain(func(*flow.Graph) (func(T) error, func(error)) {
		return func(v T) error { collected = append(collected, fmt.Sprint(v)); return nil }, func(err error) { ended = append(ended, err) }
	})
}

func numbers(n int) flow.Source[int64] {
	return flow.Map(flow.Range(1, n), func(n int) int64 { return int64(n) })
}

func init() {
	stream := func(name string, s func() flow.Stream) {
		guestflow.Register(name, func(*actor.Context) flow.Stream { return s() })
	}
	double := func(n int64) int64 { return 2 * n }
	stream("numbers", func() flow.Stream { return flow.Serve("numbers", numbers(100), flow.Ints) })
	stream("doubler", func() flow.Stream {
		return flow.To(flow.Map(flow.TakeFrom(from, "numbers", flow.Ints, flow.Window{}), double), flow.GiveTo(to, "doubled", flow.Ints))
	})
	stream("collector", func() flow.Stream {
		taken := flow.FlatConcat(flow.Take(flow.Offers(4), 1), func(o flow.Offer) flow.Source[int64] {
			return flow.TakeFrom(o.From, o.Name, flow.Ints, flow.Window{})
		})
		return flow.To(taken, collect[int64]())
	})
	stream("asker", func() flow.Stream {
		return flow.To(guestflow.Ask(numbers(3), 1, to, time.Second, flow.Ints, flow.Texts), collect[string]())
	})
	stream("teller", func() flow.Stream { return flow.To(numbers(3), guestflow.Tell(to, flow.Ints, actor.Text("end"))) })
	stream("inbox", func() flow.Stream {
		return flow.To(guestflow.Ask(flow.Inbox(1, flow.Block, flow.Ints), 1, to, time.Minute, flow.Ints, flow.Ints), collect[int64]())
	})
	stream("fails", func() flow.Stream {
		return flow.To(flow.Failed[int64](errors.New("broken")), guestflow.Tell(to, flow.Ints, nil))
	})
	stream("ticker", func() flow.Stream { return flow.To(flow.Tick(time.Second, time.Second, "tick"), collect[string]()) })
	stream("middle", func() flow.Stream {
		src := flow.TakeFrom(from, "numbers", flow.Ints, flow.Window{})
		return flow.Serve("middle", flow.Map(src, func(n int64) int64 {
			if n == 50 && crash {
				panic("boom")
			}
			return n
		}), flow.Ints)
	})
	stream("taker", func() flow.Stream {
		return flow.To(flow.TakeFrom(to, "middle", flow.Ints, flow.Window{}), collect[int64]())
	})
	stream("entries", func() flow.Stream {
		return flow.To(flow.Map(guestflow.Entries(kv.Store{}, kv.Query{Prefix: "a"}), func(e kv.Entry) string { return e.Key }), collect[string]())
	})
	stream("lines", func() flow.Stream {
		return flow.To(flow.Lines(guestflow.Read(from, time.Second), 100), collect[string]())
	})
	stream("first-line", func() flow.Stream {
		return flow.To(flow.Take(flow.Lines(guestflow.Read(from, time.Second), 100), 1), collect[string]())
	})
	stream("events", func() flow.Stream {
		body := guestflow.Body(&httpx.Request{URL: "http://x/"}, time.Second)
		return flow.To(flow.Events(flow.Lines(body, 100)), collect[flow.Event]())
	})
	stream("topic", func() flow.Stream {
		return flow.To(guestflow.Topic("news/#", 2, pubsub.Options{}, pubsub.Event.Text), collect[string]())
	})
}

func world(t *testing.T) *actortest.World {
	t.Helper()
	from, to, collected, ended, crash = 0, 0, nil, nil, false
	w := actortest.NewWorld(t)
	w.Supervise(func(*actortest.Actor, *abi.Failure) actor.Directive { return actor.StopChild })
	return w
}

func came(t *testing.T, want string, err string) {
	t.Helper()
	if got := strings.Join(collected, " "); got != want {
		t.Errorf("came %s, want %s", got, want)
	}
	if err == "-" && len(ended) != 0 || err != "-" && (len(ended) != 1 || !strings.Contains(fmt.Sprint(ended[0]), err)) {
		t.Errorf("ended with %v, want %s", ended, err)
	}
}

// N18, N02: three guests, each with a part of a stream.
func TestN18_GuestsInARow(t *testing.T) {
	w := world(t)
	from = w.Spawn("numbers").Ref()
	to = w.Spawn("collector").Ref()
	w.Spawn("doubler")
	if len(collected) != 100 || collected[99] != "200" || len(ended) != 1 || ended[0] != nil {
		t.Fatalf("%v %v", collected, ended)
	}
	if got := fmt.Sprint(w.Actors()); got != "[/user/numbers]" { // the others have come to their end
		t.Error(got)
	}
	for _, s := range w.Dead() { // credit that came late is no loss
		if s.Header(abi.HeaderSuppressed) == "" {
			t.Errorf("a dead letter: %v", s)
		}
	}
}

func TestN18_GuestsAskAndTell(t *testing.T) {
	w := world(t)
	p := w.Probe("peer")
	to = p.Ref()
	w.Spawn("asker")
	for _, n := range []actor.Int{1, 2} {
		p.Expect(n)
		p.Reply(actor.Text(fmt.Sprint("#", n)))
	}
	p.Expect(actor.Int(3))
	p.ReplyError("no room")
	came(t, "#1 #2", "no room")
	w = world(t)
	p = w.Probe("peer")
	to = p.Ref()
	w.Spawn("teller")
	for _, n := range []actor.Int{1, 2, 3} {
		p.Expect(n)
	}
	p.Expect(actor.Text("end"))
	a := w.Spawn("fails")
	if s := p.ExpectMatch("a failure", func(s actortest.Sent) bool { return s.Text() == "broken" }); s.Header(abi.HeaderFailure) != "broken" {
		t.Error("without the header")
	}
	w.Advance(0)
	if !a.Ended() || len(w.Failures()) != 1 {
		t.Errorf("ended: %v, %v", a.Ended(), w.Failures())
	}
}

func TestN18_InboxOfAGuest(t *testing.T) {
	w := world(t)
	p, gate := w.Probe("sender"), w.Probe("gate")
	to = gate.Ref()
	in := w.Spawn("inbox")
	p.Tell(in.Ref(), actor.Int(1))
	gate.Expect(actor.Int(1))
	p.Ask(in.Ref(), actor.Int(2), time.Minute)
	p.Ask(in.Ref(), actor.Int(3), time.Minute)
	p.ExpectKind(actortest.ReplyError) // there is no room for the third one
	gate.Reply(actor.Int(10))
	gate.Expect(actor.Int(2))
	p.ExpectKind(actortest.Reply) // the second one was taken
	p.Tell(in.Ref(), actor.Raw(flow.EndOf("")))
	gate.Reply(actor.Int(20))
	came(t, "10 20", "nil")
}

func TestTimersOfAGuest(t *testing.T) {
	w := world(t)
	a := w.Spawn("ticker")
	w.Advance(3 * time.Second)
	came(t, "tick tick tick", "-")
	w.Stop(a)
}

// N05: the crash of a guest in the middle ends the stream on both sides.
func TestN05_CrashOfAGuest(t *testing.T) {
	w := world(t)
	crash = true
	source := w.Spawn("numbers")
	from = source.Ref()
	to = w.Spawn("middle").Ref()
	w.Spawn("taker")
	if len(collected) < 20 || len(collected) >= 50 || len(ended) != 1 || !strings.Contains(fmt.Sprint(ended[0]), "the actor has stopped") {
		t.Errorf("%v %v", collected, ended)
	}
	if source.Ended() {
		t.Error("the source has ended, too")
	}
}

func TestSourcesOfServices(t *testing.T) {
	w := world(t)
	asked := 0
	w.Serve("kv", func(c *actortest.Call) {
		asked++
		n := asked
		c.Answer(actor.Func(func(w *abi.Writer) {
			w.Map(2 - n/3)
			w.Text("entries")
			w.Array(2)
			for i := range 2 {
				w.Map(1)
				w.Text("key")
				w.Text(fmt.Sprintf("a%d%d", n, i))
			}
			if n < 3 {
				w.Text("cursor")
				w.ByteString([]byte{byte(n)})
			}
		}))
	})
	w.Spawn("entries")
	came(t, "a10 a11 a20 a21 a30 a31", "nil")

	w = world(t)
	data := []string{"one\ntw", "o\nth", "ree"}
	closed := 0
	fake := w.Serve("files", nil).Open(func(c *actortest.Call) {
		switch {
		case c.Op == "close":
			closed++
		case len(data) == 0:
			c.Answer(actor.Null)
		default:
			c.Answer(actor.Bytes(data[0]))
			data = data[1:]
		}
	})
	from = fake.Ref()
	w.Spawn("lines")
	came(t, "one two three", "nil")
	if closed != 0 {
		t.Error("closed behind its end")
	}
	collected, ended, data = nil, nil, []string{"one\ntwo\n", "three"}
	w.Spawn("first-line")
	came(t, "one", "nil")
	if closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}

// The body of an answer as server-sent events; a topic, whose events are acknowledged when they are taken.
func TestEventsFromOutside(t *testing.T) {
	w := world(t)
	status := uint64(200)
	w.Serve("http", func(c *actortest.Call) {
		c.Answer(actor.Func(func(w *abi.Writer) {
			w.Map(3)
			w.Text("status")
			w.Uint(status)
			w.Text("body")
			w.ByteString([]byte("data: a\n\nevent: x\ndata: b\n\n"))
			w.Text("headers")
			w.Array(0)
		}))
	})
	w.Spawn("events")
	came(t, "{message a } {x b }", "nil")
	collected, ended, status = nil, nil, 404
	w.Spawn("events", actortest.Named("again"))
	came(t, "", "status 404")

	w = world(t)
	var sub *actortest.Fake
	var acks []string
	service := w.Serve("pubsub", nil)
	sub = service.Open(func(c *actortest.Call) { acks = append(acks, fmt.Sprintf("%s%x", c.Op, c.Args)) })
	w.Serve("unused", nil)
	a := w.Spawn("topic")
	if n := len(service.Calls()); n != 1 || service.Calls()[0].Op != "subscribe" {
		t.Fatalf("%d calls", n)
	}
	service.Calls()[0].Answer(actor.Func(func(w *abi.Writer) { w.Map(1); w.Text("subscription"); w.Ref(sub.Ref()) }))
	w.Run()
	w.Stop(a)
	came(t, "", "-")
}
