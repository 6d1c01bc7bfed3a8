package main

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/events"
)

func init() {
	actor.Register("events-watcher", func() actor.Actor { return &watcher{} })
	actor.Register("events-noisy", func() actor.Actor { return noisy{} })
}

// watcher subscribes to the channel that is its argument, or to the first of a list whose others are paths, and answers
// "heard" with a text of what it has heard since it was asked last.
type watcher struct {
	events events.Subscriptions
	heard  []string
}

func (x *watcher) Started(ctx *actor.Context) error {
	channel, options := "", events.Options{Then: func(_ *actor.Context, err error) error {
		if err != nil {
			x.heard = append(x.heard, err.Error())
		}
		return nil
	}}
	r := ctx.Args()
	if r.Peek() == abi.TypeText {
		channel = r.Text()
	} else {
		for i := range r.Array() {
			if i == 0 {
				channel = r.Text()
			} else {
				options.Paths = append(options.Paths, r.Text())
			}
		}
	}
	x.events.Subscribe(ctx, channel, options, x.event)
	return r.Done()
}

func (x *watcher) event(_ *actor.Context, e events.Event) error {
	x.heard = append(x.heard, strings.Join(strings.Fields(e.Channel+" "+e.Path+" "+e.From+" "+e.Failure+" "+e.Reason), " "))
	return nil
}

func (x *watcher) Receive(ctx *actor.Context, msg *actor.Message) error {
	if mine, err := x.events.Receive(ctx, msg); mine {
		return err
	}
	if !msg.Is("heard") {
		return actor.ErrUnhandled
	}
	heard := x.heard
	x.heard = nil
	return ctx.Reply(actor.Text(strings.Join(heard, ";")))
}

// noisy logs a text on each level, or does not handle what is none.
type noisy struct{}

func (noisy) Receive(ctx *actor.Context, msg *actor.Message) error {
	text := msg.Text()
	if text == "" {
		return actor.ErrUnhandled
	}
	ctx.Debug(text)
	ctx.Info(text)
	ctx.Warn(text)
	ctx.Error(text)
	return nil
}
