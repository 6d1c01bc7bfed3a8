package bundle

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/upgrade"
)

var fixture = flag.String("fixture", "", "write a store as this release does, to a folder of this name in testdata/stores")

// writeStore makes a store whose actors have come to other code in each way, before a checkpoint and after it.
func writeStore(t *testing.T, to string) {
	k := startKeeping(t, t.TempDir(), "tally1")
	k.ask("a")
	k.ask("a")
	k.ask("b")
	k.upgrade("tally2")
	k.ask("a")
	if err := k.b.Store().Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	k.ask("b")
	k.upgrade("tally1")
	k.ask("a")
	k.upgrade("tally2")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := k.b.PrepareModule(ctx, "m", tallyOf(t, "tally1"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	done, _ := c.Upgrade(ctx, k.sys, upgrade.Options{Probation: time.Minute, Wait: func(context.Context, time.Duration) { cancel() }}, nil)
	if len(done) != 1 || !done[0].RolledBack {
		t.Fatalf("%+v", done)
	}
	if a, b := k.ask("a"), k.ask("b"); a != 205 || b != 203 {
		t.Fatal(a, b)
	}
	k.end()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(filepath.Join(k.dir, "state"))); err != nil {
		t.Fatal(err)
	}
}

// Stores with upgrades open for ever: each folder of testdata/stores is one as a release has written it, with the code that it keeps. Their
// actors come back with their states, and go over to whatever code the manifest names.
func TestStoresWithUpgradesOfEachRelease(t *testing.T) {
	stores := filepath.Join("testdata", "stores")
	if *fixture != "" {
		writeStore(t, filepath.Join(stores, *fixture))
	}
	all, err := filepath.Glob(filepath.Join(stores, "v*"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, from := range all {
		for module, version := range map[string]uint64{"tally1": 100, "tally2": 200} {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "state"), os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "state", "secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			for life := range uint64(3) {
				k := startKeeping(t, dir, module)
				if a, b, c := k.ask("a"), k.ask("b"), k.ask("c"); a != version+6+life || b != version+4+life || c != version+1 {
					t.Errorf("%s with %s, life %d: %d %d %d", from, module, life, a, b, c)
				}
				if life == 1 {
					if err := k.b.Store().Checkpoint(context.Background()); err != nil {
						t.Error(err)
					}
				}
				k.end()
			}
		}
	}
}
