package main

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// books asks the accounts of a cluster for what they hold, wherever they are. Its arguments are their names.
type books struct{ names []string }

func (b *books) Started(ctx *actor.Context) error {
	r := ctx.Args()
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		b.names = append(b.names, r.Text())
	}
	return r.Done()
}

// Receive answers a report with all balances, or with an error while an account does not answer, or money is on its way: then nobody can
// say what they are.
func (b *books) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage || !msg.Is("report") {
		return actor.ErrUnhandled
	}
	customer, question := ctx.Sender(), ctx.Correlation()
	all := make([]standing, len(b.names))
	left, why := len(b.names), ""
	for i, name := range b.names {
		ctx.AskPath("/user/accounts/"+name, actor.Text("balance"), 5*time.Second, func(ctx *actor.Context, m *actor.Message) error {
			if m.Kind() != actor.KindReply || m.Decode(&all[i]) != nil {
				why = name + " does not answer"
			} else if all[i].OnTheWay != 0 {
				why = "money of " + name + " is on its way"
			}
			if left--; left > 0 {
				return nil
			}
			if why != "" {
				return ctx.AnswerError(customer, question, why)
			}
			return ctx.Answer(customer, question, actor.Func(func(w *abi.Writer) {
				w.Map(len(b.names))
				for i, name := range b.names {
					w.Text(name)
					w.Int(all[i].Balance)
				}
			}))
		})
	}
	return nil
}
