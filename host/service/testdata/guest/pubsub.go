package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
)

func init() {
	actor.Register("pubsub-reader", func() actor.Actor { return &reader{} })
	actor.Register("pubsub-writer", func() actor.Actor { return writer{} })
}

// reader subscribes to the pattern that is its argument, and answers "heard" with a text of what it has heard since it
// was asked last. Arguments that are a map say more: pattern, window, queue, overflow, ack_wait, retained.
type reader struct {
	topics  pubsub.Topics
	pattern string
	options pubsub.Options
	heard   string
}

func (x *reader) Started(ctx *actor.Context) error {
	r := ctx.Args()
	if r.Peek() == abi.TypeText {
		x.pattern = r.Text()
	} else {
		for range r.Map() {
			switch string(r.TextBytes()) {
			case "pattern":
				x.pattern = r.Text()
			case "window":
				x.options.Window = int(r.Int())
			case "queue":
				x.options.Queue = int(r.Int())
			case "overflow":
				x.options.Overflow = pubsub.Overflow(r.Text())
			case "ack_wait":
				x.options.AckWait = time.Duration(r.Int())
			case "retained":
				x.options.Retained = r.Bool()
			default:
				r.Skip()
			}
		}
	}
	if err := r.Done(); err != nil {
		return err
	}
	x.options.Then = func(_ *actor.Context, err error) error {
		if err != nil {
			x.heard += err.Error() + ";"
		}
		return nil
	}
	x.options.Ended = func(_ *actor.Context, reason string) error {
		x.heard += "ended;"
		return nil
	}
	x.topics.Subscribe(ctx, x.pattern, x.options, x.event)
	return nil
}

func (x *reader) event(_ *actor.Context, e pubsub.Event) error {
	if e.Text() == "fail" {
		return errors.New("this event fails")
	}
	x.heard += e.Topic + "=" + e.Text()
	if e.Retained {
		x.heard += " retained"
	}
	if e.Missed > 0 {
		x.heard += " missed " + strconv.FormatUint(e.Missed, 10)
	}
	x.heard += ";"
	return nil
}

func (x *reader) Receive(ctx *actor.Context, msg *actor.Message) error {
	if mine, err := x.topics.Receive(ctx, msg); mine {
		return err
	}
	switch {
	case msg.Is("heard"):
		heard := x.heard
		x.heard = ""
		return ctx.Reply(actor.Text(heard))
	case msg.Is("unsubscribe"):
		x.topics.Unsubscribe(ctx, x.pattern)
		return ctx.Reply(nil)
	}
	return actor.ErrUnhandled
}

// writer publishes [topic, value], with a third element retains it, and answers with [taken, missed].
type writer struct{}

func (writer) Receive(ctx *actor.Context, msg *actor.Message) error {
	r := msg.Reader()
	n := r.Array()
	topic, value := r.Text(), actor.Raw(r.Raw())
	if n != 2 && n != 3 || !r.OK() {
		return actor.ErrUnhandled
	}
	if msg.Correlation() == 0 {
		pubsub.Tell(ctx, topic, value)
		return nil
	}
	publish := pubsub.Publish
	if n == 3 {
		publish = pubsub.Retain
	}
	to, correlation := msg.Sender(), msg.Correlation()
	publish(ctx, topic, value, func(ctx *actor.Context, got pubsub.Result, err error) error {
		if err != nil {
			return ctx.AnswerError(to, correlation, err.Error())
		}
		return ctx.Answer(to, correlation, actor.Func(func(w *abi.Writer) {
			w.Array(2)
			w.Int(int64(got.Taken))
			w.Int(int64(got.Missed))
		}))
	})
	return nil
}

func init() {
	actor.Register("pubsub-shop", func() actor.Actor { return shop{} })
	actor.Register("pubsub-board", func() actor.Actor { return &board{prices: map[string]int64{}} })
}

// shop is told what a thing costs, a pair of its name and cents, and answers how many boards show it.
type shop struct{}

func (shop) Receive(ctx *actor.Context, msg *actor.Message) error {
	r := msg.Reader()
	if r.Array() != 2 {
		return actor.ErrUnhandled
	}
	thing, cents := r.Text(), r.Int()
	asker, question := msg.Sender(), msg.Correlation()
	pubsub.Retain(ctx, "prices."+thing, actor.Int(cents), func(ctx *actor.Context, got pubsub.Result, err error) error {
		if err != nil {
			return ctx.AnswerError(asker, question, err.Error())
		}
		return ctx.Answer(asker, question, actor.Int(got.Taken))
	})
	return nil
}

// board answers the name of a thing with what it costs.
type board struct {
	topics pubsub.Topics
	prices map[string]int64
}

func (b *board) Started(ctx *actor.Context) error {
	b.topics.Subscribe(ctx, "prices.*", pubsub.Options{Retained: true}, b.price)
	return nil
}

func (b *board) price(_ *actor.Context, e pubsub.Event) error {
	b.prices[e.Topic] = e.Reader().Int()
	return nil
}

func (b *board) Receive(ctx *actor.Context, msg *actor.Message) error {
	if mine, err := b.topics.Receive(ctx, msg); mine {
		return err
	}
	return ctx.Reply(actor.Int(b.prices["prices."+msg.Text()]))
}
