// Command orders is the guest of docs/guide/messages.md.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

// shop handles the messages of the protocol.
type shop struct{ sold int64 }

func (s *shop) Receive(ctx *actor.Context, msg *actor.Message) error {
	return ReceiveShop(ctx, msg, s)
}

func (s *shop) Buy(ctx *actor.Context, o *order) (*receipt, error) {
	s.sold += o.Count
	return &receipt{s.sold}, nil
}

func (s *shop) Close(*actor.Context, *closing) { s.sold = 0 }

func (s *shop) Audit(ctx *actor.Context, _ *actor.Message) error {
	return ctx.Reply(actor.Int(s.sold))
}

// clerk buys what it is told to, and says the number of the receipt.
type clerk struct{ shop ShopRef }

func (c *clerk) Receive(ctx *actor.Context, msg *actor.Message) error {
	var h hire
	if msg.Decode(&h) == nil {
		c.shop = NewShopRef(h.Shop.Ref())
		return nil
	}
	customer, question := ctx.Sender(), ctx.Correlation()
	c.shop.Buy(ctx, &order{Item: msg.Text(), Count: 1}, func(ctx *actor.Context, r *receipt, err error) error {
		if err != nil {
			return ctx.AnswerError(customer, question, err.Error())
		}
		return ctx.Answer(customer, question, actor.Int(r.Number))
	})
	return nil
}

func init() {
	actor.Register("shop", func() actor.Actor { return &shop{} })
	actor.Register("clerk", func() actor.Actor { return &clerk{} })
}

func main() {}
