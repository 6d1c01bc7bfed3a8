package eventbus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/eventbus"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// event has a topic, or a key, and a number.
type event struct {
	Topic string
	N     int
}

func topicOf(e event) string { return e.Topic }

// record notes who has got what.
type record struct {
	mu  sync.Mutex
	got []string
}

func (r *record) deliver(e event, s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, fmt.Sprintf("%s:%s%d", s, e.Topic, e.N))
}

func (r *record) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.got = nil }()
	return strings.Join(r.got, " ")
}

// bus is what all of them have, with texts for classifiers.
type bus interface {
	Subscribe(s, c string) (bool, error)
	Unsubscribe(s, c string) bool
	UnsubscribeAll(s string) int
	Publish(e event) int
	Len() int
}

// below is the rule of subchannels, for texts without patterns.
func below(channel, name string) bool {
	return name == channel || strings.HasPrefix(name, channel+".")
}

var kinds = []struct {
	name    string
	make    func(deliver func(event, string), most int) bus
	matches func(classifier, topic string) bool
	once    bool // a subscriber gets an event once, however many of its subscriptions match
}{
	{"lookup", func(d func(event, string), most int) bus { return eventbus.NewLookup(topicOf, d, most) }, func(c, t string) bool { return c == t }, true},
	{"subchannel", func(d func(event, string), most int) bus { return eventbus.NewSubchannel(topicOf, d, most) }, below, true},
	{"scanning", func(d func(event, string), most int) bus {
		return eventbus.NewScanning(func(c string, e event) bool { return strings.HasPrefix(e.Topic, c) }, d, most)
	}, func(c, t string) bool { return strings.HasPrefix(t, c) }, false},
}

// Whatever comes and goes: who gets an event, how often and in which order is what a list of the
// subscriptions says.
func TestBusesAreTheirModel(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				type sub struct{ s, c string }
				const most = 6
				var r record
				b := k.make(r.deliver, most)
				var model []sub
				who := rapid.SampledFrom([]string{"x", "y", "z"})
				what := rapid.SampledFrom([]string{"a", "a.b", "a.b.c", "ab", "b"})
				t.Repeat(map[string]func(*rapid.T){
					"subscribe": func(t *rapid.T) {
						x := sub{who.Draw(t, "who"), what.Draw(t, "what")}
						there := slices.Contains(model, x)
						made, err := b.Subscribe(x.s, x.c)
						switch {
						case there && (made || err != nil), !there && len(model) == most && !errors.Is(err, eventbus.ErrFull), !there && len(model) < most && !made:
							t.Fatalf("%v: %v, %v with %v", x, made, err, model)
						}
						if made {
							model = append(model, x)
						}
					},
					"unsubscribe": func(t *rapid.T) {
						x := sub{who.Draw(t, "who"), what.Draw(t, "what")}
						i := slices.Index(model, x)
						if got := b.Unsubscribe(x.s, x.c); got != (i >= 0) {
							t.Fatalf("%v: %v", x, got)
						}
						if i >= 0 {
							model = slices.Delete(model, i, i+1)
						}
					},
					"all": func(t *rapid.T) {
						s, n := who.Draw(t, "who"), len(model)
						model = slices.DeleteFunc(model, func(x sub) bool { return x.s == s })
						if got := b.UnsubscribeAll(s); got != n-len(model) {
							t.Fatalf("%s: %d", s, got)
						}
					},
					"": func(t *rapid.T) {
						name := what.Draw(t, "topic")
						var want []string
						for _, x := range model {
							if text := x.s + ":" + name + "1"; k.matches(x.c, name) && (!k.once || !slices.Contains(want, text)) {
								want = append(want, text)
							}
						}
						n := b.Publish(event{name, 1})
						if got := r.take(); got != strings.Join(want, " ") || n != len(want) || b.Len() != len(model) {
							t.Fatalf("%s: %d, %q, want %q of %v", name, n, got, want, model)
						}
					},
				})
			})
		})
	}
}

// K01: a bus has subscribe, unsubscribe and publish; who has published does not go with the event, which an
// actor gets from nobody.
func TestK01_EventBus(t *testing.T) {
	for _, k := range kinds {
		var r record
		b := k.make(r.deliver, 0)
		if made, err := b.Subscribe("x", "a"); !made || err != nil {
			t.Fatal(made, err)
		}
		if made, err := b.Subscribe("x", "a"); made || err != nil {
			t.Error(k.name, "subscribed twice", err)
		}
		if n := b.Publish(event{"a", 1}); n != 1 || r.take() != "x:a1" {
			t.Error(k.name, n)
		}
		if !b.Unsubscribe("x", "a") || b.Unsubscribe("x", "a") || b.Publish(event{"a", 2}) != 0 || r.take() != "" {
			t.Error(k.name, "it is still there")
		}
	}
}

