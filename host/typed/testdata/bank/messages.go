package main

import (
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type Bank,hire,entry,offer -cddl messages.cddl

// Bank is what a bank does.
//
//wasmactors:protocol timeout=2s
type Bank interface {
	Pay(ctx *actor.Context, p *payment) (*receipt, error)
	PayWhole(ctx *actor.Context, p *paymentV1) error
	Note(ctx *actor.Context, n *note)
	Count(ctx *actor.Context, q *count) *total
	//wasmactors:bind audit.*
	Audit(ctx *actor.Context, msg *actor.Message) error
	//wasmactors:bind audit.secret.*
	Secret(ctx *actor.Context, msg *actor.Message)
	//wasmactors:bind audit.secret.key
	Key(ctx *actor.Context, msg *actor.Message)
}

// payment is in its third version.
//
//wasmactors:message name=bank.payment version=3 answer=receipt
type payment struct {
	Cents    int64  `cbor:"cents,required"`
	Currency string `cbor:"currency"`
	actor.Unknown
}

// paymentV2 had no currency.
//
//wasmactors:message name=bank.payment version=2
type paymentV2 struct {
	Cents int64 `cbor:"cents"`
}

func (p *paymentV2) Upcast(next *payment) { next.Cents, next.Currency = p.Cents, "EUR" }

// paymentV1 had whole euros.
//
//wasmactors:message name=bank.payment version=1
type paymentV1 struct {
	Euros int32 `cbor:"euros"`
}

func (p *paymentV1) Upcast(next *paymentV2) { next.Cents = int64(p.Euros) * 100 }

// receipt answers a payment.
//
//wasmactors:message name=bank.receipt
type receipt struct {
	Number uint64 `cbor:"number"`
}

// note is told.
//
//wasmactors:message name=bank.note
//wasmactors:unknown refuse
type note struct {
	Text string `cbor:"text"`
}

// count asks how many there were.
//
//wasmactors:message name=bank.count answer=total
type count struct{}

// total answers it. It has no type of its own.
type total struct {
	Payments int64 `cbor:"payments"`
}

// hire tells a teller its bank, and how long to wait.
type hire struct {
	Bank    actor.RefOf[BankMessage] `cbor:"bank"`
	Timeout int64                    `cbor:"timeout,omitempty"` // milliseconds
}

// entry is what a teller passes on of a payment.
type entry struct {
	Payment payment   `cbor:"payment"`
	From    actor.Ref `cbor:"from"`
}

// offer has a ref of one type of message.
type offer struct {
	To actor.RefOf[*note] `cbor:"to"`
}
