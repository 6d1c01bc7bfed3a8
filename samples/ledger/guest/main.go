// The guests of the ledger: a bank with an actor for every account, a payment
// gateway that crashes on input that it cannot trust, and an auditor.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

func init() {
	actor.Register("gateway", func() actor.Actor { return &gateway{} }, actor.Saves(1))
	actor.Register("bank", func() actor.Actor { return &bank{} }, actor.Saves(1))
	actor.Register("hasty", func() actor.Actor { return &bank{hasty: true} })
	actor.Register("checked", func() actor.Actor { return &bank{hasty: true, checked: true} })
	actor.Register("account", func() actor.Actor { return &account{} }, actor.Saves(1))
	actor.Register("kept", func() actor.Actor { return &kept{} })
	actor.Register("forgetful", func() actor.Actor { return &kept{forgetful: true} })
	actor.Register("books", func() actor.Actor { return &books{} })
	actor.Register("auditor", func() actor.Actor { return &auditor{} }, actor.Saves(1))
}

func main() {}
