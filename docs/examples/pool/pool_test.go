package pool

import (
	"context"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of docs/guide/routers.md: all visits of a user come to the same counter.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m, err := bundle.Load(".")
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
	front, err := sys.Lookup("/user/front")
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= 3; n++ {
		for _, user := range []string{"ann", "bob", "eve", "joe"} {
			if got, err := host.AskAs[int64](ctx, sys, front, user); err != nil || got != n {
				t.Errorf("visit %d of %s is counted as %d, %v", n, user, got, err)
			}
		}
	}
	if n, err := host.AskAs[int64](ctx, sys, front, "reset"); err != nil || n != 9 {
		t.Errorf("then there are %d counters, %v", n, err)
	}
	if got, err := host.AskAs[int64](ctx, sys, front, "ann"); err != nil || got != 1 {
		t.Errorf("after a reset a first visit is counted as %d, %v", got, err)
	}
}

func start(t *testing.T, p host.Props) (*host.System, host.Ref) {
	t.Helper()
	s, err := host.New(host.NewConfig("app"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	ref, err := s.Spawn("router", p)
	if err != nil {
		t.Fatal(err)
	}
	return s, ref
}

var echo = host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Reply(ctx.Self().Path()) })

func TestRouters(t *testing.T) {
	s, r := start(t, Counters(echo))
	if err := Reset(t.Context(), s, r); err != nil {
		t.Fatal(err)
	}
	at, err := router.Routees(t.Context(), s, r)
	if err != nil || len(at) < 2 {
		t.Fatalf("%v, %v", at, err)
	}
	g, err := s.Spawn("replicas", Replicas(at...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.AskAs[string](t.Context(), s, g, 1); err != nil {
		t.Error(err)
	}
}

func TestSticky(t *testing.T) {
	s, r := start(t, router.Pool(5, echo, Sticky).Props())
	in := s.Inbox(0)
	defer in.Close()
	first := ""
	for range 10 {
		if err := in.Tell(r, 1); err != nil {
			t.Fatal(err)
		}
		m, err := in.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var at string
		if err := m.Decode(&at); err != nil || first != "" && at != first {
			t.Errorf("%s after %s, %v", at, first, err)
		}
		first = at
	}
}
