package pubsub_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/pubsub"
	"pgregory.net/rapid"
)

// client is an actor in Go that asks the service what it is asked, and keeps what else it gets.
type client struct {
	b    *bench
	ref  host.Ref
	auto bool // it acknowledges at once

	mu     sync.Mutex
	events []event
	ended  string
}

type event struct {
	N      uint64          `cbor:"n"`
	Topic  string          `cbor:"topic"`
	Value  cbor.RawMessage `cbor:"value"`
	Missed uint64          `cbor:"missed"`

	from host.Ref
}

// order is [target, op, args]: 0 is the service, null for op a plain message.
type order struct {
	_      struct{} `cbor:",toarray"`
	Target uint64
	Op     any
	Args   any
}

func (b *bench) client(name string, p func(host.Props) host.Props, auto bool) *client {
	c := &client{b: b, auto: auto}
	open, n := map[uint64]*host.Reply{}, uint64(0)
	props := host.Func(func(ctx *host.Context, m host.Message) error {
		switch {
		case m.Kind == abi.KindReply || m.Kind == abi.KindReplyError || m.Kind == abi.KindAskTimeout:
			reply := open[m.Correlation]
			delete(open, m.Correlation)
			if reply == nil {
				return host.ErrUnhandled
			}
			if m.Kind == abi.KindReply {
				return reply.Send(host.Raw(slices.Clone(m.Payload)))
			}
			return reply.Fail(strings.TrimPrefix(m.Err().Error(), "host: the actor replied with an error: "))
		}
		var end []string
		if m.Decode(&end) == nil && len(end) == 2 && end[0] == "ended" {
			c.mu.Lock()
			c.ended += end[1]
			c.mu.Unlock()
			return nil
		}
		var e struct {
			_    struct{} `cbor:",toarray"`
			Kind string
			Body event
		}
		if m.Decode(&e) == nil && e.Kind == "event" {
			e.Body.from = m.Sender
			c.mu.Lock()
			c.events = append(c.events, e.Body)
			c.mu.Unlock()
			if c.auto {
				return ctx.Tell(m.Sender, []any{"ack", e.Body.N})
			}
			return nil
		}
		var o order
		if err := m.Decode(&o); err != nil {
			return err
		}
		to := b.svc
		if o.Target != 0 {
			to = b.refOf(o.Target)
		}
		var payload any = []any{o.Op, o.Args}
		if o.Op == nil {
			payload = o.Args
		}
		if m.Correlation == 0 {
			return ctx.Tell(to, payload)
		}
		reply, err := ctx.Later()
		if err != nil {
			return err
		}
		n++
		open[n] = reply
		return ctx.Ask(to, payload, n, time.Minute)
	})
	if p != nil {
		props = p(props)
	}
	c.ref = b.spawn(name, props)
	return c
}

// refOf is the actor with a number: a subscription, or a client.
func (b *bench) refOf(uid uint64) host.Ref {
	for _, path := range []string{"/system/pubsub/*", "/user/*"} {
		for _, ref := range b.Select(path) {
			if uint64(ref.UID()) == uid {
				return ref
			}
		}
	}
	return host.Ref{}
}

func with(g pubsub.Grant) func(host.Props) host.Props {
	return func(p host.Props) host.Props { return granted(p, g) }
}

// do asks the service.
func (c *client) do(op string, args any) string {
	c.b.Helper()
	return c.b.ask(c.ref, order{Op: op, Args: args})
}

func (c *client) publish(topic string, value any) string {
	c.b.Helper()
	return c.do("publish", map[string]any{"topic": topic, "value": value})
}

// subscribe returns the ref of the subscription.
func (c *client) subscribe(args map[string]any) uint64 {
	c.b.Helper()
	m, err := c.b.Ask(c.b.Context(), c.ref, order{Op: "subscribe", Args: args})
	if err != nil {
		c.b.Fatal(err)
	}
	var got struct {
		Subscription uint64 `cbor:"subscription"`
	}
	if err := m.Decode(&got); err != nil || got.Subscription == 0 {
		c.b.Fatal(got, err)
	}
	return got.Subscription
}

func (c *client) tell(target uint64, op, args any) {
	c.b.Helper()
	if err := c.b.Tell(c.ref, order{Target: target, Op: op, Args: args}); err != nil {
		c.b.Fatal(err)
	}
	c.b.settle()
}

