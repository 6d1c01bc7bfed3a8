//go:build !wasip1

package actortest_test

import (
	"testing"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

type cart struct{}

func (cart) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Is("spawn") && ctx.Name() != "child" {
		ctx.Forward(ctx.Spawn("cart", "child", nil))
		return nil
	}
	return ctx.Reply(actor.Text(ctx.Name() + "=" + ctx.Key()))
}

func init() { actor.Register("cart", func() actor.Actor { return cart{} }) }

// An actor under test has the key that it is given, also after a restart, and its children have none.
func TestKey(t *testing.T) {
	a := actortest.Spawn(t, "cart", actortest.Key("a/b"))
	if got := a.Send(actor.Text("who")).Reply().Text(); got != "a~2Fb=a/b" {
		t.Error(got)
	}
	a.Restart()
	if got := a.Send(actor.Text("who")).Reply().Text(); got != "a~2Fb=a/b" || a.Path() != "/user/cart/a~2Fb" {
		t.Error(got, a.Path())
	}
	if got := actortest.Spawn(t, "cart").Send(actor.Text("who")).Reply().Text(); got != "cart=" {
		t.Error(got)
	}
	w := actortest.NewWorld(t)
	buyer := w.Probe("buyer")
	ann, bob := w.Spawn("cart", actortest.Named("carts"), actortest.Key("ann")), w.Spawn("cart", actortest.Named("carts"), actortest.Key("bob"))
	buyer.Ask(ann.Ref(), actor.Text("who"), 0)
	buyer.Expect(actor.Text("ann=ann"))
	buyer.Ask(bob.Ref(), actor.Text("spawn"), 0)
	buyer.Expect(actor.Text("child="))
	if w.Find("/user/carts/bob/child") == nil {
		t.Error("no child below the key")
	}
}
