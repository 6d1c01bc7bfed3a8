package main

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/journal"
)

// totals is made of the events of all accounts: what was paid in, and what was paid out. It keeps nothing itself, and reads all
// events again at each start.
type totals struct{ in, out int64 }

// Started implements actor.Starter.
func (t *totals) Started(ctx *actor.Context) error {
	for _, tag := range []string{"paid-in", "paid-out"} {
		journal.Follow(ctx, journal.Query{Tag: tag}, t.add)
	}
	return nil
}

// add takes a page of events. What could not be read now is asked for again.
func (t *totals) add(_ *actor.Context, p journal.Page, _ error) error {
	for i := range p.Events {
		var m moved
		if err := journal.Decode(&p.Events[i], &m); err != nil {
			return err
		}
		amount := m.amount
		if p.Events[i].Version == 1 {
			amount *= 100 // the first release has stored whole euros
		}
		if amount > 0 {
			t.in += amount
		} else {
			t.out -= amount
		}
	}
	return nil
}

func (t *totals) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	return ctx.Reply(actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("in")
		w.Int(t.in)
		w.Text("out")
		w.Int(t.out)
	}))
}
