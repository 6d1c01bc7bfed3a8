// Package orders is the other end of docs/guide/messages.md: an actor in Go that takes the same messages, and a caller.
package orders

import (
	"context"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/typed"
)

//go:generate go -C ../../../guest-sdk run ./gen -dir ../docs/examples/orders -output orders_cbor.go -type Order

// Order is a message.
//
//wasmactors:message name=shop.order version=2 answer=Receipt
type Order struct {
	Item  string `cbor:"item,required"`
	Count int64  `cbor:"count"`
	Rest  abi.Unknown
}

// Receipt answers it.
//
//wasmactors:message name=shop.receipt
type Receipt struct {
	Number int64 `cbor:"number"`
}

// Shop is a shop in Go.
func Shop() (host.Props, error) {
	var b typed.Bindings
	typed.Handle(&b, func(ctx *host.Context, o *Order) error {
		return ctx.Reply(host.Typed(&Receipt{Number: o.Count}))
	})
	b.Match("audit.*", func(ctx *host.Context, m host.Message) error { return ctx.Reply("nothing to see") })
	return host.Func(b.Receive), b.Err()
}

// Buy asks a shop. Neither another message nor another answer would compile.
func Buy(ctx context.Context, sys *host.System, shop host.RefOf[*Order], item string) (int64, error) {
	r, err := host.AskRef(ctx, sys, shop, &Order{Item: item, Count: 1})
	if err != nil {
		return 0, err
	}
	return r.Number, nil
}
