package main

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// auditor watches the gateway and the bank, and keeps totals of its own.
type auditor struct{ transfers, volume, ended int64 }

func (a *auditor) Start(ctx *actor.Context) error {
	ctx.WatchPath("/user/gateway")
	ctx.WatchPath("/user/bank")
	return nil
}

func (a *auditor) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Kind() == actor.KindTerminated:
		a.ended++
		ctx.Warn("a watched actor has ended: " + msg.Text())
	case msg.Is("report"):
		return ctx.Reply(actor.Func(func(w *abi.Writer) {
			w.Map(3)
			w.Text("transfers")
			w.Int(a.transfers)
			w.Text("volume")
			w.Int(a.volume)
			w.Text("ended")
			w.Int(a.ended)
		}))
	default:
		var t transfer
		if err := msg.Decode(&t); err != nil {
			return err
		}
		a.transfers++
		a.volume += t.Amount
	}
	return nil
}
