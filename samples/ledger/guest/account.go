package main

import (
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// account holds one balance. It takes what is sent to it: positive amounts are
// deposits, negative ones withdrawals; it answers with the balance.
type account struct{ balance int64 }

func (a *account) Started(ctx *actor.Context) error {
	r := ctx.Args()
	a.balance = r.Int()
	return r.Done()
}

func (a *account) Receive(ctx *actor.Context, msg *actor.Message) error {
	amount, ok := msg.Int()
	if !ok {
		return actor.ErrUnhandled
	}
	if a.balance+amount < 0 {
		return ctx.ReplyError("insufficient funds")
	}
	a.balance += amount
	return ctx.Reply(actor.Int(a.balance))
}
