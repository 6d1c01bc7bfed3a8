package main

import (
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/tcp"
)

// echo listens on the address that it is started with, and returns what clients send.
type echo struct{ conns tcp.Conns }

func newEcho() actor.Actor {
	e := &echo{}
	e.conns.OnData = func(ctx *actor.Context, c *tcp.Conn, data []byte) error {
		c.Write(ctx, data)
		return nil
	}
	return e
}

// Started implements actor.Starter.
func (e *echo) Started(ctx *actor.Context) error {
	tcp.Listen(ctx, ctx.Args().Text(), tcp.Options{Idle: time.Hour}, time.Second, func(_ *actor.Context, _ *tcp.Listener, err error) error { return err })
	return nil
}

// Receive implements actor.Actor.
func (e *echo) Receive(ctx *actor.Context, msg *actor.Message) error {
	return e.conns.Receive(ctx, msg)
}

func init() { actor.Register("echo", newEcho) }
