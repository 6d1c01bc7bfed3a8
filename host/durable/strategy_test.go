package durable

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// strategies are those that a manifest changes between two lives.
func strategies(t testing.TB) map[string]supervision.Strategy {
	t.Helper()
	slow, err := backoff.Spec{Min: 20 * time.Millisecond, Max: time.Second, Jitter: "full"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	with := func(d supervision.Directive) supervision.Strategy { return supervision.Default().WithOtherwise(d) }
	restart := with(supervision.Restart)
	return map[string]supervision.Strategy{
		"restart":      restart,
		"keep":         restart.WithKeepChildren(true),
		"resume":       with(supervision.Resume),
		"stop":         with(supervision.Stop),
		"escalate":     with(supervision.Escalate),
		"suspend":      with(supervision.Suspend),
		"ask":          with(supervision.Ask),
		"all for one":  restart.WithKind(supervision.AllForOne),
		"stop all":     with(supervision.Stop).WithKind(supervision.AllForOne),
		"rest for one": restart.WithKind(supervision.RestForOne),
		"backoff":      restart.WithBackoff(supervision.Backoff{Policy: slow}),
		"grace":        restart.WithBackoff(supervision.Backoff{Policy: slow, Grace: 30 * time.Millisecond, Stash: 1}),
		"overtake":     restart.WithBackoff(supervision.Backoff{Policy: slow, Grace: 30 * time.Millisecond, Overtake: true}),
		"drop":         restart.WithBackoff(supervision.Backoff{Policy: slow, Meanwhile: supervision.MeanwhileDrop, MaxFailures: 1}),
		"once":         restart.WithMaxRestarts(1, 0),
		"once a while": restart.WithMaxRestarts(1, time.Minute).WithSliding(true).WithShared(true),
		"never":        restart.WithMaxRestarts(0, 0).WithExceeded(supervision.Escalate),
		"shutdown":     with(supervision.Stop).WithShutdown(supervision.ShutdownAny),
	}
}

// family is a supervisor with three children, of which one has a child and one is significant.
func family(t testing.TB, s supervision.Strategy) Props {
	image := puppetImage(t)
	hooks := [][]byte{
		rec(byte(abi.KindStart), 0, send("/user/outside", text("start"))), rec(byte(abi.KindStop), 0, send("/user/outside", text("stop"))),
		rec(byte(abi.KindPreRestart), 0, send("/user/outside", text("again"))),
	}
	kid := puppet(image, hooks...)
	return Props{"p": puppet(image, append(hooks, rec(byte(abi.KindChildFailed), 0, send("/user/outside", text("asked"))))...).WithSupervision(s).WithChildren(
		host.Child{Name: "a", Props: kid}, host.Child{Name: "b", Props: kid.WithSignificant(true).WithChildren(host.Child{Name: "x", Props: kid})}, host.Child{Name: "c", Props: kid})}
}

// A supervisor's strategy changes between two lives, whatever it has decided since the last checkpoint: what was decided is carried out,
// and then the present strategy decides. Each strategy is followed by others, by each other one in make slow, and the process is killed
// again and again in between.
func TestOtherStrategies(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	all := strategies(t)
	starts := 0
	names := slices.Sorted(maps.Keys(all))
	for i, from := range names {
		for j, to := range names {
			behind := (j - i + len(names)) % len(names)
			if behind == 0 || !thorough.Slow && behind%6 != 1 { // by three others, unless there is time for all
				continue
			}
			a, b := all[from], all[to]
			t.Run(from+", then "+to, func(t *testing.T) {
				w, err := live(t, crashfs.New(), host.NewVirtualClock(begun), family(t, a), false)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { w.end(t) }()
				start := func(when string, s supervision.Strategy, from *lived) *lived {
					starts++
					x, err := live(t, from.fs.Copy(), host.NewVirtualClock(from.clock.Now()), family(t, s), starts%2 == 0)
					if err != nil {
						t.Fatalf("%s: %v", when, err)
					}
					return x
				}
				n := 0
				check := func(when string) {
					when = fmt.Sprint(when, " after ", n, " steps")
					x := start(when, b, w)
					x.rest()
					fails(x, "/user/p/a", "/user/p/b")
					x.rest()
					want, seen := x.look(), x.glance()
					y := start(when+", and once more", b, x)
					y.rest() // what was put off
					for path, got := range y.look() {
						if got != want[path] && seen["/user/p"] != "" { // else it has begun anew
							t.Errorf("%s, and once more: %s: %s", when, path, around(want[path], got))
						}
					}
					y.end(t)
					y = start(when+", and back", a, x) // what was decided by each of them is repeated; what was counted follows from the present one
					y.rest()
					for path, got := range y.glance() {
						if got != seen[path] && seen["/user/p"] != "" {
							t.Errorf("%s, and back: %s: %s, and it was %s", when, path, got, seen[path])
						}
					}
					y.end(t)
					x.end(t)
				}
				rest := func(when string) {
					for n = 0; w.Step() || w.store.Work(); n++ {
						if n%thorough.Of(thorough.SlowOf(24, 6), 1) == 0 {
							check(when)
						}
					}
					check(when)
				}
				w.rest()
				fails(w, "/user/p/b")
				rest("after a failure")
				for range 3 {
					w.clock.Advance(25 * time.Millisecond)
					_ = w.TellPath("/user/p/b", add)
					w.rest()
				}
				check("after a while")
				fails(w, "/user/p/a", "/user/p/b")
				rest("after more")
			})
		}
	}
	t.Logf("%d starts", starts)
}

func fails(w *lived, paths ...string) {
	for _, path := range paths {
		_ = w.TellPath(path, script(rec(recAdd, 1)))
		_ = w.TellPath(path, script(rec(0, trap)))
		_ = w.TellPath(path, script(rec(recAdd, 1)))
	}
}
