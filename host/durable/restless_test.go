package durable

import (
	"context"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// An actor that fails at each start, and begins again at once, does not keep the others from a checkpoint: otherwise the store would
// grow without end. It goes on afterwards, and in the next process.
func TestCheckpointsBesideAnActorThatFailsAtEachStart(t *testing.T) {
	image := puppetImage(t)
	fails := puppet(image, rec(byte(abi.KindStart), trap))
	quits := puppet(image, rec(byte(abi.KindStart), last, abi.AppendStop(nil, 0, "/user/quits"))).WithLifetime(supervision.Permanent)
	kept := supervision.Default().WithOtherwise(supervision.Restart).WithKeepChildren(true)
	all := Props{
		"fails": fails, "quits": quits, "a": puppet(image),
		"parent":    puppet(image).WithSupervision(kept).WithChildren(host.Child{Name: "kid", Props: fails}),
		"escalates": puppet(image).WithSupervision(kept.WithOtherwise(supervision.Escalate)).WithChildren(host.Child{Name: "kid", Props: fails}),
		"group":     puppet(image).WithSupervision(kept.WithKind(supervision.AllForOne)).WithChildren(host.Child{Name: "one", Props: fails}, host.Child{Name: "two", Props: puppet(image)}),
	}
	for name, p := range all {
		if name == "a" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := mustOpen(t, t.TempDir(), Props{"a": all["a"], name: p})
			for life := range 3 {
				w.tell("a", add)
				if n := w.report("a"); int(n) != life+1 {
					t.Errorf("life %d: a has counted %d", life, n)
				}
				before := w.View().Totals().Restarts
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := w.store.Checkpoint(ctx); err != nil {
					t.Fatal(err)
				}
				cancel()
				eventually(t, func() bool { return w.View().Totals().Restarts > before }) // it goes on
				dir := w.killed()
				w.close()
				w = mustOpen(t, dir, w.props)
			}
			w.close()
		})
	}
}