// got takes what was heard, as n:topic=value, !missed if some were.
func (c *client) got() string {
	c.b.settle()
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, e := range c.events {
		var v any
		_ = cbor.Unmarshal(e.Value, &v)
		text := fmt.Sprintf("%d:%s=%v", e.N, e.Topic, v)
		if e.Missed > 0 {
			text += fmt.Sprintf("!%d", e.Missed)
		}
		all = append(all, text)
	}
	c.events = nil
	return strings.Join(all, " ")
}

// A slow subscriber gets as many events as its window has, and misses what does not fit its queue.
func TestSlowSubscriber(t *testing.T) {
	b := start(t, nil)
	p := b.client("p", with(all), true)
	for _, c := range []struct{ overflow, first, second, third string }{
		{"oldest", "[1 0] [1 0] [1 0] [1 0] [1 0] [1 0] ", "3:a=5!2", "4:a=6"},
		{"newest", "[1 0] [1 0] [1 0] [1 0] [0 1] [0 1] ", "3:a=3!2", "4:a=4"},
	} {
		s := b.client("s-"+c.overflow, with(all), false)
		// Each event takes 1 for the topic, 1 for the value and 64 more: two fit.
		sub := s.subscribe(map[string]any{"pattern": "a", "window": 2, "queue": 140, "overflow": c.overflow})
		answers := ""
		for i := range 6 {
			answers += strings.NewReplacer("map[missed:", "[m", " taken:", " ").Replace(p.publish("a", i+1)) + " "
		}
		answers = strings.NewReplacer("[m0 1]", "[1 0]", "[m1 0]", "[0 1]").Replace(answers)
		b.expect(c.overflow, answers, c.first)
		b.expect("the window", s.got(), "1:a=1 2:a=2")
		s.tell(sub, "ack", 1)
		b.expect("one is done", s.got(), c.second)
		s.tell(sub, "ack", 1)   // again
		s.tell(sub, "ack", 100) // more than were sent
		s.tell(sub, "ack", 0)
		b.expect("nothing is done", s.got(), "")
		s.tell(sub, "ack", 2)
		third := s.got()
		s.tell(sub, "ack", 4)
		p.publish("a", "x")
		if rest := s.got(); rest != "" {
			third += " " + rest
		}
		b.expect("the rest", strings.TrimSuffix(third, " 5:a=x"), c.third)
		s.do("unsubscribe", map[string]any{"pattern": "a"})
	}
}

// A subscription may end instead of missing something.
func TestOverflowEnds(t *testing.T) {
	b := start(t, nil)
	p, s := b.client("p", with(all), true), b.client("s", with(all), false)
	sub := s.subscribe(map[string]any{"pattern": "a", "window": 1, "queue": 70, "overflow": "end"})
	for range 3 {
		p.publish("a", 1)
	}
	b.settle()
	if !b.refOf(sub).IsZero() {
		t.Error("the subscription is there still")
	}
	b.expect("nobody takes it", p.publish("a", 1), "map[missed:0 taken:0]")
	b.expect("before", s.got(), "1:a=1")
	b.expect("the reason", s.ended, "more waited than its queue has room for")
	sub = s.subscribe(map[string]any{"pattern": "a"})
	b.Stop(b.refOf(sub)) // an operator
	b.settle()
	b.expect("the other reason", strings.TrimPrefix(s.ended, "more waited than its queue has room for"), "the service has stopped it")
	b.expect("nobody takes it", p.publish("a", 1), "map[missed:0 taken:0]")
	s.tell(s.subscribe(map[string]any{"pattern": "a"}), "close", nil)
	s.subscribe(map[string]any{"pattern": "a"})
	s.subscribe(map[string]any{"pattern": "a"})
	s.do("unsubscribe", map[string]any{"pattern": "a"})
	b.settle()
	b.expect("ends by wish are not told", s.ended, "more waited than its queue has room forthe service has stopped it")
}

// A window that nobody acknowledges starts over when the time for it is over.
func TestAckWait(t *testing.T) {
	b := start(t, nil)
	p, s := b.client("p", with(all), true), b.client("s", with(all), false)
	sub := s.subscribe(map[string]any{"pattern": "a", "window": 2, "ack_wait": int64(time.Second)})
	for i := range 5 {
		p.publish("a", i)
	}
	b.expect("the window", s.got(), "1:a=0 2:a=1")
	b.clock.Advance(999 * time.Millisecond)
	b.expect("before the time", s.got(), "")
	b.clock.Advance(time.Millisecond)
	b.expect("the next window", s.got(), "3:a=2 4:a=3")
	b.clock.Advance(900 * time.Millisecond)
	s.tell(sub, "ack", 3)
	b.expect("the last", s.got(), "5:a=4")
	b.clock.Advance(500 * time.Millisecond) // the time counts from the last event on
	p.publish("a", 5)
	b.expect("not yet", s.got(), "")
	b.clock.Advance(500 * time.Millisecond)
	b.expect("again", s.got(), "6:a=5")
}

