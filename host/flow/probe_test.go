package flow_test

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	hostflow "github.com/wasmactors/wasmactors/host/flow"
	"github.com/wasmactors/wasmactors/host/testkit"
	"github.com/wasmactors/wasmactors/supervision"
)

// N20: a stage in an actor, both of whose ends the test plays, in virtual time.
func TestN20_ProbesAtBothEnds(t *testing.T) {
	k := testkit.New(t)
	up, down := k.Probe("up"), k.Probe("down")
	src := flow.TakeFrom(up.Ref().UID(), "in", ints, flow.Window{First: 2, Most: 2})
	stage := k.Spawn("stage", hostflow.Props(flow.To(flow.IdleTimeout(flow.Map(src, double), time.Minute), flow.GiveTo(down.Ref().UID(), "out", ints))).
		WithLifetime(supervision.Temporary))
	down.Watch(stage)
	giver := up.GiveFlow("in")
	giver.ExpectRequest(2)
	down.Expect(testkit.Any()) // the offer
	taker := down.TakeFlow(stage, "out")
	giver.Send(1, 2)
	taker.ExpectNone(time.Second)
	taker.Request(1)
	taker.Expect(2)
	taker.ExpectNone(time.Second) // one was requested
	taker.Request(3)
	taker.Expect(4)
	giver.ExpectRequest(2)
	giver.Send(3)
	taker.Expect(6)
	giver.Complete()
	taker.ExpectEnd()
	down.ExpectTerminated(stage)
}

func TestN20_ProbesSeeFailures(t *testing.T) {
	k := testkit.New(t)
	up, down := k.Probe("up"), k.Probe("down")
	stage := k.Spawn("stage", hostflow.Props(flow.Serve("out", flow.TakeFrom(up.Ref().UID(), "in", ints, flow.Window{}), ints)))
	take := func() (*testkit.Taker, *testkit.Giver) {
		taker := down.TakeFlow(stage, "out")
		return taker, up.GiveFlow("in")
	}
	taker, giver := take()
	giver.Fail("broken")
	taker.ExpectFailure("broken")
	taker, giver = take()
	taker.Cancel()
	if reason := giver.ExpectCancel(); reason != "" {
		t.Error(reason)
	}
	taker, giver = take()
	giver.Send(1, 2, 3, 4, 5) // four were asked for
	if reason := giver.ExpectCancel(); reason != flow.ErrNoCredit.Error() {
		t.Error(reason)
	}
	taker.ExpectFailure(flow.ErrNoCredit.Error())
	taker, giver = take()
	taker.Request(1 << 62)
	taker.ExpectFailure(flow.ErrCredit.Error())
	giver.ExpectCancel()
	if dead, n := k.System().DeadLetters(); n != 0 {
		t.Errorf("dead letters: %v", dead)
	}
}
