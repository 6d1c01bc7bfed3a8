package account

import "github.com/wasmactors/wasmactors/host/view"

// Held is what is held for the actor, by kind.
func (a *Account) Held() view.Held {
	return view.Held{
		Base: a.Of(Base), Memory: a.Of(Memory), Mailbox: a.Of(Mailbox), Stash: a.Of(Stash),
		Timers: a.Of(Timers), Asks: a.Of(Asks), Watches: a.Of(Watches), Snapshot: a.Of(Snapshot),
	}
}
