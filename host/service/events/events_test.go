package events_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/events"
)

var everything = events.Grant{Lifecycle: []string{"/**"}, DeadLetters: []string{"/**"}, Unhandled: []string{"/**"}, Reasons: true}

// An actor hears of the lives of those that its grant has, and of nobody else.
func TestLifecycle(t *testing.T) {
	b := start(t, nil)
	l := b.listen("l", &events.Grant{Lifecycle: []string{"/user/shop/**", "/user/t?ll"}}, service.Bounds{})
	l.subscribe("lifecycle")
	shop := b.spawn("shop", worker().WithChildren(host.Child{Name: "clerk", Props: worker()}))
	b.spawn("bank", worker())
	till := b.spawn("till", worker())
	clerk, err := b.Lookup("/user/shop/clerk")
	if err != nil {
		t.Fatal(err)
	}
	l.wants("lifecycle.started path=/user/shop", "lifecycle.started path=/user/shop/clerk", "lifecycle.started path=/user/till")
	_ = b.Tell(clerk, "crash")
	b.settle()
	l.wants("lifecycle.failed path=/user/shop/clerk failure=guest_error directive=restart", "lifecycle.restarted path=/user/shop/clerk failure=guest_error")
	b.Stop(shop)
	b.settle()
	l.wants("lifecycle.stopped path=/user/shop/clerk", "lifecycle.stopped path=/user/shop")
	if got := l.do("unsubscribe", map[string]any{"channel": "lifecycle"}); got != "" {
		t.Error(got)
	}
	b.Stop(till)
	b.settle()
	l.wants()
}

// A channel stands for all below it, paths narrow it down, and a subscription takes the place of the one before
// to the same channel.
func TestChannelsAndPaths(t *testing.T) {
	b := start(t, nil)
	l := b.listen("l", &everything, service.Bounds{})
	l.subscribe("lifecycle.stopped", "/user/a")
	a, other := b.spawn("a", worker()), b.spawn("other", worker())
	b.Stop(a)
	b.Stop(other)
	b.settle()
	l.wants("lifecycle.stopped path=/user/a reason=stopped")
	l.subscribe("lifecycle.stopped", "/user/c")
	b.Stop(b.spawn("a", worker()))
	b.Stop(b.spawn("c", worker()))
	b.settle()
	l.wants("lifecycle.stopped path=/user/c reason=stopped")
	l.subscribe("*.started")
	b.spawn("d", worker())
	l.wants("lifecycle.started path=/user/d")
}

// What is not delivered is told to whom the recipient, or the sender, is granted; of the two each sees what it may.
func TestDeadLetters(t *testing.T) {
	b := start(t, nil)
	of := func(name string, patterns ...string) *listener {
		l := b.listen(name, &events.Grant{DeadLetters: patterns}, service.Bounds{})
		l.subscribe("dead-letters")
		return l
	}
	sender, receiver, both := of("sender", "/user/s/**"), of("receiver", "/user/r"), of("both", "/user/*")
	stranger := of("stranger", "/user/x/**")
	r := b.spawn("r", worker())
	s := b.spawn("s", worker())
	b.Stop(r)
	b.settle()
	_ = b.Tell(s, uint64(r.UID()))
	b.settle()
	sender.wants("dead-letters.unknown from=/user/s")
	receiver.wants("dead-letters.unknown path=/user/r")
	both.wants("dead-letters.unknown path=/user/r from=/user/s")
	stranger.wants()
	for _, l := range []*listener{sender, receiver, both} {
		if strings.Contains(l.raw.String(), "secret") {
			t.Errorf("%s has got the payload: %q", l.ref.Name(), l.raw.String())
		}
	}
	if h := both.do("subscribe", map[string]any{"channel": "suppressed"}); h != "" {
		t.Error(h)
	}
	_ = b.TellFrom(s, r, host.Marked{Value: 1, Marks: host.Suppressed})
	b.settle()
	both.wants("suppressed.unknown path=/user/r from=/user/s")
}

func TestUnhandled(t *testing.T) {
	b := start(t, nil)
	l := b.listen("l", &events.Grant{Unhandled: []string{"/user/a"}}, service.Bounds{})
	l.subscribe("unhandled")
	a, other := b.spawn("a", worker()), b.spawn("other", worker())
	for _, x := range []host.Ref{a, other} {
		_ = b.TellFrom(other, x, "what")
	}
	b.settle()
	l.wants("unhandled path=/user/a")
}