// The last value of a topic stays, within the bounds of the grant and of the service.
func TestRetain(t *testing.T) {
	b := start(t, &pubsub.Settings{Retain: 2048})
	small := all
	small.Retain = 1024
	p, q, s := b.client("p", with(small), true), b.client("q", with(all), true), b.client("s", with(all), true)
	retain := func(c *client, topic string, n int) string {
		code, _, _ := strings.Cut(c.do("publish", map[string]any{"topic": topic, "value": strings.Repeat("v", n), "retain": true}), ":")
		return code
	}
	const ok = "map[missed"
	for i, x := range []struct {
		c     *client
		topic string
		n     int
		want  string
	}{
		{p, "a", 500, ok}, {p, "b", 500, "quota"}, {p, "a", 700, ok}, {p, "b", 0, "quota"}, {p, "a", 10, ok}, {p, "b", 400, ok}, {p, "c", 100, "quota"},
		{q, "a", 10, ok}, {p, "c", 90, ok}, // a is paid by q now
		{q, "d", 700, "quota"}, {q, "d", 100, ok}, {p, "c.d", 1, "quota"},
	} {
		b.expect(fmt.Sprint(i, x.topic), retain(x.c, x.topic, x.n), x.want)
	}
	b.expect("values", s.do("retained", map[string]any{"pattern": "*"}), "map[retained:[[a vvvvvvvvvv] [b "+strings.Repeat("v", 400)+"] [c "+strings.Repeat("v", 90)+"] [d "+strings.Repeat("v", 100)+"]]]")
	b.expect("forget", p.do("forget", map[string]any{"topic": "b"}), "<nil>")
	b.expect("forget again", p.do("forget", map[string]any{"topic": "b"}), "not_found: nothing is retained of b")
	b.expect("room", retain(p, "c.d", 300), ok)
	if got := s.do("subscribe", map[string]any{"pattern": ">", "retained": true}); !strings.Contains(got, "retained:[[a vvvvvvvvvv] [c ") {
		t.Error(got)
	}
	if got := s.do("subscribe", map[string]any{"pattern": ">"}); strings.Contains(got, "retained") {
		t.Error(got)
	}
}

