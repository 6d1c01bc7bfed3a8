package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// delivery has the workers below it: it is their supervisor, and they have its grants. It is a child of the
// queue, so a queue that begins anew has workers that do, too.
type delivery struct{}

const mostWorkers = 64

func (*delivery) Started(ctx *actor.Context) error {
	var s settings
	if err := ctx.DecodeArgs(&s); err != nil {
		return err
	}
	n, err := s.number("workers", mostWorkers)
	if err != nil {
		return err
	}
	timeout, err := s.duration("timeout", time.Hour)
	if err != nil {
		return err
	}
	for i := int64(1); i <= n; i++ {
		ctx.Spawn("worker", "worker-"+strconv.FormatInt(i, 10), post{ctx.Parent(), timeout})
	}
	return nil
}

func (*delivery) Receive(_ *actor.Context, msg *actor.Message) error {
	if msg.Kind() == actor.KindSpawnFailed {
		return errors.New("a worker cannot be: " + msg.Text())
	}
	return actor.ErrUnhandled
}
