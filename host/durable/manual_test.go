package durable

import (
	"context"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// A manual system is stepped by one goroutine. With a real store it makes no checkpoint by itself, however much was written; the
// goroutine that steps it can make one between two steps, also while a turn waits for the disk.
func TestCheckpointsOfAManualSystem(t *testing.T) {
	image := puppetImage(t)
	store, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	props := Props{"a": puppet(image)}
	x, err := store.Prepare(host.NewConfig("w").WithManual(), props)
	if err != nil {
		t.Fatal(err)
	}
	sys := x.System()
	defer func() { _ = sys.Close(t.Context()) }()
	if _, err := x.Recover(); err != nil {
		t.Fatal(err)
	}
	a, err := sys.Spawn("a", props["a"])
	if err != nil {
		t.Fatal(err)
	}
	x.Release()
	store.due.Store(1)
	last := func() Checkpointed {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.last
	}
	for range 1000 {
		if err := sys.Tell(a, host.Raw(add)); err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(1 << 30)
	}
	if n := last().Count; n != 0 {
		t.Errorf("%d checkpoints were made by themselves", n)
	}
	if err := sys.Tell(a, host.Raw(add)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := store.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if n := last(); n.Count != 1 || n.Actors != 1 {
		t.Errorf("%+v", n)
	}
}
