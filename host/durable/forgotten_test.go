package durable

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// An actor can be forgotten after it has failed, stopped, or restarted: what its guardian was told of it is left out, too.
func TestWhoHasFailedIsForgotten(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	a := puppet(puppetImage(t))
	for name, what := range map[string]func(w *lived, ref host.Ref){
		"failed":  func(w *lived, ref host.Ref) { _ = w.Tell(ref, script(rec(0, trap))) },
		"stopped": func(w *lived, ref host.Ref) { w.Stop(ref) },
		"crashed": func(w *lived, ref host.Ref) { _ = w.Operate().Crash(ref, 0, "") },
	} {
		w, err := live(t, crashfs.New(), host.NewVirtualClock(begun), Props{"a": a, "b": a}, false)
		if err != nil {
			t.Fatal(err)
		}
		w.rest()
		ref, err := w.Lookup("/user/a")
		if err != nil {
			t.Fatal(err)
		}
		what(w, ref)
		w.rest()
		fs := w.fs.Copy()
		w.end(t)
		s, err := Open(Options{Dir: "store", FS: fs, Sim: &Sim{Rand: rand.NewChaCha8([32]byte{2}), Segment: 64 << 10, Secret: historySecret}})
		if err == nil {
			err = s.Forget(t.Context(), "w", "a")
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
		back, err := live(t, fs, host.NewVirtualClock(begun), Props{"b": a}, false)
		if err != nil {
			t.Errorf("it had %s: %v", name, err)
			continue
		}
		back.end(t)
	}
}
