package main

import (
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// A bank with a deliberate mistake, for `wasmactors simulate`: BANK=hasty chooses it. It keeps the transfer under way in a
// field. As long as transfers come one by one that works. BANK=checked notices it, and fails.
func (b *bank) hurry(ctx *actor.Context, t transfer, from, to actor.Ref) error {
	customer, question := ctx.Sender(), ctx.Correlation()
	b.moving = t
	ctx.Ask(from, actor.Int(-t.Amount), 10*time.Second, func(ctx *actor.Context, answer *actor.Message) error {
		if answer.Kind() != actor.KindReply {
			return ctx.Answer(customer, question, &receipt{t.ID, "refused"})
		}
		if b.checked && b.moving.ID != t.ID {
			panic("the amount is that of another transfer")
		}
		ctx.Tell(to, actor.Int(b.moving.Amount)) // of another transfer, if one has come meanwhile
		ctx.TellPath("/user/auditor", &t)
		return ctx.Answer(customer, question, &receipt{t.ID, "done"})
	})
	return nil
}