// K02: only who has subscribed to the very key gets an event, and one that nobody wants costs next to nothing.
func TestK02_Lookup(t *testing.T) {
	asked := 0
	var r record
	b := eventbus.NewLookup(func(e event) string { asked++; return e.Topic }, r.deliver, 0)
	for _, x := range [][2]string{{"x", "a"}, {"y", "a"}, {"x", "b"}, {"z", "a.b"}} {
		_, _ = b.Subscribe(x[0], x[1])
	}
	if n := b.Publish(event{"a", 1}); n != 2 || r.take() != "x:a1 y:a1" || asked != 1 {
		t.Error(n, asked)
	}
	if n := b.Publish(event{"c", 1}); n != 0 || r.take() != "" {
		t.Error(n)
	}
	if n := testing.AllocsPerRun(100, func() { b.Publish(event{"c", 1}) }); n != 0 {
		t.Errorf("%v allocations for nobody", n)
	}
}

// K03: who has subscribed to a channel gets what is below it, too, each event once; and nothing that
// only begins with the same letters.
func TestK03_Subchannel(t *testing.T) {
	var r record
	b := eventbus.NewSubchannel(topicOf, r.deliver, 0)
	for _, x := range [][2]string{{"root", ">"}, {"all", "orders"}, {"eu", "orders.eu"}, {"paid", "orders.*.paid"}, {"below", "orders.>"}, {"both", "orders"}, {"both", "orders.eu.paid"}} {
		if made, err := b.Subscribe(x[0], x[1]); !made || err != nil {
			t.Fatal(x, err)
		}
	}
	for topic, want := range map[string]string{
		"orders":                "root all both",
		"orders.eu":             "root all eu below both",
		"orders.eu.paid":        "root all eu paid below both",
		"orders.eu.paid.twice":  "root all eu paid below both",
		"orders.us":             "root all below both",
		"ordersx":               "root",
		"prices.orders.eu.paid": "root",
		"":                      "",
		"orders.*":              "",
		"orders..eu":            "",
	} {
		n := b.Publish(event{topic, 1})
		if got := strings.ReplaceAll(r.take(), ":"+topic+"1", ""); got != want || n != len(strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", topic, got, want)
		}
	}
	if _, err := b.Subscribe("x", "a*"); err == nil || b.Len() != 7 {
		t.Error("no pattern, and it was taken", err, b.Len())
	}
	_ = b.Unsubscribe("both", "orders")
	if b.Publish(event{"orders.eu.paid", 2}); !strings.Contains(r.take(), "both:") {
		t.Error("its other subscription is gone, too")
	}
	if b.Publish(event{"orders.us", 2}); strings.Contains(r.take(), "both:") {
		t.Error("it is still there")
	}
}

// K04: every subscription is asked, once for each event, whatever it answers.
func TestK04_Scanning(t *testing.T) {
	for _, n := range []int{0, 1, 10, 1000} {
		asked, got := 0, 0
		b := eventbus.NewScanning(func(c int, e int) bool { asked++; return e%c == 0 }, func(int, int) { got++ }, 0)
		for i := range n {
			_, _ = b.Subscribe(i, i+1)
		}
		if hits := b.Publish(6); asked != n || hits != got || hits != min(n, 3)+max(min(n, 6)-5, 0) {
			t.Errorf("%d subscriptions: %d were asked, %d match", n, asked, hits)
		}
	}
}

