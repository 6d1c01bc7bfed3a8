package main

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// What goes over to other code, see docs/guide/upgrade.md. Transfers under way are questions that the bank waits for, so it is saved between
// them.

// Save implements actor.Saver: its accounts, in their order.
func (b *bank) Save(_ *actor.Context, w *abi.Writer) error {
	w.Map(len(b.names))
	for _, name := range b.names {
		w.Text(name)
		w.Ref(b.accounts[name])
	}
	return nil
}

// Load implements actor.Saver.
func (b *bank) Load(_ *actor.Context, r *abi.Reader) error {
	b.accounts = map[string]actor.Ref{}
	b.moving = map[[2]string][]int64{}
	for n := r.Map(); n > 0 && r.Err() == nil; n-- {
		name := r.Text()
		b.names = append(b.names, name)
		b.accounts[name] = actor.Ref(r.Uint())
	}
	return r.Err()
}

// Save implements actor.Saver.
func (a *account) Save(_ *actor.Context, w *abi.Writer) error {
	w.Int(a.balance)
	return nil
}

// Load implements actor.Saver.
func (a *account) Load(_ *actor.Context, r *abi.Reader) error {
	a.balance = r.Int()
	return r.Err()
}

// Save implements actor.Saver.
func (a *auditor) Save(_ *actor.Context, w *abi.Writer) error {
	w.Array(3)
	w.Int(a.totals.Transfers)
	w.Int(a.totals.Volume)
	w.Int(a.totals.Ended)
	return nil
}

// Load implements actor.Saver.
func (a *auditor) Load(_ *actor.Context, r *abi.Reader) error {
	r.Array()
	a.totals = totals{r.Int(), r.Int(), r.Int()}
	return r.Err()
}

// Save implements actor.Saver: a gateway has no state.
func (*gateway) Save(_ *actor.Context, w *abi.Writer) error {
	w.Null()
	return nil
}

// Load implements actor.Saver.
func (*gateway) Load(_ *actor.Context, r *abi.Reader) error {
	r.Null()
	return r.Err()
}
