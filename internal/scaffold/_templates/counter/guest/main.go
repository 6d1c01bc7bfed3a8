// The actors of the bundle.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

// counter adds up the numbers that it is sent.
type counter struct{ total int64 }

// Started reads the arguments of the manifest, once in each incarnation.
func (c *counter) Started(ctx *actor.Context) error {
	var s settings
	err := ctx.DecodeArgs(&s)
	c.total = s.Start
	return err
}

func (c *counter) Receive(ctx *actor.Context, msg *actor.Message) error {
	n, ok := msg.Int()
	if !ok {
		panic("I count numbers only") // a crash: the supervisor decides
	}
	c.total += n
	return ctx.Reply(actor.Int(c.total))
}

func init() { actor.Register("counter", func() actor.Actor { return &counter{} }) }

func main() {}
