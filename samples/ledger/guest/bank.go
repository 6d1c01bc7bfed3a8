package main

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// bank owns the accounts: one child each, named in its arguments.
type bank struct {
	hasty    bool // see hasty.go
	checked  bool // the same
	moving   map[[2]string][]int64
	names    []string
	accounts map[string]actor.Ref
}

// Start opens the accounts. The arguments are a map: the names, and the balance
// that each begins with.
func (b *bank) Started(ctx *actor.Context) error {
	b.accounts = map[string]actor.Ref{}
	b.moving = map[[2]string][]int64{}
	r := ctx.Args()
	for n := r.Map(); n > 0 && r.Err() == nil; n-- {
		name, balance := r.Text(), r.Int()
		ref := ctx.Spawn("account", name, actor.Int(balance))
		ctx.Watch(ref)
		b.names = append(b.names, name)
		b.accounts[name] = ref
	}
	return r.Done()
}

func (b *bank) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Kind() {
	case actor.KindMessage:
	case actor.KindReply:
		return nil // an account confirms a deposit
	default:
		return actor.ErrUnhandled // an account has ended: so does the bank
	}
	if msg.Is("report") {
		b.report(ctx)
		return nil
	}
	var t transfer
	if err := msg.Decode(&t); err != nil {
		return err
	}
	from, to := b.accounts[t.From], b.accounts[t.To]
	if from == 0 || to == 0 {
		return ctx.Reply(&receipt{t.ID, "unknown account"})
	}
	if b.hasty {
		return b.hurry(ctx, t, from, to)
	}
	b.move(ctx, t, from, to)
	return nil
}

// move withdraws, and deposits when that has worked. The answer goes to whoever
// has sent the transfer to the gateway: forwarding keeps the sender.
func (b *bank) move(ctx *actor.Context, t transfer, from, to actor.Ref) {
	customer, question := ctx.Sender(), ctx.Correlation()
	ctx.Ask(from, actor.Int(-t.Amount), 10*time.Second, func(ctx *actor.Context, answer *actor.Message) error {
		if answer.Kind() != actor.KindReply {
			return ctx.Answer(customer, question, &receipt{t.ID, "refused"})
		}
		ctx.Tell(to, actor.Int(t.Amount))
		ctx.TellPath("/user/auditor", &t)
		return ctx.Answer(customer, question, &receipt{t.ID, "done"})
	})
}

// report asks every account for its balance and answers with all of them.
func (b *bank) report(ctx *actor.Context) {
	customer, question := ctx.Sender(), ctx.Correlation()
	balances := make([]int64, len(b.names))
	left := len(b.names)
	for i, name := range b.names {
		ctx.Ask(b.accounts[name], actor.Int(0), 10*time.Second, func(ctx *actor.Context, answer *actor.Message) error {
			balances[i], _ = answer.Int()
			if left--; left > 0 {
				return nil
			}
			return ctx.Answer(customer, question, actor.Func(func(w *abi.Writer) {
				w.Map(len(b.names))
				for i, name := range b.names {
					w.Text(name)
					w.Int(balances[i])
				}
			}))
		})
	}
}