// Many values come in pages that fit the inbox of a guest.
func TestPages(t *testing.T) {
	b := start(t, nil)
	p := b.client("p", with(pubsub.Grant{Publish: []string{">"}, Subscribe: []string{">"}, Retain: 10 << 20}), true)
	big := strings.Repeat("v", pubsub.MaxValue-10)
	want := 0
	for i := range 40 {
		value := "small"
		if i%7 == 3 {
			value = big
		}
		if got := p.do("publish", map[string]any{"topic": fmt.Sprintf("a.%02d", i), "value": value, "retain": true}); strings.HasPrefix(got, "map") {
			want++
		}
	}
	var topics []string
	after := ""
	for pages := 0; ; pages++ {
		m, err := b.Ask(t.Context(), p.ref, order{Op: "retained", Args: map[string]any{"pattern": "a.*", "after": after}})
		if err != nil || len(m.Payload) > 60<<10 || pages > 40 {
			t.Fatal(len(m.Payload), pages, err)
		}
		var page struct {
			Retained [][]any `cbor:"retained"`
			Next     string  `cbor:"next"`
		}
		if err := m.Decode(&page); err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Retained {
			topics = append(topics, v[0].(string))
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(topics) != 40 || want != 40 || !slices.IsSorted(topics) || len(slices.Compact(topics)) != 40 {
		t.Errorf("%d of %d: %v", len(topics), want, topics)
	}
}

// One subscription of an actor to a pattern; it ends with the actor.
func TestSubscriptionsEnd(t *testing.T) {
	b := start(t, &pubsub.Settings{Subscriptions: 5})
	few := all
	few.Subscriptions = 3
	p, s := b.client("p", with(all), true), b.client("s", with(few), true)
	first := s.subscribe(map[string]any{"pattern": "a"})
	second := s.subscribe(map[string]any{"pattern": "a"})
	b.settle()
	if !b.refOf(first).IsZero() || b.refOf(second).IsZero() {
		t.Error("the first is there still")
	}
	b.expect("one", p.publish("a", 1), "map[missed:0 taken:1]")
	s.subscribe(map[string]any{"pattern": "*"})
	s.subscribe(map[string]any{"pattern": ">"})
	b.expect("of the grant", s.do("subscribe", map[string]any{"pattern": "b"}), "quota: there are 3 subscriptions, which is the limit; subscriptions of the grant raises it")
	s.subscribe(map[string]any{"pattern": ">"})
	p.subscribe(map[string]any{"pattern": "b"})
	p.subscribe(map[string]any{"pattern": "c"})
	b.expect("of all", p.do("subscribe", map[string]any{"pattern": "d"}), "busy: there are 5 subscriptions of all actors, which is the limit")
	b.expect("each of them", p.publish("a", 2), "map[missed:0 taken:3]")
	b.expect("events", s.got(), "1:a=1 2:a=2 1:a=2 1:a=2")

	s.tell(second, "close", nil)
	b.expect("without the one that was closed", p.publish("a", 3), "map[missed:0 taken:2]")
	if err := b.StopGracefully(t.Context(), s.ref); err != nil {
		t.Fatal(err)
	}
	b.settle()
	b.expect("nobody is left", p.publish("a", 4), "map[missed:0 taken:0]")
	b.expect("unknown", p.do("unsubscribe", map[string]any{"pattern": "a"}), `not_found: there is no subscription to "a"`)
	b.expect("known", p.do("unsubscribe", map[string]any{"pattern": "b"}), "<nil>")
	for _, pattern := range []string{"e", "f", "g", "h"} {
		p.subscribe(map[string]any{"pattern": pattern})
	}
	b.settle()
	if kids := b.View().Stats().Actors; kids > 2+5+20 {
		t.Errorf("%d actors", kids)
	}
}

// What a hostile client sends is refused with a code, and changes nothing.
func TestHostile(t *testing.T) {
	b := start(t, nil)
	narrow := pubsub.Grant{Publish: []string{"a.*"}, Subscribe: []string{"a.*", "b.>"}}
	h, victim := b.client("h", with(narrow), true), b.client("v", with(all), false)
	for _, c := range []struct {
		op   string
		args any
		want string
	}{
		{"publish", map[string]any{"topic": "a.b.c", "value": 1}, "denied"},
		{"publish", map[string]any{"topic": "a", "value": 1}, "denied"},
		{"publish", map[string]any{"topic": "a.>", "value": 1}, "bad_request"},
		{"publish", map[string]any{"topic": "$a.b", "value": 1}, "bad_request"},
		{"publish", map[string]any{"topic": "a.b"}, "bad_request"},
		{"publish", map[string]any{"value": 1}, "bad_request"},
		{"publish", map[string]any{"topic": "a.b", "value": 1, "to": "x"}, "bad_request"},
		{"publish", map[string]any{"topic": 5, "value": 1}, "bad_request"},
		{"publish", map[string]any{"topic": "a.b", "value": 1, "retain": 1}, "bad_request"},
		{"publish", map[string]any{"topic": "a." + strings.Repeat("x", 300), "value": 1}, "bad_request"},
		{"publish", map[string]any{"topic": "a.b", "value": strings.Repeat("x", pubsub.MaxValue)}, "too_large"},
		{"publish", nil, "bad_request"},
		{"publish", []any{1}, "bad_request"},
		{"subscribe", map[string]any{"pattern": ">"}, "denied"},
		{"subscribe", map[string]any{"pattern": "a.>"}, "denied"},
		{"subscribe", map[string]any{"pattern": "*.b"}, "denied"},
		{"subscribe", map[string]any{"pattern": "b"}, "denied"},
		{"subscribe", map[string]any{"pattern": ""}, "bad_request"},
		{"subscribe", map[string]any{"pattern": "a..b"}, "bad_request"},
		{"subscribe", map[string]any{"pattern": "a.b", "window": 0}, "bad_request"},
		{"subscribe", map[string]any{"pattern": "a.b", "window": 1025}, "bad_request"},
		{"subscribe", map[string]any{"pattern": "a.b", "window": -1}, "bad_request"},
		{"subscribe", map[string]any{"pattern": "a.b", "queue": -1}, "too_large"},
		{"subscribe", map[string]any{"pattern": "a.b", "queue": pubsub.DefaultQueue + 1}, "too_large"},
		{"subscribe", map[string]any{"pattern": "a.b", "overflow": "none"}, "bad_request"},
		{"subscribe", map[string]any{"pattern": "a.b", "ack_wait": 1}, "bad_request"},
		{"subscribe", map[string]any{"pattern": "a.b", "ack_wait": int64(1) << 62}, "bad_request"},
		{"subscribe", map[string]any{"pattern": "a.b", "subscriber": uint64(victim.ref.UID())}, "bad_request"},
		{"retained", map[string]any{"pattern": "c.>"}, "denied"},
		{"retained", map[string]any{"pattern": "b.>", "after": "c..d"}, "bad_request"},
		{"forget", map[string]any{"topic": "c"}, "denied"},
		{"unsubscribe", map[string]any{"pattern": ">"}, "not_found"},
		{"steal", nil, "bad_request"},
	} {
		if got, _, _ := strings.Cut(h.do(c.op, c.args), ":"); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.op, c.args, got, c.want)
		}
	}
	b.expect("what nobody has subscribed to", h.publish("a.b", 1), "map[missed:0 taken:0]")

	// The subscription of somebody else: neither its events nor its window nor its end are the stranger's.
	sub := victim.subscribe(map[string]any{"pattern": "a.b", "window": 1})
	h.publish("a.b", 1)
	h.publish("a.b", 2)
	h.tell(sub, "ack", 1)
	h.tell(sub, "close", nil)
	for _, garbage := range []any{1, nil, "close", []any{}, []any{"ack"}, []any{"ack", -1}, []any{"ack", "x"}, []any{"close", nil, nil}, []any{"fly", nil}} {
		h.tell(sub, nil, garbage)
		victim.tell(sub, nil, garbage)
	}
	b.expect("one event", victim.got(), "1:a.b=1")
	victim.tell(sub, "ack", 1)
	b.expect("the next", victim.got(), "2:a.b=2")
	b.expect("asked, it answers", b.ask(victim.ref, order{Target: sub, Op: "ack", Args: 2}), "<nil>")
	if got := b.ask(victim.ref, order{Target: sub, Op: "fly"}); !strings.HasPrefix(got, "bad_request: ") {
		t.Error(got)
	}

	// A message that is passed on carries nobody's grant.
	deputy := b.spawn("deputy", granted(host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Forward(b.svc) }), all))
	poor := b.client("poor", nil, false)
	if got := b.ask(poor.ref, order{Target: uint64(deputy.UID()), Op: "publish", Args: map[string]any{"topic": "a.b", "value": 1}}); !strings.HasPrefix(got, "denied: pubsub is not granted") {
		t.Error(got)
	}
}

