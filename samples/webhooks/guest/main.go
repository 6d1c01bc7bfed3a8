// Webhooks takes webhooks and delivers them. An intake checks who has signed a hook, the queue keeps it,
// and workers bring it to its destination, again and again if need be.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

func main() {}

func init() {
	actor.Register("intake", func() actor.Actor { return newIntake() })
	actor.Register("queue", func() actor.Actor { return newQueue() })
	actor.Register("delivery", func() actor.Actor { return &delivery{} })
	actor.Register("worker", func() actor.Actor { return &worker{} })
}
