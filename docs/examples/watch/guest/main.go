// A warden that hears of what goes wrong in a shop, and the shop.
package main

import (
	"errors"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/events"
)

// warden counts what has happened, by channel and path, and answers a text of both with the count.
type warden struct {
	events events.Subscriptions
	seen   map[string]int64
}

func (w *warden) Started(ctx *actor.Context) error {
	w.events.Subscribe(ctx, events.Failed, events.Options{}, w.happened)
	w.events.Subscribe(ctx, events.DeadLetters, events.Options{Paths: []string{"/user/shop"}}, w.happened)
	return nil
}

func (w *warden) happened(ctx *actor.Context, e events.Event) error {
	if e.Missed > 0 {
		ctx.Warn("there was more to hear than there was room for")
	}
	w.seen[e.Channel+" "+e.Path+e.From]++
	return nil
}

func (w *warden) Receive(ctx *actor.Context, msg *actor.Message) error {
	if mine, err := w.events.Receive(ctx, msg); mine {
		return err
	}
	return ctx.Reply(actor.Int(w.seen[msg.Text()]))
}

// shop fails when it is told to, and writes to somebody who is not there.
type shop struct{}

func (shop) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Is("fail"):
		return errors.New("the till is stuck")
	case msg.Is("write"):
		ctx.TellPath("./nobody", actor.Text("a letter"))
	case msg.Is("guess"):
		actor.Expendable(ctx, "./nobody", actor.Text("a letter that nobody misses"))
	}
	return nil
}

func main() {}

func init() {
	actor.Register("warden", func() actor.Actor { return &warden{seen: map[string]int64{}} })
	actor.Register("shop", func() actor.Actor { return shop{} })
}
