//go:build !wasip1

package main

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// A basket is kept when it has changed, and a list of the first release is one.
func TestBasket(t *testing.T) {
	list := actortest.Kept("basket.state@1", func(w *abi.Writer) {
		w.Array(3)
		w.Text("tea")
		w.Text("jam")
		w.Text("tea")
	})
	a := actortest.Spawn(t, "basket", list)
	if e := a.Events(); len(e) != 1 || e[0].Version != 2 {
		t.Errorf("%+v", e)
	}
	a.Send(actor.Text("tea"))
	a.Restart()
	if turn := a.Send(actor.Text("list")); len(turn.Persisted) != 0 || a.Actor().(*basket).things["tea"] != 3 {
		t.Errorf("%+v", turn)
	}
	if a.Send(actor.Text("clear")); len(a.Events()) != 0 {
		t.Errorf("%+v", a.Events())
	}
}
