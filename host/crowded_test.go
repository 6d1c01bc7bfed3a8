package host

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// A start that is refused for lack of room is tried again after delays that grow, and not at once; when there
// is room the actor begins, with its mail. Each try shows what the bound is, and when the next one is.
func TestStartsWithoutRoomAreDelayed(t *testing.T) {
	usual := supervision.Default().WithOtherwise(supervision.Restart)
	policy := backoff.WithJitter(backoff.Constant(7*time.Second), backoff.NoJitter())
	for name, c := range map[string]struct {
		strategy  supervision.Strategy
		instances int
		memory    int64
		key       string
		least     int // starts in a minute
		most      int
	}{
		"instances": {usual, 1, 0, "modules.NAME.limits.instances", 7, 12},
		"memory":    {usual, 10, 1 << 20, "limits.tree.memory", 7, 12},
		"a backoff": {usual.WithBackoff(supervision.Backoff{Policy: policy}), 1, 0, "modules.NAME.limits.instances", 9, 9},
		"a limit":   {usual.WithMaxRestarts(3, 0), 1, 0, "modules.NAME.limits.instances", 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(c.instances)))(t)
			t.Cleanup(func() { _ = engine.Close(t.Context()) })
			image := load(t, engine, "testdata/puppet.wasm")
			p := puppet(t)
			guest := Guest(image, "puppet").WithArgs(p.args).WithCapabilities(p.caps)
			if c.memory > 0 {
				c.memory = int64(sandbox.Weight(image)) + 100_000
			}
			l := newLab(t, supervision.Default())
			top := l.spawn("top", newCounter().WithSupervision(c.strategy).WithLimits(Limits{Tree: TreeLimits{Memory: c.memory}}))
			parent := l.table.Get(top.uid)
			spawn := func(name string) Ref {
				k, err := parent.spawn(nil, name, &guest, parent.nextHostRef())
				must(0, err)(t)
				l.run()
				return k.ref()
			}
			first := spawn("first")
			l.seen()
			second := spawn("second")
			waits, _ := l.Request(second, script(rec(recReport, 0, nil)))
			for range 600 {
				l.pass(100 * time.Millisecond)
			}
			tries, last := 0, time.Duration(0)
			for _, e := range l.seen(EventFailed, EventRefused) {
				switch {
				case e.Ref != second:
					t.Errorf("of %v: %v", e.Ref, e.Kind)
				case e.Kind == EventRefused:
					if r := e.Refused; r.What != "start" || r.Key != c.key || !r.Limit {
						t.Errorf("%+v", r)
					}
				default:
					tries++
					if e.Failure.Kind != abi.FailureInit || e.Directive == supervision.Restart && (e.Note == "" || e.Delay < last/2) {
						t.Errorf("%v, %v after %v, %q", e.Failure, e.Delay, last, e.Note)
					}
					last = e.Delay
				}
			}
			if tries < c.least || tries > c.most {
				t.Errorf("%d starts in a minute", tries)
			}
			if h := must(l.Held(first))(t); h.Memory == 0 {
				t.Error("the first one has no memory")
			}
			if name == "a limit" {
				if l.state("top/second") != "gone" {
					t.Error("it goes on beyond the limit")
				}
				return
			}
			if i := l.info(second); i.State != StateDelayed || must(l.Held(second))(t).Memory != 0 {
				t.Errorf("%+v", i)
			}
			l.Stop(first)
			l.run()
			for range 310 {
				l.pass(100 * time.Millisecond)
			}
			if m := ended(t, waits); m != nil || l.state("top/second") != "running" {
				t.Errorf("%v, %s", m, l.state("top/second"))
			}
		})
	}
}
