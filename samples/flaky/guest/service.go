package main

import (
	"strconv"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// service does what the call's script says, so that every run sees the same
// trouble.
type service struct{}

func (service) Receive(ctx *actor.Context, msg *actor.Message) error {
	var c call
	if err := msg.Decode(&c); err != nil {
		return ctx.ReplyError("not a call: " + err.Error())
	}
	switch c.Trouble {
	case "":
		return ctx.Reply(&receipt{c.ID, "order " + strconv.FormatInt(c.ID, 10) + " is accepted"})
	case "busy":
		return ctx.ReplyError("busy")
	case "garbage":
		return ctx.Reply(actor.Text("<html>502 Bad Gateway</html>"))
	case "silent":
		return nil
	case "crash":
		panic("out of luck at order " + strconv.FormatInt(c.ID, 10))
	}
	return ctx.ReplyError("no such trouble: " + c.Trouble)
}
