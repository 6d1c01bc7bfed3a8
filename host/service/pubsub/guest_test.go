package pubsub_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/pubsub"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runtime.CompileMain()
	code := m.Run()
	servicetest.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func guest(t testing.TB, typ string, args any) host.Props {
	t.Helper()
	return host.GuestOf(servicetest.Module(t), typ).WithArgs(args)
}

// bench is a system with the service, on virtual time.
type bench struct {
	testing.TB
	*host.System
	clock *host.VirtualClock
	svc   host.Ref
}

func start(t testing.TB, s *pubsub.Settings) *bench {
	t.Helper()
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	sys, err := host.New(host.NewConfig("test").WithClock(clock).WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	running, err := pubsub.Service.Start(sys, nil, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sys.Close(context.Background())
		if err := running.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &bench{t, sys, clock, running.Ref()}
}

var all = pubsub.Grant{Publish: []string{">"}, Subscribe: []string{">"}}

func granted(p host.Props, g pubsub.Grant) host.Props {
	return p.WithGrant("pubsub", pubsub.Service.Grant(g, service.Bounds{}))
}

func (b *bench) spawn(name string, p host.Props) host.Ref {
	b.Helper()
	ref, err := b.Spawn(name, p)
	if err != nil {
		b.Fatal(err)
	}
	return ref
}

// ask is what an actor answers, as a text, or the reason why it does not.
func (b *bench) ask(who host.Ref, v any) string {
	b.Helper()
	m, err := b.Ask(b.Context(), who, v)
	if err != nil {
		return strings.TrimPrefix(err.Error(), "host: the actor replied with an error: ")
	}
	var got any
	if err := m.Decode(&got); err != nil {
		b.Fatal(err)
	}
	return fmt.Sprint(got)
}

func (b *bench) settle() {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.Idle(ctx); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) expect(what, got, want string) {
	b.Helper()
	if got != want {
		b.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (b *bench) heard(who host.Ref, want string) {
	b.Helper()
	b.settle()
	b.expect(who.Name()+" has heard", b.ask(who, "heard"), want)
}

// Guests in standard Go publish and subscribe with the SDK.
func TestGuests(t *testing.T) {
	b := start(t, nil)
	till := b.spawn("till", granted(guest(t, "pubsub-writer", nil), pubsub.Grant{Publish: []string{"orders.>"}}))
	shop := b.spawn("shop", granted(guest(t, "pubsub-reader", "orders.*.paid"), pubsub.Grant{Subscribe: []string{"orders.>"}}))
	board := b.spawn("board", granted(guest(t, "pubsub-reader", map[string]any{"pattern": "orders.>", "window": 1}), all))
	b.settle()
	b.expect("two take it", b.ask(till, []any{"orders.7.paid", "x"}), "[2 0]")
	b.expect("one takes it", b.ask(till, []any{"orders.7", "y"}), "[1 0]")
	b.expect("not granted", b.ask(till, []any{"prices.7", "y"}), "denied: publish of prices.7 is not granted; capabilities.pubsub.publish in the manifest would allow it")
	b.expect("a pattern", b.ask(till, []any{"orders.*", "y"}), `bad_request: the topic "orders.*": * is for patterns`)
	b.expect("retained", b.ask(till, []any{"orders.8.paid", "z", true}), "[2 0]")
	b.heard(shop, "orders.7.paid=x;orders.8.paid=z;")
	b.heard(board, "orders.7.paid=x;orders.7=y;orders.8.paid=z;")
	late := b.spawn("late", granted(guest(t, "pubsub-reader", map[string]any{"pattern": "orders.>", "retained": true}), all))
	b.heard(late, "orders.8.paid=z retained;")

	narrow := b.spawn("narrow", granted(guest(t, "pubsub-reader", "orders.>"), pubsub.Grant{Subscribe: []string{"orders.*", "orders.*.paid"}}))
	b.heard(narrow, "denied: subscribe of orders.> is not granted; capabilities.pubsub.subscribe in the manifest would allow it;")
	b.expect("without a grant", b.ask(b.spawn("poor", guest(t, "pubsub-writer", nil)), []any{"orders.7", "x"}),
		"denied: the actor was started without the service pubsub: add pubsub to its capabilities in the manifest, unless the host does not run it")

	b.expect("the end of a subscription", b.ask(shop, "unsubscribe"), "<nil>")
	if err := b.StopGracefully(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	b.settle()
	b.expect("one is left", b.ask(till, []any{"orders.9.paid", "x"}), "[1 0]")
	b.heard(shop, "")
	b.heard(board, "orders.9.paid=x;")
}

// A restart of the subscriber takes the old subscription's place; what a failed turn was about is lost, and
// nothing else, whether the subscriber starts over or goes on.
func TestGuestFails(t *testing.T) {
	b := start(t, nil)
	till := b.spawn("till", granted(guest(t, "pubsub-writer", nil), all))
	for _, d := range []supervision.Directive{supervision.Restart, supervision.Resume} {
		name := fmt.Sprint(d)
		boss := b.spawn("boss-"+name, host.Func(func(*host.Context, host.Message) error { return nil }).
			WithSupervision(supervision.Default().WithOtherwise(d).WithMaxRestarts(1000, time.Hour)).
			WithChildren(host.Child{Name: name, Props: granted(guest(t, "pubsub-reader", map[string]any{"pattern": name + ".>", "window": 2}), all)}))
		b.settle()
		reader, err := b.Lookup(boss.Path() + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		topic := name + ".x"
		for i := range 20 {
			b.expect("taken", b.ask(till, []any{topic, fmt.Sprint(i)}), "[1 0]")
			b.settle()
			b.expect("taken", b.ask(till, []any{topic, "fail"}), "[1 0]")
			b.settle()
		}
		b.expect("taken", b.ask(till, []any{topic, "last"}), "[1 0]")
		b.settle()
		got := b.ask(reader, "heard")
		if want := topic + "=last;"; !strings.HasSuffix(got, want) || d == supervision.Resume && strings.Count(got, ";") != 21 {
			t.Errorf("%v: %q", d, got)
		}
	}
}

func TestFlood(t *testing.T) {
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	running, err := pubsub.Service.Start(sys, nil, &pubsub.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	servicetest.Flood(t, sys, running, pubsub.Service.Grant(all, service.Bounds{}), "publish", func(i int) any {
		return map[string]any{"topic": fmt.Sprintf("a.%d", i%100), "value": i, "retain": true}
	})
	_ = sys.Close(context.Background())
	if err := running.Wait(context.Background()); err != nil {
		t.Error(err)
	}
}
