// The guest of the accounts: an actor for each account, whose balance is the sum of its events.
package main

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/persist"
)

// moved is the event: an amount in cents, negative for a withdrawal.
type moved struct{ amount int64 }

func (m moved) MarshalCBOR(w *abi.Writer)    { w.Int(m.amount) }
func (m *moved) UnmarshalCBOR(r *abi.Reader) { m.amount = r.Int() }
func (moved) MessageType() string            { return "account.moved@2" }

// schema knows what is stored now, and what the first release has stored: whole euros.
var schema = new(persist.Schema).Type("account.moved", 2).
	Upcast("account.moved", 1, func(e persist.Event) ([]persist.Event, error) {
		var old moved
		if err := persist.Decode(&e, &old); err != nil {
			return nil, err
		}
		now, err := persist.Make(moved{old.amount * 100})
		return []persist.Event{now}, err
	})

type account struct {
	log     *persist.Log
	balance int64
}

// Apply implements persist.Actor: the only place that changes the balance.
func (a *account) Apply(e *persist.Event) error {
	var m moved
	err := persist.Decode(e, &m)
	a.balance += m.amount
	return err
}

// Snapshot and Restore implement persist.Snapshotter.
func (a *account) Snapshot(w *abi.Writer) { w.Int(a.balance) }

func (a *account) Restore(_ uint16, r *abi.Reader) error {
	a.balance = r.Int()
	return nil
}

// order is a message: {"account": "ada", "amount": 500}. The keeper has found the account by its key.
type order struct{ amount int64 }

func (o *order) UnmarshalCBOR(r *abi.Reader) {
	for n := r.Map(); n > 0 && r.OK(); n-- {
		if r.Text() == "amount" {
			o.amount = r.Int()
		} else {
			r.Skip()
		}
	}
}

func (a *account) Receive(ctx *actor.Context, msg *actor.Message) error {
	var o order
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	if err := msg.Decode(&o); err != nil {
		return ctx.ReplyError(err.Error())
	}
	switch {
	case o.amount == 0:
	case a.balance+o.amount < 0:
		return ctx.ReplyError("insufficient funds")
	default:
		tag := "paid-in"
		if o.amount < 0 {
			tag = "paid-out"
		}
		if err := a.log.Persist(ctx, moved(o), tag); err != nil {
			return ctx.ReplyError(err.Error()) // nothing has changed
		}
	}
	return ctx.Reply(actor.Int(a.balance)) // leaves when the event is stored
}

func init() {
	d := persist.Definition{Schema: schema, Retention: persist.Retention{Every: 100, Keep: 2}}
	persist.Register("account", d, func(l *persist.Log) persist.Actor { return &account{log: l} })
	actor.Register("totals", func() actor.Actor { return &totals{} })
}

func main() {}
