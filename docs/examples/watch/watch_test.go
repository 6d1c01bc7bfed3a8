package watch

import (
	"context"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/events"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of docs/guide/events.md: the warden hears of what goes wrong in the shop, and of no greeting that got lost.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m, err := bundle.LoadWith(".", nil, events.Service)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(ctx, m, bundle.Options{Compiler: "go", CacheDir: servicetest.CacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	sys, err := b.Start(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	failures := Failures(sys, "/user/")
	at := map[string]host.Ref{}
	for _, name := range []string{"warden", "shop"} {
		if at[name], err = sys.Lookup("/user/" + name); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []string{"order", "greet", "fail", "order", "fail"} {
		if err := sys.Tell(at["shop"], what); err != nil {
			t.Fatal(err)
		}
		_ = sys.Idle(ctx)
	}
	for what, want := range map[string]int64{"lifecycle.failed /user/shop": 2, "dead-letters.unknown /user/shop/clerk": 2} {
		for got := int64(-1); got != want; time.Sleep(time.Millisecond) {
			if got, err = host.AskAs[int64](ctx, sys, at["warden"], what); err != nil || got > want {
				t.Fatalf("%s: %d, want %d, %v", what, got, want, err)
			}
		}
	}
	if e := <-failures.C(); e.Ref != at["shop"] {
		t.Error(e.Ref)
	}
	_ = sys.Close(context.Background())
}

func TestAlerts(t *testing.T) {
	got := ""
	bus := Alerts(func(a Alert, who string) { got += who + ":" + a.Text + ";" })
	for who, topic := range map[string]string{"ann": "payments", "bob": "payments.refunded"} {
		if _, err := bus.Subscribe(who, topic); err != nil {
			t.Fatal(err)
		}
	}
	if n := bus.Publish(Alert{"payments.declined", "no"}); n != 1 || got != "ann:no;" {
		t.Error(n, got)
	}
}

func TestMoves(t *testing.T) {
	sys, err := host.New(host.NewConfig("game"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	moves, err := Moves(sys)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 10)
	follower, _ := sys.Spawn("follower", host.Func(func(_ *host.Context, m host.Message) error {
		var to string
		err := m.Decode(&to)
		got <- to
		return err
	}))
	player, _ := sys.Spawn("player", host.Func(func(*host.Context, host.Message) error { return nil }))
	if _, err := moves.Subscribe(follower, player); err != nil {
		t.Fatal(err)
	}
	if n, err := moves.Publish(Move{player, "north"}); n != 1 || err != nil || <-got != "north" {
		t.Error(n, err)
	}
	sys.Stop(player)
	for moves.Len() != 0 {
		time.Sleep(time.Millisecond)
	}
}
