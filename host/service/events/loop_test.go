package events_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/events"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// What an actor does about an event must not bring about the next one: whatever it does, a single event is
// all that it hears of. Each of these would go on for ever if it were told of itself.
func TestNoLoops(t *testing.T) {
	for name, then := range map[string]func(b *bench) func(*host.Context, heard) error{
		"it sends to nobody": func(b *bench) func(*host.Context, heard) error {
			gone := b.spawn("gone", worker())
			b.Stop(gone)
			b.settle()
			return func(ctx *host.Context, _ heard) error { _ = ctx.Tell(gone, "x"); return nil }
		},
		"it does not handle it": func(*bench) func(*host.Context, heard) error {
			return func(*host.Context, heard) error { return host.ErrUnhandled }
		},
		"it fails": func(*bench) func(*host.Context, heard) error {
			return func(*host.Context, heard) error { return errors.New("fails") }
		},
		"it sends itself what it does not handle": func(b *bench) func(*host.Context, heard) error {
			return func(ctx *host.Context, _ heard) error {
				return ctx.Tell(ctx.Self(), host.Marked{Value: []any{"happened", 7}})
			}
		},
		"it acknowledges what there is not": func(b *bench) func(*host.Context, heard) error {
			return func(ctx *host.Context, _ heard) error {
				for _, sub := range b.Select("/system/events/*") {
					_ = ctx.Tell(sub, "nonsense")
					_ = ctx.Tell(sub, []any{"ack", 1 << 40})
				}
				return nil
			}
		},
		"it leaves and comes back": func(b *bench) func(*host.Context, heard) error {
			return func(ctx *host.Context, _ heard) error {
				_ = ctx.Tell(b.svc, []any{"unsubscribe", map[string]any{"channel": ">"}})
				return ctx.Tell(b.svc, []any{"subscribe", map[string]any{"channel": ">"}})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, nil)
			l := b.listen("l", &everything, service.Bounds{})
			l.then = then(b)
			l.subscribe(">")
			_ = b.Tell(b.spawn("quiet", worker()), "what") // two: it has started, and has not handled it
			b.settle()
			l.wants("lifecycle.started path=/user/quiet", "unhandled path=/user/quiet")
		})
	}
}

// Events that do not reach their subscriber are no events for another one: neither as a dead letter, nor as a
// suppressed one, nor as one that was not handled.
func TestLostEventsAreNoEvents(t *testing.T) {
	b := start(t, nil)
	watcher := b.listen("watcher", &everything, service.Bounds{})
	full := b.spawn("full", host.Func(func(*host.Context, host.Message) error { return host.ErrUnhandled }).
		WithLimits(host.Limits{Mailbox: 1}).WithGrant("events", events.Service.Grant(everything, service.Bounds{})))
	// The full one subscribes by a message in its name.
	if err := b.TellFrom(full, b.svc, []any{"subscribe", map[string]any{"channel": "lifecycle.started"}}); err != nil {
		t.Fatal(err)
	}
	b.settle()
	for _, c := range []string{"dead-letters", "suppressed", "unhandled"} {
		watcher.subscribe(c)
	}
	after := b.listen("after", &everything, service.Bounds{}) // it is told after the full one
	after.subscribe("lifecycle.started")
	if err := b.Operate().Pause(full, false); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := b.Spawn(fmt.Sprint("a", i), worker()); err != nil {
			t.Fatal(err)
		}
	}
	b.until("all events were told", func() bool { return after.count() == 5 })
	if err := b.Operate().Unpause(full, false); err != nil {
		t.Fatal(err)
	}
	watcher.wants()
	b.Stop(full)
	watcher.wants()
	if _, n := b.DeadLetters(); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// Two that send to nobody about each other's dead letters go round as often as their grants allow, and not for ever
// at the host's cost.
func TestTwoThatAnswerEachOther(t *testing.T) {
	b := start(t, nil)
	gone := b.spawn("gone", worker())
	b.Stop(gone)
	b.settle()
	var both [2]*listener
	for i := range both {
		both[i] = b.listen(fmt.Sprint("l", i), &events.Grant{DeadLetters: []string{"/user/**"}, Events: 50}, service.Bounds{})
		both[i].then = func(ctx *host.Context, _ heard) error { _ = ctx.Tell(gone, "x"); return nil }
		both[i].subscribe("dead-letters")
	}
	_ = b.TellFrom(both[0].ref, gone, "begin")
	b.until("they have used up what they may hear", func() bool { return both[0].count()+both[1].count() >= 99 })
	time.Sleep(10 * time.Millisecond)
	b.settle()
	if n := both[0].count() + both[1].count(); n > 101 {
		t.Errorf("they have heard %d", n)
	}
}

// storms are how many events a storm has.
func storms() int {
	if testing.Short() {
		return 5_000
	}
	return 40_000
}

