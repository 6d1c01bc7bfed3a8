package beats

import (
	"context"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The timers of docs/guide/timers.md, in Go and in a guest of standard Go, which batches: fixed rate
// keeps to its grid when a turn is late, fixed delay does not, and nothing comes after a cancel or
// from before a restart.
func TestTimersInGo(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	sys, err := host.New(host.NewConfig("beats").WithManual().WithClock(clock).WithSeed(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(context.Background()) }()
	ref, err := sys.Spawn("meter", Meter())
	if err != nil {
		t.Fatal(err)
	}
	timers(t, sys, clock, ref)
}

func TestTimersInAGuest(t *testing.T) {
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
	sys.RunUntilIdle(1000)
	ref, err := sys.Lookup("/user/meter")
	if err != nil {
		t.Fatal(err)
	}
	timers(t, sys, clock, ref)
}

func timers(t *testing.T, sys *host.System, clock *host.VirtualClock, ref host.Ref) {
	t.Helper()
	sys.RunUntilIdle(1000)
	const ms = time.Millisecond
	pass := func(ds ...time.Duration) {
		for _, d := range ds {
			clock.Advance(d)
			sys.RunUntilIdle(1000)
		}
	}
	asks := func(order, want string) {
		t.Helper()
		p, err := sys.Request(ref, order)
		if err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(1000)
		var got string
		if m := <-p.Answer(); m.Err() != nil || m.Decode(&got) != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", order, got, m.Err(), want)
		}
	}
	pass(100*ms - 1)
	asks("", "0 0 false")
	pass(1)
	asks("", "1 1 false")
	pass(250 * ms) // at 350 ms, as if a turn had taken so long: one of each, what was missed is left out
	asks("", "2 2 false")
	pass(50 * ms) // at 400 ms: the grid
	asks("", "3 2 false")
	pass(50 * ms) // at 450 ms: 100 ms after the turn before
	asks("", "3 3 false")
	pass(50 * ms) // at 500 ms
	asks("later", "4 3 false")
	pass(50*ms, 50*ms, 399*ms) // just before 1 s: the first one-shot was replaced
	asks("", "6 5 false")
	pass(501 * ms) // at 1.5 s
	asks("", "7 6 true")
	clock.Advance(time.Second) // both have rung, and wait before the order
	asks("stop", "8 7 true")
	pass(10 * time.Second)
	asks("", "8 7 true")
	if err := sys.Operate().Restart(ref); err != nil { // starts over
		t.Fatal(err)
	}
	sys.RunUntilIdle(1000)
	pass(50 * ms)
	if err := sys.Operate().Restart(ref); err != nil {
		t.Fatal(err)
	}
	sys.RunUntilIdle(1000)
	pass(50 * ms) // nothing of the incarnation before
	asks("", "0 0 false")
	pass(50 * ms)
	asks("", "1 1 false")
}
