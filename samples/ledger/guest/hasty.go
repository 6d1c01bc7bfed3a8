package main

import (
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// A bank with a deliberate mistake, for `wasmactors simulate --bug`: BANK=hasty chooses it. It keeps the amounts of transfers
// under way by payer and payee. When the payer's account refuses one, the bank forgets all of them, so another transfer between
// the same two that is under way at this moment loses its amount. BANK=checked notices the mistake, and fails.
func (b *bank) hurry(ctx *actor.Context, t transfer, from, to actor.Ref) error {
	customer, question := ctx.Sender(), ctx.Correlation()
	way := [2]string{t.From, t.To}
	b.moving[way] = append(b.moving[way], t.Amount)
	ctx.Ask(from, actor.Int(-t.Amount), 10*time.Second, func(ctx *actor.Context, answer *actor.Message) error {
		if answer.Kind() != actor.KindReply {
			delete(b.moving, way) // the mistake: only its own amount must go
			return ctx.Answer(customer, question, &receipt{t.ID, "refused"})
		}
		var amount int64
		if left := b.moving[way]; len(left) > 0 {
			amount, b.moving[way] = left[0], left[1:]
		}
		if b.checked && amount != t.Amount {
			panic("a transfer has lost its amount")
		}
		ctx.Tell(to, actor.Int(amount))
		ctx.TellPath("/user/auditor", &t)
		return ctx.Answer(customer, question, &receipt{t.ID, "done"})
	})
	return nil
}
