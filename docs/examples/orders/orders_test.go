package orders

import (
	"context"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of docs/guide/messages.md: a clerk buys at the shop, and so does Go.
func TestBundle(t *testing.T) {
	m, err := bundle.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CheckMessages(); err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b, err := bundle.Open(ctx, m, bundle.Options{Compiler: "go", CacheDir: servicetest.CacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	sys, err := b.Start(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	clerk, err := sys.Lookup("/user/clerk")
	if err != nil {
		t.Fatal(err)
	}
	shop, err := sys.Lookup("/user/shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.Tell(clerk, map[string]any{"shop": shop.UID()}); err != nil {
		t.Fatal(err)
	}
	if n, err := host.AskAs[int64](ctx, sys, clerk, "tea"); err != nil || n != 1 {
		t.Errorf("the clerk bought number %d, %v", n, err)
	}
	if n, err := Buy(ctx, sys, host.To[*Order](shop), "tea"); err != nil || n != 2 {
		t.Errorf("Go bought number %d, %v", n, err)
	}
}

func TestShopInGo(t *testing.T) {
	p, err := Shop()
	if err != nil {
		t.Fatal(err)
	}
	sys, err := host.New(host.NewConfig("app"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	shop, err := sys.Spawn("shop", p)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Buy(t.Context(), sys, host.To[*Order](shop), "tea"); err != nil || n != 1 {
		t.Errorf("number %d, %v", n, err)
	}
}
