package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type Shop,hire -cddl messages.cddl

// Shop is what a shop does.
//
//wasmactors:protocol timeout=2s
type Shop interface {
	// Buy is asked: it has an answer.
	Buy(ctx *actor.Context, o *order) (*receipt, error)
	// Close is told.
	Close(ctx *actor.Context, c *closing)
	// Audit takes what begins with audit, whatever its type.
	//wasmactors:bind audit.*
	Audit(ctx *actor.Context, msg *actor.Message) error
}

// order is in its second version: the first had no count.
//
//wasmactors:message name=shop.order version=2 answer=receipt
type order struct {
	Item  string        `cbor:"item,required"`
	Count int64         `cbor:"count"`
	Rest  actor.Unknown // what later versions may have: it is passed on
}

// orderV1 is what older writers send.
//
//wasmactors:message name=shop.order version=1
type orderV1 struct {
	Item string `cbor:"item,required"`
}

// Upcast makes an order of it.
func (o *orderV1) Upcast(next *order) { next.Item, next.Count = o.Item, 1 }

// receipt answers an order.
//
//wasmactors:message name=shop.receipt
type receipt struct {
	Number int64 `cbor:"number"`
}

// closing ends the day. It has no other keys.
//
//wasmactors:message name=shop.closing
//wasmactors:unknown refuse
type closing struct{}

// hire tells a clerk which shop to work for.
type hire struct {
	Shop actor.RefOf[ShopMessage] `cbor:"shop"`
}
