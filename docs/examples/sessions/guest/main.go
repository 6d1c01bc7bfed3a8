// A cart for each user as a guest: see docs/guide/keyed.md.
package main

import (
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// cart is what one user wants.
type cart struct{ things []string }

func (c *cart) Receive(ctx *actor.Context, m *actor.Message) error {
	c.things = append(c.things, m.Text())
	return ctx.Reply(actor.Text(strings.Join(c.things, ", ")))
}

// shop gets "user thing", and answers with what the user has by now.
type shop struct{}

func (shop) Receive(ctx *actor.Context, m *actor.Message) error {
	asker, correlation := ctx.Sender(), ctx.Correlation()
	user, thing, _ := strings.Cut(m.Text(), " ")
	ctx.AskPath("/user/carts/"+user, actor.Text(thing), time.Second, func(ctx *actor.Context, m *actor.Message) error {
		if m.Kind() != actor.KindReply {
			return ctx.AnswerError(asker, correlation, m.Text())
		}
		return ctx.Answer(asker, correlation, actor.Text(m.Text()))
	})
	return nil
}

func init() {
	actor.Register("cart", func() actor.Actor { return &cart{} })
	actor.Register("shop", func() actor.Actor { return shop{} })
}

func main() {}
