package main

import (
	"strconv"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// gateway checks what comes from outside. It does not try to live with a row
// that is broken: it crashes, and its supervisor brings it back after a pause.
// The rows behind the broken one wait in its mailbox.
type gateway struct{}

func (g *gateway) Receive(ctx *actor.Context, msg *actor.Message) error {
	var t transfer
	if err := msg.Decode(&t); err != nil {
		panic("not a transfer: " + err.Error())
	}
	if t.Amount <= 0 {
		panic("transfer " + strconv.FormatInt(t.ID, 10) + " moves " + strconv.FormatInt(t.Amount, 10) + " cents")
	}
	ctx.ForwardPath("/user/bank")
	return nil
}
