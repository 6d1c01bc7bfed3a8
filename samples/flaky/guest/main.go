// The guests of flaky: a service that cannot be relied on, a client that crashes
// whenever the service lets it down, and a supervisor that keeps what was asked
// until the client, restarted as often as it takes, has the answer.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

func init() {
	actor.Register("service", func() actor.Actor { return service{} })
	actor.Register("client", func() actor.Actor { return &client{} })
	actor.Register("supervisor", func() actor.Actor { return &supervisor{} })
}

func main() {}
