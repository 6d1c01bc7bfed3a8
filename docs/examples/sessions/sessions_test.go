package sessions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of docs/guide/keyed.md: each user has a cart, which ends when it is idle, and begins
// anew. The guest is one of standard Go, which batches.
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
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	sys, err := b.Start(func(c host.Config) host.Config { return c.WithManual().WithClock(clock).WithSeed(1) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	sys.RunUntilIdle(10_000)
	shop, err := sys.Lookup("/user/shop")
	if err != nil {
		t.Fatal(err)
	}
	put := func(what, want string) {
		t.Helper()
		p, err := sys.Request(shop, what)
		if err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(10_000)
		var got string
		m := <-p.Answer()
		if err := m.Err(); err != nil {
			got = err.Error()
		} else if err := m.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got != want && (want != "" || !strings.Contains(got, "not a key")) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	put("ann tea", "tea")
	put("bob rum", "rum")
	put("ann jam", "tea, jam")
	clock.Advance(10 * time.Minute)
	sys.RunUntilIdle(10_000)
	if n := len(sys.Select("/user/carts/*")); n != 0 {
		t.Errorf("%d carts are left", n)
	}
	put("ann bun", "bun")
	if err := sys.TellPath("/user/carts/ann", "pie"); err != nil {
		t.Fatal(err)
	}
	put("ann ham", "bun, pie, ham")
	put("a\nb x", "")
	// A guest that crashes keeps nobody else from its cart.
	for _, ref := range sys.Select("/user/carts/ann") {
		if err := sys.Operate().Crash(ref, 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	sys.RunUntilIdle(10_000)
	put("ann egg", "egg")
}

type cart struct{ things []string }

func (c *cart) Receive(ctx *host.Context, m host.Message) error {
	var thing string
	if err := m.Decode(&thing); err != nil {
		return err
	}
	c.things = append(c.things, thing)
	return ctx.Reply(strings.Join(c.things, ", "))
}

func TestCarts(t *testing.T) {
	sys, err := host.New(host.NewConfig("app"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(context.Background()) }()
	carts, err := sys.Spawn("carts", Carts(host.Native(func() host.Actor { return &cart{} })))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{{"ann", "tea", "tea"}, {"b/b", "rum", "rum"}, {"ann", "jam", "tea, jam"}} {
		if got, err := Put(t.Context(), sys, carts, c[0], c[1]); err != nil || got != c[2] {
			t.Errorf("%v: %q, %v", c, got, err)
		}
	}
	if users, err := Users(t.Context(), sys, carts); err != nil || !slices.Equal(users, []string{"ann", "b/b"}) {
		t.Error(users, err)
	}
	if err := keyed.Passivate(t.Context(), sys, carts, "ann"); err != nil {
		t.Fatal(err)
	}
	if got, err := Put(t.Context(), sys, carts, "ann", "bun"); err != nil || got != "bun" {
		t.Error(got, err)
	}
	if _, err := Ask(t.Context(), sys, "/user/carts/eve", "tea"); err != nil { // who is not there
		t.Error(err)
	}
	if _, err := Ask(t.Context(), sys, "/user/carts/e e", "tea"); !errors.Is(err, host.ErrUnknown) {
		t.Error(err)
	}
}