// The words of a guest are told by grant alone, and secrets of the system in them never.
func TestReasons(t *testing.T) {
	b := start(t, nil)
	if err := b.Redaction().Hide([]byte("secret-reason")); err != nil {
		t.Fatal(err)
	}
	silent := b.listen("silent", &events.Grant{Lifecycle: []string{"/user/a"}}, service.Bounds{})
	told := b.listen("told", &events.Grant{Lifecycle: []string{"/user/a"}, Reasons: true}, service.Bounds{})
	for _, l := range []*listener{silent, told} {
		l.subscribe("lifecycle.failed")
	}
	a := b.spawn("a", worker())
	_ = b.Tell(a, "crash")
	b.settle()
	silent.wants("lifecycle.failed path=/user/a failure=guest_error directive=restart")
	told.wants("lifecycle.failed path=/user/a failure=guest_error directive=restart reason=guest_error: *************")
	if strings.Contains(told.raw.String()+silent.raw.String(), "secret-reason") {
		t.Error("a secret is told")
	}
}

func TestRefusals(t *testing.T) {
	b := start(t, &events.Settings{Subscriptions: 3})
	l := b.listen("l", &events.Grant{Lifecycle: []string{"/user/a"}, Subscriptions: 2, Queue: 2048}, service.Bounds{})
	poor := b.listen("poor", nil, service.Bounds{})
	sub := func(channel string, more ...any) map[string]any {
		m := map[string]any{"channel": channel}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	long := "/" + strings.Repeat("a", 128)
	for _, c := range []struct {
		l    *listener
		op   string
		args map[string]any
		want string
	}{
		{poor, "subscribe", sub("lifecycle"), "denied: events is not granted; capabilities.events in the manifest would allow it"},
		{l, "subscribe", sub("unhandled"), "denied: events of unhandled are not granted; capabilities.events.unhandled in the manifest would allow it"},
		{l, "subscribe", sub("suppressed.late"), "denied: events of suppressed.late are not granted; capabilities.events.dead-letters in the manifest would allow it"},
		{l, "subscribe", sub("weather"), "not_found: there are no events of weather; there are lifecycle, dead-letters, suppressed and unhandled, and what is below them"},
		{l, "subscribe", sub("a..b"), `bad_request: the pattern "a..b": a token is empty`},
		{l, "subscribe", sub("lifecycle", "paths", []string{"user"}), `bad_request: the pattern "user" does not begin with /, as in /user/shop or /user/shop/**`},
		{l, "subscribe", sub("lifecycle", "paths", []string{"/a//b"}), `bad_request: the pattern "/a//b" has an empty element`},
		{l, "subscribe", sub("lifecycle", "paths", []string{"/**/b"}), `bad_request: the pattern "/**/b": ** is allowed only as the last element`},
		{l, "subscribe", sub("lifecycle", "paths", []string{"/a**"}), `bad_request: the pattern "/a**": ** is allowed only as the last element`},
		{l, "subscribe", sub("lifecycle", "paths", []string{"/a\x1b"}), `bad_request: the pattern "/a\x1b" is not a text`},
		{l, "subscribe", sub("lifecycle", "paths", []string{long}), "bad_request: the pattern \"" + long[:40] + "\"... has 129 bytes, at most 128"},
		{l, "subscribe", sub("lifecycle", "paths", []string{"/*a*a*a*a*a*a*a*a*a"}), `bad_request: the pattern "/*a*a*a*a*a*a*a*a*a" has more than 8 wildcards`},
		{l, "subscribe", sub("lifecycle", "paths", make([]string, 17)), "bad_request: 17 paths, at most 16"},
		{l, "subscribe", sub("lifecycle", "queue", 4096), "too_large: queue is at most 2048 bytes; queue of the grant raises it"},
		{l, "subscribe", sub("lifecycle", "window", 0), "bad_request: window is 1 to 1024"},
		{l, "subscribe", sub("lifecycle", "overflow", "x"), "bad_request: overflow is oldest, newest or end"},
		{l, "subscribe", sub("lifecycle", "ack_wait", 1), "bad_request: ack_wait is 100ms to 1h0m0s"},
		{l, "subscribe", sub("lifecycle", "other", 1), ""},
		{l, "unsubscribe", sub("lifecycle"), `not_found: there is no subscription to "lifecycle"`},
		{l, "other", nil, `bad_request: there is no operation "other"`},
		{l, "subscribe", sub("lifecycle"), ""},
		{l, "subscribe", sub("lifecycle"), ""}, // in its place
		{l, "subscribe", sub("lifecycle.started"), ""},
		{l, "subscribe", sub("lifecycle.failed"), "quota: there are 2 subscriptions, which is the limit; subscriptions of the grant raises it"},
	} {
		got := c.l.do(c.op, c.args)
		if got != c.want && !(c.args["other"] != nil && strings.HasPrefix(got, "bad_request: subscribe: ")) {
			t.Errorf("%s %v: %q, want %q", c.op, c.args, got, c.want)
		}
	}
	more := b.listen("more", &everything, service.Bounds{})
	more.subscribe("lifecycle")
	if got := more.do("subscribe", sub("unhandled")); got != "busy: there are 3 subscriptions of all actors, which is the limit" {
		t.Error(got)
	}
	b.Stop(l.ref)
	b.settle()
	more.subscribe("unhandled") // the end of a subscriber has made room
}

func TestGrantsOfEventsAreChecked(t *testing.T) {
	for want, g := range map[string]events.Grant{
		"it grants nothing: lifecycle, dead-letters and unhandled have patterns of paths": {Reasons: true},
		`lifecycle[1]: the pattern "x" does not begin with /`:                             {Lifecycle: []string{"/user/a", "x"}},
		`dead-letters[0]: the pattern "/" has an empty element`:                           {DeadLetters: []string{"/"}},
		"unhandled: 17 patterns, at most 16":                                              {Unhandled: make([]string, 17)},
		"":                                                                                everything,
	} {
		err := events.Service.CheckGrant(&g)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What a slow subscriber has no room for is missed, and the next event says how much that was. Nobody waits
// for it.
func TestSlowSubscriberOfEvents(t *testing.T) {
	b := start(t, nil)
	l := b.listen("l", &everything, service.Bounds{})
	l.deaf = true
	if got := l.do("subscribe", map[string]any{"channel": "lifecycle.started", "window": 2, "queue": 300, "ack_wait": int64(time.Second), "paths": []string{"/user/a*"}}); got != "" {
		t.Fatal(got)
	}
	last := b.listen("last", &everything, service.Bounds{})
	last.subscribe("lifecycle.started", "/user/z")
	for i := range 10 {
		b.spawn(fmt.Sprint("a", i), worker())
	}
	l.wants("lifecycle.started path=/user/a0", "lifecycle.started path=/user/a1")
	b.spawn("z", worker())
	last.wants("lifecycle.started path=/user/z") // events come one after the other
	b.settle()
	b.clock.Advance(time.Second)
	l.wants("lifecycle.started path=/user/a8 missed=6", "lifecycle.started path=/user/a9")
}

// A grant is told of so many a second. What is more is missed, and counted.
func TestRateOfEvents(t *testing.T) {
	b := start(t, nil)
	l := b.listen("l", &events.Grant{Lifecycle: []string{"/**"}, Events: 3}, service.Bounds{})
	other := b.listen("other", &everything, service.Bounds{})
	l.subscribe("lifecycle.started", "/user/a*")
	other.subscribe("lifecycle.started", "/user/*")
	for i := range 8 {
		b.spawn(fmt.Sprint("a", i), worker())
	}
	l.wants("lifecycle.started path=/user/a0", "lifecycle.started path=/user/a1", "lifecycle.started path=/user/a2")
	b.spawn("z", worker())
	b.until("the other one hears of all", func() bool { return other.count() == 9 }) // one after the other
	b.clock.Advance(time.Second)
	b.spawn("a-late", worker())
	l.wants("lifecycle.started path=/user/a-late missed=5")
}

// The end of a subscriber is the end of its subscriptions, a restart is not.
func TestSubscribersThatEnd(t *testing.T) {
	b := start(t, nil)
	l := b.listen("l", &everything, service.Bounds{})
	l.subscribe("lifecycle", "/user/a")
	l.then = func(_ *host.Context, h heard) error {
		if h.Topic == "lifecycle.started" {
			return fmt.Errorf("crash")
		}
		return nil
	}
	a := b.spawn("a", worker())
	b.Stop(a)
	b.settle()
	l.wants("lifecycle.started path=/user/a", "lifecycle.stopped path=/user/a reason=stopped")
	if n := len(b.Select("/system/events/*")); n != 1 {
		t.Errorf("%d subscriptions", n)
	}
	b.Stop(l.ref)
	b.until("its subscription has ended", func() bool { return len(b.Select("/system/events/*")) == 0 })
}

// With the end of the service's subscriptions nobody listens to the system any more.
func TestNobodyListens(t *testing.T) {
	b := start(t, nil)
	l := b.listen("l", &everything, service.Bounds{})
	for range 3 {
		l.subscribe("lifecycle", "/user/a")
		a := b.spawn("a", worker())
		l.wants("lifecycle.started path=/user/a")
		if got := l.do("unsubscribe", map[string]any{"channel": "lifecycle"}); got != "" {
			t.Fatal(got)
		}
		if err := b.StopGracefully(context.Background(), a); err != nil {
			t.Fatal(err)
		}
	}
	l.wants()
}
