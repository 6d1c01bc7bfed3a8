//go:build !wasip1

package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// N20: a guest's stage, both of whose ends the test plays.
func TestN20_ProbesOfGuests(t *testing.T) {
	w := world(t)
	up, down := w.Probe("up"), w.Probe("down")
	from, to = up.Ref(), down.Ref()
	a := w.Spawn("doubler")
	giver := up.GiveFlow("numbers")
	giver.ExpectRequest(4)
	down.ExpectKind(actortest.Tell) // the offer
	taker := down.TakeFlow(a.Ref(), "doubled")
	giver.Send(actor.Int(1), actor.Int(2), actor.Int(3))
	taker.ExpectNone(time.Second)
	taker.Request(2)
	taker.Expect(actor.Int(2), actor.Int(4))
	giver.ExpectRequest(3)
	taker.ExpectNone(time.Second)
	taker.Request(5)
	taker.Expect(actor.Int(6))
	giver.Complete()
	taker.ExpectEnd()
	if !a.Ended() {
		t.Error("it has not ended")
	}

	a = w.Spawn("doubler", actortest.Named("again"))
	giver = up.GiveFlow("numbers")
	down.ExpectKind(actortest.Tell)
	taker = down.TakeFlow(a.Ref(), "doubled")
	taker.Request(math.MaxInt)
	taker.ExpectFailure(flow.ErrCredit.Error())
	if reason := giver.ExpectCancel(); reason != "" {
		t.Error(reason)
	}
	a = w.Spawn("doubler", actortest.Named("third"))
	giver = up.GiveFlow("numbers")
	down.ExpectKind(actortest.Tell)
	taker = down.TakeFlow(a.Ref(), "doubled")
	giver.Fail("broken")
	taker.ExpectFailure("broken")
	taker.Cancel()
}
