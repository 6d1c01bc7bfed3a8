package flow_test

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	hostflow "github.com/wasmactors/wasmactors/host/flow"
	"github.com/wasmactors/wasmactors/host/testkit"
	"github.com/wasmactors/wasmactors/supervision"
)

// What runs, was started, and has failed is counted however a stream ends, and the elements between actors with it.
func TestFigures(t *testing.T) {
	figures := func() map[string]float64 {
		all := map[string]float64{}
		for _, f := range hostflow.Figures() {
			all[f.Name] = f.Value
		}
		return all
	}
	before := figures()
	is := func(when string, open, started, failed, given, taken float64) {
		t.Helper()
		now := figures()
		for name, want := range map[string]float64{
			"streams_open": open, "streams_started_total": started, "streams_failed_total": failed, "given_elements_total": given, "taken_elements_total": taken,
		} {
			if got := now[name] - before[name]; got != want {
				t.Errorf("%s: %s is %v, want %v", when, name, got, want)
			}
		}
	}
	k := testkit.New(t)
	numbers := k.Spawn("numbers", hostflow.Props(flow.Serve("x", flow.Range(1, 100), ints)))
	is("served", 1, 1, 0, 0, 0)
	take := flow.TakeFrom(numbers.UID(), "x", ints, flow.Window{})
	k.Spawn("taker", hostflow.Props(flow.To(take, flow.Ignore[int]())))
	is("taken", 1, 2, 0, 100, 100)
	once := hostflow.Props(flow.To(flow.Failed[int](errors.New("bad")), flow.Ignore[int]())).WithLifetime(supervision.Temporary)
	k.Spawn("fails", once)
	is("failed", 1, 3, 1, 100, 100)
	boom := flow.Map(flow.Tick(time.Second, time.Second, 1), func(int) int { panic("boom") })
	k.Spawn("crashes", hostflow.Props(flow.To(boom, flow.Ignore[int]())).WithLifetime(supervision.Temporary))
	is("ticks", 2, 4, 1, 100, 100)
	k.Advance(time.Second)
	is("crashed", 1, 4, 2, 100, 100)
	starts := flow.Lazily(func(*flow.Graph) flow.Source[int] { panic("boom") })
	k.Spawn("crashes-at-once", hostflow.Props(flow.To(starts, flow.Ignore[int]())).WithLifetime(supervision.Temporary))
	is("crashed at its start", 1, 5, 3, 100, 100)
	k.System().Stop(numbers)
	k.Run()
	is("stopped", 0, 5, 4, 100, 100)
}
