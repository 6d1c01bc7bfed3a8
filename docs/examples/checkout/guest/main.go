// A cart that asks the stock for each item that is put into it.
package main

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// cart holds items that the stock has reserved for it. After a minute without a message it tells
// its parent how many they are, and ends.
type cart struct{ items int64 }

func (c *cart) Started(ctx *actor.Context) error {
	ctx.SetReceiveTimeout(time.Minute)
	return nil
}

func (c *cart) Receive(ctx *actor.Context, m *actor.Message) error {
	order, item, _ := strings.Cut(m.Text(), " ")
	switch {
	case m.Kind() == actor.KindReceiveTimeout:
		ctx.Tell(ctx.Parent(), actor.Int(c.items))
		ctx.StopSelf()
	case m.Kind() != actor.KindMessage:
		return actor.ErrUnhandled
	case order == "add" && item == "":
		return errors.New("nothing to add")
	case order == "add":
		asker, question := ctx.Sender(), ctx.Correlation()
		ctx.AskPath("/user/stock", actor.Text(item), 2*time.Second, func(ctx *actor.Context, answer *actor.Message) error {
			if answer.Kind() != actor.KindReply {
				ctx.Warn("no " + item)
				return ctx.AnswerError(asker, question, "no "+item)
			}
			c.items++
			return ctx.Answer(asker, question, actor.Int(c.items))
		})
	case order == "count":
		return ctx.Reply(actor.Int(c.items))
	default:
		return actor.ErrUnhandled
	}
	return nil
}

func init() { actor.Register("cart", func() actor.Actor { return &cart{} }) }

func main() {}
