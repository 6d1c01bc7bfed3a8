package durable

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/supervision"
)

// An actor that fails because its mailbox is full of refusals fails again when its turns are repeated, at any time. With several refusals in
// a turn how full it is differs then.
func TestWhoIsFullOfRefusalsFailsAgain(t *testing.T) {
	asks := func(n uint64) (all []byte) {
		for i := range n {
			all = abi.AppendAsk(all, 0, "nobody*", i+1, uint64(time.Second), nil, add) // it is refused
		}
		return all
	}
	for n := uint64(2); n <= 5; n++ {
		props := Props{"parent": puppet(puppetImage(t)).WithSupervision(supervision.Default().WithOtherwise(supervision.Suspend)).WithChildren(host.Child{Name: "a", Props: puppet(puppetImage(t),
			rec(byte(abi.KindReplyError), last, asks(n)), rec(recAdd, 1)).WithLimits(host.Limits{Mailbox: 3})})}
		begun := time.Unix(1_700_000_000, 0)
		w, err := live(t, crashfs.New(), host.NewVirtualClock(begun), props, false)
		if err != nil {
			t.Fatal(err)
		}
		w.rest()
		ref, err := w.Lookup("/user/parent/a")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Tell(ref, script(rec(0, last, asks(2)))); err != nil {
			t.Fatal(err)
		}
		for steps := range 60 {
			back, err := live(t, w.fs.Copy(), host.NewVirtualClock(begun), props, false)
			if err != nil {
				t.Fatalf("%d refusals a turn: after %d steps: %v", n, steps, err)
			}
			back.end(t)
			w.Step()
			w.store.Work()
		}
		w.rest()
		want := w.look()
		back, err := live(t, w.fs.Copy(), host.NewVirtualClock(begun), props, false)
		if err != nil {
			t.Fatal(err)
		}
		back.rest()
		failed := 0
		for path, x := range back.look() {
			if want[path] != x {
				t.Errorf("%d refusals a turn: %s", n, around(want[path], x))
			}
			if strings.Contains(x, "Life:failed") {
				failed++
			}
		}
		if n > 1 && failed != 1 {
			t.Errorf("%d refusals a turn: %d have failed", n, failed)
		}
		back.end(t)
		w.end(t)
	}
}
