//go:build !wasip1

package main

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// The probe is the stock, and another asks: the test is everybody else.
func TestCart(t *testing.T) {
	w := actortest.NewWorld(t)
	stock, buyer := w.Probe("stock"), w.Probe("buyer")
	cart := w.Spawn("cart")

	buyer.Ask(cart.Ref(), actor.Text("add tea"), 0)
	stock.Expect(actor.Text("tea"))
	stock.Reply(actor.Int(41))
	buyer.Expect(actor.Int(1))

	buyer.Ask(cart.Ref(), actor.Text("add tea"), 0)
	buyer.Within(2*time.Second, 3*time.Second, func() { // the stock does not answer
		buyer.ExpectKind(actortest.ReplyError)
	})
}

// The line to the stock loses questions.
func TestCartOnABadLine(t *testing.T) {
	w := actortest.NewWorld(t, actortest.Seed(7))
	stock, buyer := w.Probe("stock"), w.Probe("buyer")
	var pilot actortest.Pilot
	pilot = func(p *actortest.Probe, m actortest.Sent) actortest.Pilot {
		p.Reply(nil)
		return pilot
	}
	stock.Autopilot(pilot)
	lost := w.Fault("/user/stock").Chance(0.3).Drop()
	cart := w.Spawn("cart")
	for range 20 {
		buyer.Ask(cart.Ref(), actor.Text("add tea"), 0)
		buyer.ReceiveN(1)
	}
	if got := w.Ask(cart, actor.Text("count")).Int(); got != int64(20-lost.Hits()) || lost.Hits() == 0 {
		t.Errorf("%d items, %d lost", got, lost.Hits())
	}
}

// The test is the parent, and hears of the end.
func TestCartEnds(t *testing.T) {
	w := actortest.NewWorld(t)
	parent := w.Probe("shop")
	cart := w.Spawn("cart", actortest.Parent(parent.Ref()))
	parent.Watch(cart.Ref())
	parent.Within(time.Minute, time.Minute, func() { parent.Expect(actor.Int(0)) })
	parent.ExpectTerminated(cart.Ref())
}
