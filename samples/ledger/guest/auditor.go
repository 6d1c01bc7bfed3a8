package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

// auditor watches the gateway and the bank, and keeps totals of its own.
type auditor struct{ totals totals }

func (a *auditor) Started(ctx *actor.Context) error {
	ctx.WatchPath("/user/gateway")
	ctx.WatchPath("/user/bank")
	return nil
}

func (a *auditor) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Kind() == actor.KindTerminated:
		a.totals.Ended++
		ctx.Warn("a watched actor has ended: " + msg.Text())
	case msg.Is("report"):
		return ctx.Reply(&a.totals)
	default:
		var t transfer
		if err := msg.Decode(&t); err != nil {
			return err
		}
		a.totals.Transfers++
		a.totals.Volume += t.Amount
	}
	return nil
}