// Events of one publisher keep their order for each subscriber, whatever the windows; the number of each
// event and what was missed add up.
func TestOrder(t *testing.T) {
	b := start(t, nil)
	big := all
	big.Queue = 1 << 20
	const publishers, each = 4, 100
	var subs []*client
	for i, w := range []int{1, 2, 7, 64, 1024} {
		s := b.client(fmt.Sprint("s", i), with(big), true)
		s.subscribe(map[string]any{"pattern": []string{"t.>", "t.*"}[i%2], "window": w})
		subs = append(subs, s)
	}
	var group sync.WaitGroup
	for i := range publishers {
		p := b.client(fmt.Sprint("p", i), with(all), true)
		group.Go(func() {
			for n := range each {
				_ = b.Tell(p.ref, order{Op: "publish", Args: map[string]any{"topic": fmt.Sprint("t.", i), "value": n}})
				if n%20 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	group.Wait()
	b.settle()
	for _, s := range subs {
		s.mu.Lock()
		last := map[string]int{}
		for i, e := range s.events {
			var v int
			if err := cbor.Unmarshal(e.Value, &v); err != nil || v != last[e.Topic] || e.N != uint64(i)+1 || e.Missed != 0 {
				t.Fatalf("%s: event %d is %d of %s after %d, number %d, missed %d", s.ref.Path(), i, v, e.Topic, last[e.Topic], e.N, e.Missed)
			}
			last[e.Topic] = v + 1
		}
		if len(s.events) != publishers*each {
			t.Errorf("%s has %d events", s.ref.Path(), len(s.events))
		}
		s.mu.Unlock()
	}
}

// A model of one subscription: whatever is published and acknowledged, what arrives is what was published, in order,
// without what is said to be missed, and never more than the window is under way.
func TestSubscriptionModel(t *testing.T) {
	b := start(t, nil)
	p := b.client("p", with(all), true)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		s := b.client(fmt.Sprint("s", round), with(all), false)
		window := rapid.IntRange(1, 5).Draw(rt, "window")
		topic := fmt.Sprint("t", round)
		sub := s.subscribe(map[string]any{"pattern": topic, "window": window, "queue": rapid.IntRange(70, 400).Draw(rt, "queue"),
			"overflow": rapid.SampledFrom([]string{"oldest", "newest"}).Draw(rt, "overflow")})
		published, acked, seen, next := 0, uint64(0), uint64(0), 0
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			if rapid.IntRange(0, 2).Draw(rt, "step") > 0 {
				p.publish(topic, published)
				published++
			} else if seen > acked {
				acked += uint64(rapid.IntRange(1, int(seen-acked)).Draw(rt, "done"))
				s.tell(sub, "ack", acked)
			}
			b.settle()
			s.mu.Lock()
			missed := 0
			for _, e := range s.events {
				var v int
				_ = cbor.Unmarshal(e.Value, &v)
				seen++
				missed += int(e.Missed)
				if e.N != seen || v < next || seen-acked > uint64(window) {
					rt.Fatalf("event %d (%d) with %d after %d, %d acknowledged", e.N, seen, v, next, acked)
				}
				next = v + 1
			}
			s.events = nil
			s.mu.Unlock()
		}
		s.do("unsubscribe", map[string]any{"pattern": topic})
		b.Stop(s.ref)
	})
}

// Publishers, subscribers and their ends at the same time.
func TestChurn(t *testing.T) {
	b := start(t, nil)
	stop := make(chan struct{})
	var group sync.WaitGroup
	for i := range 2 {
		p := b.client(fmt.Sprint("p", i), with(all), true)
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				_, _ = b.Ask(t.Context(), p.ref, order{Op: "publish", Args: map[string]any{"topic": fmt.Sprint("t.", n%3), "value": n, "retain": n%5 == 0}})
			}
		})
	}
	for i := range 60 {
		s := b.client(fmt.Sprint("s", i), with(all), i%2 == 0)
		_, _ = b.Ask(t.Context(), s.ref, order{Op: "subscribe", Args: map[string]any{"pattern": []string{"t.>", "t.1", "*.2"}[i%3], "window": 1 + i%4, "queue": 500,
			"overflow": []string{"oldest", "newest", "end"}[i%3]}})
		if i%3 == 0 {
			b.Stop(s.ref)
		} else {
			b.clock.Advance(time.Second)
		}
	}
	close(stop)
	group.Wait()
	for i := range 60 {
		if ref, err := b.Lookup(fmt.Sprint("/user/s", i)); err == nil {
			b.Stop(ref)
		}
	}
	b.settle()
	p := b.client("last", with(all), true)
	b.expect("nobody is left", p.publish("t.1", 1), "map[missed:0 taken:0]")
}

