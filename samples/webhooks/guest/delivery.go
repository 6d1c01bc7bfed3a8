package main

import (
	"errors"
	"strconv"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// delivery has the workers below it: it is their supervisor, and they have its grants. It is a child of the
// queue, so a queue that starts over has workers that do, too.
type delivery struct{}

const mostWorkers = 64

func (*delivery) Started(ctx *actor.Context) error {
	var a deliveryArgs
	if err := ctx.DecodeArgs(&a); err != nil {
		return err
	}
	if err := a.check(); err != nil {
		return err
	}
	for i := int64(1); i <= a.Workers; i++ {
		ctx.Spawn("worker", "worker-"+strconv.FormatInt(i, 10), post{ctx.Parent(), a.Timeout})
	}
	return nil
}

func (*delivery) Receive(_ *actor.Context, msg *actor.Message) error {
	if msg.Kind() == actor.KindSpawnFailed {
		return errors.New("a worker cannot be: " + msg.Text())
	}
	return actor.ErrUnhandled
}
