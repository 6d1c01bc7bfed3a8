// A guest in one page: an actor that greets.
package main

import (
	"strconv"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

type greeter struct{ greeted int }

func (g *greeter) Receive(ctx *actor.Context, msg *actor.Message) error {
	name := msg.Text()
	if name == "" {
		panic("nobody to greet") // a crash: the supervisor decides
	}
	g.greeted++
	ctx.Info("greeting " + name)
	return ctx.Reply(actor.Text("hello " + name + ", you are number " + strconv.Itoa(g.greeted)))
}

func init() { actor.Register("greeter", func() actor.Actor { return &greeter{} }) }

func main() {}