// world is a system with actors that note what they are told.
type world struct {
	*host.System
	t     testing.TB
	clock *host.VirtualClock
	mu    sync.Mutex
	got   []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: host.NewVirtualClock(time.Unix(1e9, 0))}
	var err error
	if w.System, err = host.New(host.NewConfig("test").WithManual().WithClock(w.clock).WithSeed(1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

func (w *world) actor(name string) host.Ref {
	w.t.Helper()
	ref, err := w.Spawn(name, host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			return nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		var v any
		err := m.Decode(&v)
		if v == "crash" {
			return errors.New("crash")
		}
		w.got = append(w.got, fmt.Sprintf("%s:%v from %v", name, v, m.Sender))
		return err
	}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.run()
	return ref
}

func (w *world) run() { w.RunUntilIdle(1_000_000) }

func (w *world) take() string {
	w.run()
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.got = nil }()
	return strings.Join(w.got, " ")
}

type about struct {
	ref host.Ref
	n   int
}

func actorsBus(w *world, most int) *eventbus.Actors[about] {
	w.t.Helper()
	b, err := eventbus.NewActors(w.System, func(e about) host.Ref { return e.ref }, func(e about) any { return e.n }, most)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run()
	return b
}

// K05: events are keyed by the actor that they are about; an actor that ends, subscriber or subject, ends its
// subscriptions, and one that is restarted does not.
func TestK05_ManagedActors(t *testing.T) {
	w := newWorld(t)
	b := actorsBus(w, 4)
	x, y, z := w.actor("x"), w.actor("y"), w.actor("z")
	for _, s := range [][2]host.Ref{{x, z}, {y, z}, {y, y}, {x, y}} {
		if made, err := b.Subscribe(s[0], s[1]); !made || err != nil {
			t.Fatal(made, err)
		}
	}
	if made, err := b.Subscribe(x, z); made || err != nil {
		t.Error("it is there already", made, err)
	}
	if _, err := b.Subscribe(z, z); !errors.Is(err, eventbus.ErrFull) {
		t.Error(err)
	}
	if _, err := b.Subscribe(host.Ref{}, z); err == nil {
		t.Error("nobody has subscribed")
	}
	publish := func(ref host.Ref, want string) {
		t.Helper()
		n, err := b.Publish(about{ref, 1})
		if got := w.take(); err != nil || got != want || n != strings.Count(want, ":") {
			t.Errorf("%d, %v: %q, want %q", n, err, got, want)
		}
	}
	publish(z, "x:1 from nobody y:1 from nobody")
	publish(y, "y:1 from nobody x:1 from nobody")
	publish(x, "")

	_ = w.Tell(x, "crash")
	w.run()
	publish(z, "x:1 from nobody y:1 from nobody")

	w.Stop(x)
	w.run()
	if b.Len() != 2 || b.Watched() != 2 {
		t.Errorf("%d subscriptions, %d are watched", b.Len(), b.Watched())
	}
	publish(z, "y:1 from nobody")
	w.Stop(z)
	w.run()
	if b.Len() != 1 || b.Watched() != 1 {
		t.Errorf("%d subscriptions, %d are watched", b.Len(), b.Watched())
	}
	if made, err := b.Subscribe(y, z); !made || err != nil {
		t.Error(made, err)
	}
	w.run()
	if b.Len() != 1 {
		t.Error("it has subscribed to one that had ended, and is still there")
	}
	if !b.Unsubscribe(y, y) || b.Unsubscribe(y, y) || b.Len() != 0 || b.Watched() != 0 {
		t.Errorf("%d subscriptions, %d are watched", b.Len(), b.Watched())
	}
	if made, _ := b.Subscribe(y, y); !made || b.UnsubscribeAll(y) != 1 {
		t.Error("all are not gone")
	}
	b.Close()
	w.run()
	if _, err := b.Subscribe(y, y); err == nil || b.Len() != 0 || b.Watched() != 0 {
		t.Error("the bus is closed", err, b.Len(), b.Watched())
	}
}

// An event that is not delivered is not a dead letter: it cannot cause another event.
func TestLostEventsAreNoDeadLetters(t *testing.T) {
	w := newWorld(t)
	b := actorsBus(w, 0)
	x, y := w.actor("x"), w.actor("y")
	_, _ = b.Subscribe(x, y)
	w.run()
	w.Stop(x)
	for range 3 { // before it is noticed
		_, _ = b.Publish(about{y, 1})
	}
	w.run()
	if _, n := w.DeadLetters(); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// deliver may publish, subscribe and unsubscribe.
func TestDeliverMayUseTheBus(t *testing.T) {
	for _, k := range kinds {
		var b bus
		depth := 0
		b = k.make(func(e event, s string) {
			if depth++; e.N > 0 {
				_, _ = b.Subscribe(fmt.Sprint("s", e.N), "a")
				b.Unsubscribe(s, "a")
				b.Publish(event{"a", e.N - 1})
			}
		}, 0)
		_, _ = b.Subscribe("x", "a")
		b.Publish(event{"a", 5})
		if depth != 6 || b.Len() != 1 {
			t.Errorf("%s: %d were delivered, %d are left", k.name, depth, b.Len())
		}
	}
}

// Under fire: who was there all the time gets every event, once and in order; who has left gets none.
func TestBusHammer(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			const publishers, each = 4, 2000
			var last [publishers]atomic.Int64
			var wrong, late atomic.Int64
			var left sync.Map
			b := k.make(func(e event, s string) {
				if s == "steady" && e.N < 0 {
					return
				} else if s == "steady" {
					from, n := e.N/each, int64(e.N%each)
					if last[from].Swap(n+1) != n {
						wrong.Add(1)
					}
				} else if _, gone := left.Load(s); gone && strings.HasPrefix(s, fmt.Sprint(-e.N, ".")) {
					late.Add(1) // its own goroutine has published after it has left
				}
			}, 0)
			_, _ = b.Subscribe("steady", "a")
			var wg sync.WaitGroup
			for p := range publishers {
				wg.Go(func() {
					for i := range each {
						b.Publish(event{"a", p*each + i})
					}
				})
			}
			for g := 1; g <= 3; g++ {
				wg.Go(func() {
					for i := range each {
						s := fmt.Sprintf("%d.%d", g, i)
						_, _ = b.Subscribe(s, "a")
						if _, err := b.Subscribe(s, "a.b"); err != nil {
							t.Error(err)
						}
						if i%2 == 0 {
							b.Unsubscribe(s, "a")
						}
						if b.UnsubscribeAll(s) == 0 {
							wrong.Add(1)
						}
						left.Store(s, true)
						b.Publish(event{"a", -g})
					}
				})
			}
			wg.Wait()
			for p := range last {
				if last[p].Load() != each {
					wrong.Add(1)
				}
			}
			if wrong.Load() != 0 || late.Load() != 0 || b.Len() != 1 {
				t.Errorf("%d wrong, %d too late, %d left", wrong.Load(), late.Load(), b.Len())
			}
		})
	}
}

