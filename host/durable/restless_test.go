package durable

import (
	"context"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
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

// A start repeats a restart with a delay that keeps the children, also if the process has ended during the delay.
func TestKilledInADelayThatKeepsChildren(t *testing.T) {
	image := puppetImage(t)
	slow, err := backoff.Spec{Min: time.Hour, Max: time.Hour}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	delayed := supervision.Default().WithOtherwise(supervision.Restart).WithKeepChildren(true).WithBackoff(supervision.Backoff{Policy: slow})
	parent := puppet(image).WithSupervision(delayed).WithChildren(host.Child{Name: "kid", Props: puppet(image).WithChildren(host.Child{Name: "below", Props: puppet(image)})})
	w := mustOpen(t, t.TempDir(), Props{"parent": parent})
	for life := range 3 {
		if life == 0 {
			eventually(t, func() bool { return w.TellPath("/user/parent/kid/below", add) == nil })
			w.report("parent/kid/below")
			w.tell("parent/kid", script(rec(0, trap)))
		}
		eventually(t, func() bool { return w.report("parent/kid/below") == 0 }) // it was restarted with its parent
		if _, err := w.Lookup("/user/parent/kid"); err != nil {
			t.Errorf("life %d: %v", life, err)
		}
		dir := w.killed()
		w.close()
		w = mustOpen(t, dir, w.props)
	}
	w.close()
}

// The same for one that waits until its siblings have ended, and whose last child has.
func TestKilledInADelayOfAGroup(t *testing.T) {
	image := puppetImage(t)
	slow, err := backoff.Spec{Min: time.Hour, Max: time.Hour}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	group := supervision.Default().WithOtherwise(supervision.Restart).WithKind(supervision.RestForOne).WithBackoff(supervision.Backoff{Policy: slow})
	child := func(name string, p host.Props) host.Child { return host.Child{Name: name, Props: p} }
	kid := puppet(image).WithSupervision(supervision.Default().WithOtherwise(supervision.Escalate)).WithChildren(child("below", puppet(image)), child("beside", puppet(image)))
	w := mustOpen(t, t.TempDir(), Props{"parent": puppet(image).WithSupervision(group).WithChildren(child("kid", kid), child("next", kid))})
	eventually(t, func() bool { return w.TellPath("/user/parent/kid/below", script(rec(0, trap))) == nil })
	eventually(t, func() bool { _, err := w.Lookup("/user/parent/next/below"); return err != nil })
	for range 3 {
		w.report("parent")
		dir := w.killed()
		w.close()
		w = mustOpen(t, dir, w.props)
	}
	w.close()
}

// A guest that stashes the envelope of its start does not keep the system from its next start.
func TestStashedStarts(t *testing.T) {
	image := puppetImage(t)
	stashes := puppet(image, rec(byte(abi.KindStart), last, abi.AppendStash(nil)), rec(byte(abi.KindChildFailed), last, abi.AppendStash(nil))).
		WithSupervision(supervision.Default().WithOtherwise(supervision.Ask)).WithChildren(host.Child{Name: "kid", Props: puppet(image)})
	w := mustOpen(t, t.TempDir(), Props{"a": stashes})
	for life := range 3 {
		for range 2 {
			w.report("a")
			eventually(t, func() bool { return w.TellPath("/user/a/kid", script(rec(0, trap))) == nil })
			w.tell("a", script(rec(0, last, abi.AppendUnstash(nil))))
			w.report("a")
			ref, err := w.Lookup("/user/a")
			if err == nil {
				err = w.Operate().Restart(ref)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if w.report("a"); life > 0 {
			w.checkpoint()
		}
		dir := w.killed()
		w.close()
		w = mustOpen(t, dir, w.props)
	}
	w.close()
}