// A storm of events, subscribers that never read and patterns that are costly: what the host holds has a bound, and who
// has a grant of its own hears what is for it, as does who asks another actor.
func TestStormOfEvents(t *testing.T) {
	b := start(t, nil)
	wild := make([]string, events.MaxPaths)
	for i := range wild {
		wild[i] = "/*a*a*a*a*a*a*a" + strings.Repeat("a", 100) + string(rune('a'+i))
	}
	const hostile = 8
	channels := []string{"dead-letters", "dead-letters.*", "dead-letters.>", "*.unknown", "*.*", ">", "*.>", "dead-letters.unknown"}
	for i := range hostile {
		g := events.Grant{DeadLetters: append(wild[:15:15], "/user/**"), Lifecycle: []string{"/user/none"}, Unhandled: []string{"/user/none"}}
		l := b.listen(fmt.Sprint("deaf", i), &g, service.Bounds{})
		l.deaf = true
		for c, channel := range channels {
			args := map[string]any{"channel": channel, "window": 1024}
			if c%2 == 0 {
				args["paths"] = append(wild[:15:15], "/user/**")
			}
			if got := l.do("subscribe", args); got != "" {
				t.Fatal(got)
			}
		}
	}
	good := b.listen("good", &events.Grant{Lifecycle: []string{"/user/rare*"}}, service.Bounds{})
	good.subscribe("lifecycle")
	long, gone := b.spawn(strings.Repeat("a", 200), worker()), b.spawn("gone", worker())
	b.Stop(gone)
	b.settle()
	before := servicetest.LiveHeap()
	peak := int64(0)
	payload := strings.Repeat("x", 1000)
	began := time.Now()
	for i := range storms() {
		_ = b.TellFrom(long, gone, payload)
		if i%5000 == 0 {
			peak = max(peak, servicetest.LiveHeap()-before)
			if _, err := b.Ask(t.Context(), good.ref, []any{"unsubscribe", map[string]any{"channel": "unhandled"}}); err == nil {
				t.Error("a neighbour's question is not answered as it should be")
			}
		}
	}
	t.Logf("%d events in %v, %d KiB at the most", storms(), time.Since(began), peak>>10)
	if peak > 64<<20 {
		t.Errorf("%d bytes", peak)
	}
	tries := 0
	b.until("the service is done with it", func() bool { // the source's buffer is empty when an event comes through
		b.clock.Advance(time.Second)
		b.Stop(b.spawn(fmt.Sprint("rare", tries), worker()))
		tries++
		return good.count() > 0
	})
}

// Of 10^5 requests to subscribe some are done and the others refused, by the grant and by the service: none of them
// takes anything else with it.
func TestFlood(t *testing.T) {
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	running, err := events.Service.Start(sys, nil, &events.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	servicetest.Flood(t, sys, running, events.Service.Grant(everything, service.Bounds{}), "subscribe", func(i int) any {
		return map[string]any{"channel": "dead-letters." + host.DeadReasons()[i%15].Name(), "paths": []string{fmt.Sprintf("/user/*%d*", i)}}
	})
	_ = sys.Close(t.Context())
	if err := running.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// 10^5 subscriptions by as many actors as it takes: there are as many as the service may have, and the events that
// are told cost no more than that.
func TestMostSubscriptions(t *testing.T) {
	const most = 200
	b := start(t, &events.Settings{Subscriptions: most})
	g := everything
	g.Subscriptions = 10_000
	grant := events.Service.Grant(g, service.Bounds{AtOnce: 100_000})
	n := storms() / 5
	sub := host.Raw(must(host.Encode([]any{"subscribe", map[string]any{"channel": "lifecycle.paused"}}))(t))
	for i := range n {
		// Each in another's name: the host states who has sent it.
		ref, err := b.Spawn("", host.Func(func(*host.Context, host.Message) error { return nil }).WithGrant("events", grant))
		if err != nil {
			t.Fatal(err)
		}
		_ = b.TellFrom(ref, b.svc, sub)
		if i%500 == 0 {
			b.settle()
		}
	}
	b.settle()
	if got := len(b.Select("/system/events/*")); got != most {
		t.Errorf("%d subscriptions, want %d", got, most)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// What it costs to look at events is paid by the grant that has subscribed: costly patterns use it up, which is
// counted, and another grant hears of everything.
func TestStepsOfAGrant(t *testing.T) {
	b := start(t, nil)
	wild := make([]string, events.MaxPaths)
	for i := range wild {
		wild[i] = "/*a*a*a*a*a*a*a" + strings.Repeat("a", 100) + string(rune('a'+i))
	}
	costly := b.listen("costly", &events.Grant{DeadLetters: append(wild[:15:15], "/user/**")}, service.Bounds{})
	if got := costly.do("subscribe", map[string]any{"channel": "dead-letters", "paths": append(wild[:15:15], "/user/rare")}); got != "" {
		t.Fatal(got)
	}
	other := b.listen("other", &events.Grant{DeadLetters: []string{"/user/**"}, Events: 1 << 20}, service.Bounds{})
	other.subscribe("dead-letters")
	long, gone := b.spawn(strings.Repeat("b", 250), worker()), b.spawn("gone", worker())
	b.Stop(gone)
	b.settle()
	const n = 2000
	for i := range n {
		_ = b.TellFrom(long, gone, i)
		if i%50 == 49 { // the buffers are not what this is about
			b.until("the other one hears of them", func() bool { return other.count() == i+1 })
		}
	}
	b.until("the other one has heard of all", func() bool { return other.count() == n })
	b.clock.Advance(time.Second)
	rare := b.spawn("rare", worker())
	b.Stop(rare)
	b.settle()
	_ = b.Tell(rare, 1)
	b.until("it is told", func() bool { return costly.count() == 1 })
	if got := costly.take()[0]; got.Missed == 0 || got.Missed >= n {
		t.Errorf("%d were missed", got.Missed)
	}
}