// Subscribing and leaving costs the same with many as with few: 40,000 of one key, who leave in any order.
func TestManySubscribers(t *testing.T) {
	const n = 40_000
	for _, k := range kinds {
		b := k.make(func(event, string) {}, n)
		names := make([]string, n)
		began := time.Now()
		for i := range names {
			names[i] = fmt.Sprint(i)
			if _, err := b.Subscribe(names[i], "a"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Subscribe("more", "a"); !errors.Is(err, eventbus.ErrFull) {
			t.Error(k.name, err)
		}
		if got := b.Publish(event{"a", 1}); got != n {
			t.Error(k.name, got)
		}
		for _, s := range names {
			if k.name == "subchannel" { // see BenchmarkPublish: its index is for many topics
				break
			}
			if !b.Unsubscribe(s, "a") {
				t.Fatal(k.name, s)
			}
		}
		t.Logf("%s: %v", k.name, time.Since(began))
	}
}

// The list of subscribers is copied when more than half of them have left, not before and not later.
func TestTheListShrinksByHalves(t *testing.T) {
	const n = 100
	for _, c := range []struct {
		before int // have left
		copies float64
	}{{n/2 - 2, 0}, {n/2 - 1, 1}} {
		b := eventbus.NewLookup(topicOf, func(event, string) {}, 0)
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint(i))
			_, _ = b.Subscribe(names[i], "a")
		}
		next := 0
		leave := func() { b.Unsubscribe(names[next], "a"); next++ }
		for range c.before {
			leave()
		}
		if got := testing.AllocsPerRun(1, leave); got != c.copies { // one leaves before it measures
			t.Errorf("%d of %d have left: the last one has cost %v allocations, want %v", next, n, got, c.copies)
		}
		if got := b.Publish(event{"a", 1}); got != n-next {
			t.Errorf("%d have it of %d", got, n-next)
		}
	}
}

// Who has nothing to do with each other any more is not watched any more.
func TestTheBusUnwatches(t *testing.T) {
	w := newWorld(t)
	b := actorsBus(w, 4)
	x, y := w.actor("x"), w.actor("y")
	watchers := func(ref host.Ref) int {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		i, err := w.View().Inspect(ctx, ref)
		if err != nil || i.Counts == nil {
			t.Fatal(err)
		}
		return i.Counts.Watchers
	}
	if made, err := b.Subscribe(x, y); !made || err != nil {
		t.Fatal(made, err)
	}
	w.run()
	if watchers(x) != 1 || watchers(y) != 1 {
		t.Errorf("%d and %d watch them", watchers(x), watchers(y))
	}
	b.Unsubscribe(x, y)
	w.run()
	if watchers(x) != 0 || watchers(y) != 0 {
		t.Errorf("%d and %d watch them still", watchers(x), watchers(y))
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, k := range kinds {
		for _, n := range []int{0, 1, 10, 1000} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				x := k.make(func(event, string) {}, 0)
				for i := range n {
					_, _ = x.Subscribe(fmt.Sprint(i), "a")
				}
				b.ReportAllocs()
				for b.Loop() {
					x.Publish(event{"a", 1})
				}
			})
		}
	}
	for _, n := range []int{0, 1, 10, 1000} {
		b.Run(fmt.Sprintf("actors/%d", n), func(b *testing.B) {
			w := newWorld(b)
			x := actorsBus(w, 0)
			subject := w.actor("subject")
			for i := range n {
				_, _ = x.Subscribe(w.actor(fmt.Sprint("s", i)), subject)
			}
			w.run()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = x.Publish(about{subject, 1})
				w.run()
				w.got = w.got[:0]
			}
		})
	}
}
