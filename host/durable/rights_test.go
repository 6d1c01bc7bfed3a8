package durable

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// What an actor may do changes between two lives: what is repeated comes to the same, also the memory of guests, which have the services
// in it, and nothing takes effect later that was denied.
func TestOtherRights(t *testing.T) {
	base := puppetOf(host.Guest(historyImage(t), "puppet"))
	told := []func(w *lived){
		does("p0", 0, cmd{Op: "stop", Path: "p1"}, cmd{Op: "send", Path: "p1"}, cmd{Op: "ask", Path: "p1", Key: 1, D: time.Hour}),
		does("p0", 0, cmd{Op: "serve", Key: 1, D: time.Hour}, cmd{Op: "serve", Key: 2, D: time.Hour}, cmd{Op: "spawn", Name: "s0"}),
		does("p0/s0", 0, cmd{Op: "send", Path: "p0"}),
		does("p0", trap),
	}
	many := []role{{}, {Rights: 1}, {Rights: 2}, {Rights: 3}, {Services: 1}, {Services: 3}, {Rights: 3, Services: 2}}
	for i, a := range many {
		for j, b := range many {
			if i == j {
				continue
			}
			t.Run(fmt.Sprint(i, ", then ", j), func(t *testing.T) {
				s := supervision.Default().WithOtherwise(supervision.Restart)
				props := func(r role) Props {
					return Props{"p0": r.rights(base).WithSupervision(s), "p1": base}
				}
				w := toldTo(t, props(a), told...)
				defer w.end(t)
				want := w.look()
				for _, checkpoint := range []bool{false, true} {
					if checkpoint {
						if err := w.store.Checkpoint(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					back := &lived{fs: w.fs.Copy(), clock: host.NewVirtualClock(w.clock.Now()), props: props(b)}
					x, err := back.begin(t, false)
					if err != nil {
						t.Fatalf("checkpoint %v: %v", checkpoint, err)
					}
					for path, got := range back.look() { // who had stopped begins anew
						if got != want[path] && want[path] != "" {
							t.Errorf("checkpoint %v: %s is %s, and was %s", checkpoint, path, around(got, want[path]), around(want[path], got))
						}
					}
					x.Release()
					back.rest()
					has := back.look()
					for path := range want {
						if turnsOf(has[path]) != turnsOf(want[path]) {
							t.Errorf("checkpoint %v: %s has gone on: %s", checkpoint, path, around(has[path], want[path]))
						}
					}
					back.end(t)
				}
			})
		}
	}
}

// The children of a manifest have another order, and there are more and fewer: who restarts with a sibling, and when, is as it was.
func TestOtherOrders(t *testing.T) {
	base := puppet(puppetImage(t))
	for _, kind := range []supervision.Kind{supervision.AllForOne, supervision.RestForOne} {
		family := func(names string) Props {
			var kids []host.Child
			for _, name := range names {
				kids = append(kids, host.Child{Name: string(name), Props: base})
			}
			return Props{"p": base.WithSupervision(supervision.Default().WithKind(kind).WithOtherwise(supervision.Restart)).WithChildren(kids...)}
		}
		for _, names := range []string{"cba", "nabc", "abcn", "bc", "c", "ncamb", ""} {
			for failing := range 3 {
				w := toldTo(t, family("abc"), does("p/"+string("abc"[failing]), trap))
				want := w.look()
				back := &lived{fs: w.fs.Copy(), clock: host.NewVirtualClock(w.clock.Now()), props: family(names)}
				x, err := back.begin(t, false)
				if err != nil {
					t.Fatalf("%v, then %q, failing %d: %v", kind, names, failing, err)
				}
				for path, got := range back.look() {
					if got != want[path] && want[path] != "" && path != "/user/p" { // which has new children
						t.Errorf("%v, then %q, failing %d: %s is %s", kind, names, failing, path, around(got, want[path]))
					}
				}
				x.Release()
				back.rest()
				for _, name := range names {
					if _, err := back.Lookup("/user/p/" + string(name)); err != nil {
						t.Errorf("%v, then %q, failing %d: %c: %v", kind, names, failing, name, err)
					}
				}
				again, err := live(t, back.fs.Copy(), host.NewVirtualClock(w.clock.Now()), family("abc"), true)
				if err != nil {
					t.Fatalf("%v, then %q, failing %d, and back: %v", kind, names, failing, err)
				}
				again.end(t)
				back.end(t)
				w.end(t)
			}
		}
	}
}
