// A warden that hears of what goes wrong in a shop, and the shop.
package main

import (
	"errors"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/events"
)

// warden counts what has happened, and answers a channel and a path with how often it was there.
type warden struct {
	events events.Subscriptions
	seen   map[string]int64
}

func (w *warden) Started(ctx *actor.Context) error {
	w.events.Subscribe(ctx, events.Failed, events.Options{}, w.happened)
	w.events.Subscribe(ctx, events.DeadLetters, events.Options{Paths: []string{"/user/shop/clerk"}}, w.happened)
	return nil
}

func (w *warden) happened(ctx *actor.Context, e events.Event) error {
	if e.Missed > 0 {
		ctx.Warn("there was more to hear than there was room for")
	}
	w.seen[e.Channel+" "+e.Path]++
	return nil
}

func (w *warden) Receive(ctx *actor.Context, msg *actor.Message) error {
	if mine, err := w.events.Receive(ctx, msg); mine {
		return err
	}
	return ctx.Reply(actor.Int(w.seen[msg.Text()]))
}

// shop fails when it is told to, and writes to a clerk who has gone.
type shop struct{ clerk actor.Ref }

func (s *shop) Started(ctx *actor.Context) error {
	s.clerk = ctx.Spawn("clerk", "clerk", nil)
	ctx.Stop(s.clerk)
	return nil
}

func (s *shop) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Is("fail"):
		return errors.New("the till is stuck")
	case msg.Is("order"):
		ctx.Tell(s.clerk, actor.Text("an order"))
	case msg.Is("greet"): // may well get lost
		ctx.TellWith(s.clerk, actor.Text("good morning"), actor.Suppressed)
	}
	return nil
}

type clerk struct{}

func (clerk) Receive(*actor.Context, *actor.Message) error { return nil }

func main() {}

func init() {
	actor.Register("warden", func() actor.Actor { return &warden{seen: map[string]int64{}} })
	actor.Register("shop", func() actor.Actor { return &shop{} })
	actor.Register("clerk", func() actor.Actor { return clerk{} })
}
