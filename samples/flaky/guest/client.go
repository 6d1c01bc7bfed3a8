package main

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// client asks the service. It does not try to live with a service that lets it
// down: it fails, and when to try again is for its supervisor to decide. What it
// was about is lost with it; the supervisor still has it.
type client struct{ options options }

// Start tells the supervisor that there is a client (again).
func (c *client) Started(ctx *actor.Context) error {
	if err := ctx.DecodeArgs(&c.options); err != nil {
		return err
	}
	ctx.Tell(ctx.Parent(), actor.Text("ready"))
	return nil
}

func (c *client) Receive(ctx *actor.Context, msg *actor.Message) error {
	var next call
	if err := msg.Decode(&next); err != nil {
		return err
	}
	timeout := time.Duration(c.options.Timeout) * time.Millisecond
	ctx.AskPath(c.options.Service, &next, timeout, func(ctx *actor.Context, answer *actor.Message) error {
		switch answer.Kind() {
		case actor.KindReplyError:
			return errors.New("the service is " + answer.Text())
		case actor.KindAskTimeout:
			return errors.New("no answer within " + timeout.String())
		}
		var r receipt
		if err := answer.Decode(&r); err != nil {
			return errors.New("the answer is garbage: " + err.Error())
		}
		if c.options.Reset {
			ctx.ResetBackoff()
		}
		ctx.Tell(ctx.Parent(), &r)
		return nil
	})
	return nil
}
