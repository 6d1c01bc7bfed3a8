package durable

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// Actors that are back have the arguments that they began with, those below others too, whatever their props say now.
func TestOtherArguments(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	with := func(n byte) Props {
		starts := func() []byte { return rec(0, 0, send("/user/outside", text(string('a'+rune(n))))) }
		image := puppetImage(t)
		return Props{"p": puppet(image, starts()).WithChildren(host.Child{Name: "kid", Props: puppet(image, rec(recAdd, n), starts()).
			WithChildren(host.Child{Name: "kid", Props: puppet(image, rec(recAdd, n), starts())})})}
	}
	for _, checkpoint := range []bool{false, true} {
		w, err := live(t, crashfs.New(), host.NewVirtualClock(begun), with(1), false)
		if err != nil {
			t.Fatal(err)
		}
		w.rest()
		if checkpoint {
			if err := w.store.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := w.look()
		for _, late := range []bool{false, true} {
			back, err := live(t, w.fs.Copy(), host.NewVirtualClock(begun), with(2), late)
			if err != nil {
				t.Fatalf("checkpoint %v, late %v: %v", checkpoint, late, err)
			}
			back.rest()
			for path, x := range back.look() {
				if want[path] != x {
					t.Errorf("checkpoint %v, late %v: %s: %s", checkpoint, late, path, around(want[path], x))
				}
			}
			back.end(t)
		}
		w.end(t)
	}
}
