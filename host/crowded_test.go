package host

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// A start that will never have room fails. The next one comes after a delay that grows, and not at once. Each
// shows what the bound is, and when the next one is.
func TestStartsWithoutRoomAreDelayed(t *testing.T) {
	usual := supervision.Default().WithOtherwise(supervision.Restart)
	policy := backoff.WithJitter(backoff.Constant(7*time.Second), backoff.NoJitter())
	for name, c := range map[string]struct {
		strategy supervision.Strategy
		least    int // starts in a minute
		most     int
	}{
		"no backoff": {usual, 7, 12},
		"a backoff":  {usual.WithBackoff(supervision.Backoff{Policy: policy}), 9, 9},
		"a limit":    {usual.WithMaxRestarts(3, 0), 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			guest := puppet(t)
			l := newLab(t, supervision.Default())
			memory := sandbox.Weight(guest.module.Image()) + account.Step // the actor itself takes a Step
			top := l.spawn("top", newCounter().WithSupervision(c.strategy).WithLimits(Limits{Tree: TreeLimits{Memory: memory}}))
			parent := l.table.Get(top.UID())
			second := must(parent.spawn(nil, "second", &guest, parent.nextHostRef()))(t).ref()
			l.run()
			for range 600 {
				l.pass(100 * time.Millisecond)
			}
			tries, last := 0, time.Duration(0)
			for _, e := range l.seen(EventFailed, EventRefused) {
				switch {
				case e.Ref != second:
					t.Errorf("of %v: %v", e.Ref, e.Kind)
				case e.Kind == EventRefused:
					if r := e.Refused; r.What != "start" || r.Key != "limits.tree.memory" || !r.Limit {
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
			if name == "a limit" {
				if l.state("top/second") != "gone" {
					t.Error("it goes on beyond the limit")
				}
				return
			}
			if i := l.info(second); i.State != StateDelayed || must(l.View().Held(second))(t).Memory != 0 {
				t.Errorf("%+v", i)
			}
		})
	}
}
