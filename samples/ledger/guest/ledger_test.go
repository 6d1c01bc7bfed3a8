//go:build !wasip1

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

func opening(w *abi.Writer) {
	w.Map(2)
	w.Text("alice")
	w.Int(100)
	w.Text("bob")
	w.Int(5)
}

// A transfer goes through gateway, bank and account, and its receipt back to the
// customer.
func TestTransfer(t *testing.T) {
	for _, c := range []struct {
		amount int64
		status string
		moved  bool
	}{{60, "done", true}, {101, "refused", false}} {
		gateway, bank := actortest.Spawn(t, "gateway"), actortest.Spawn(t, "bank", actortest.Args(actor.Func(opening)))
		alice := bank.Child(bank.Started().Spawned[0])

		order := gateway.Send(&transfer{ID: 7, From: "alice", To: "bob", Amount: c.amount}).Sent[0]
		withdrawal := bank.Pass(order).Ask()
		turn := bank.Pass(alice.Pass(withdrawal).Reply())

		var r receipt
		last := turn.Sent[len(turn.Sent)-1]
		if err := last.Decode(&r); err != nil || last.To != actortest.Tester || r != (receipt{7, c.status}) {
			t.Errorf("%+v, %v", r, err)
		}
		if moved := len(turn.Sent) == 3; moved != c.moved {
			t.Errorf("%d cents: %+v", c.amount, turn.Sent)
		}
	}
}

func TestBankThatGetsNoAnswer(t *testing.T) {
	bank := actortest.Spawn(t, "bank", actortest.Args(actor.Func(opening)))
	bank.Send(&transfer{ID: 7, From: "alice", To: "bob", Amount: 1})
	var r receipt
	if turns := bank.Advance(10 * time.Second); len(turns) != 1 || turns[0].Sent[0].Decode(&r) != nil || r.Status != "refused" {
		t.Errorf("%+v, %+v", turns, r)
	}
}

func TestGatewayCrashesOnWhatIsBroken(t *testing.T) {
	gateway := actortest.Spawn(t, "gateway")
	for text, message := range map[string]actor.Encoder{
		"transfer 7 moves -1 cents":                      &transfer{ID: 7, Amount: -1},
		"transfer: an item of another type was expected": actor.Text("row 7 is missing"),
		"transfer.from: a required key is missing":       actor.Func(func(w *abi.Writer) { w.Map(2); w.Text("id"); w.Int(1); w.Text("to"); w.Text("bob") }),
	} {
		if f := gateway.Send(message).Failure; f == nil || !strings.Contains(f.Message, text) {
			t.Errorf("%v, want %s", f, text)
		}
		gateway.Restart()
	}
}
