package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type order

// order is a message as people write them.
type order struct {
	ID    uint64 `cbor:"id"`
	From  string `cbor:"from"`
	To    string `cbor:"to"`
	Cents int64  `cbor:"cents"`
	Final bool   `cbor:"final"`
	Note  []byte `cbor:"note"`
}

// clerk sends an order back with one cent less.
type clerk struct{ last order }

func (c *clerk) Receive(ctx *actor.Context, msg *actor.Message) error {
	if err := msg.Decode(&c.last); err != nil {
		return err
	}
	c.last.Cents--
	ctx.Tell(msg.Sender(), &c.last)
	return nil
}

func init() { actor.Register("clerk", func() actor.Actor { return &clerk{} }) }