func TestCheckGrant(t *testing.T) {
	for _, c := range []struct {
		grant pubsub.Grant
		want  string
	}{
		{pubsub.Grant{}, "<nil>"}, {all, "<nil>"},
		{pubsub.Grant{Publish: []string{"a", "a.>.b"}}, `publish[1]: the pattern "a.>.b": > can only be the last token`},
		{pubsub.Grant{Subscribe: []string{"a b"}}, `subscribe[0]: the pattern "a b": a token has a space or a control character`},
	} {
		if got := fmt.Sprint(pubsub.Service.CheckGrant(&c.grant)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.grant, got, c.want)
		}
	}
}

var _ service.Kind = pubsub.Service

// A publisher to a thousand subscribers that acknowledge: the time of one event to all of them.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := start(b, nil)
			p := x.client("p", with(all), true)
			done := make(chan struct{}, 1<<20)
			for i := range n {
				got := 0
				var sub host.Ref
				ref := x.spawn(fmt.Sprint("s", i), granted(host.Func(func(ctx *host.Context, m host.Message) error {
					switch {
					case m.Sender.IsZero():
						return ctx.Ask(x.svc, []any{"subscribe", map[string]any{"pattern": "t.>"}}, 1, time.Minute)
					case m.Kind == abi.KindReply:
						done <- struct{}{}
						return nil
					}
					if got++; got%32 == 0 { // as the SDK does, half a window at a time
						sub = m.Sender
						_ = ctx.Tell(sub, []any{"ack", got})
					}
					done <- struct{}{}
					return nil
				}), all))
				_ = x.Tell(ref, nil)
				<-done
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				_ = x.Tell(p.ref, order{Op: "publish", Args: map[string]any{"topic": "t.x", "value": "a value of some bytes"}})
				for range n {
					<-done
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delivery")
		})
	}
}
