package mapped

import (
	"github.com/wasmactors/wasmactors/abi"
)

//go:generate go -C ../../../../guest-sdk run ./gen -dir ../host/typed/testdata/mapped -output versions_cbor.go -type Kept,Strict,Bag,KeptTree,Payment -cddl versions.cddl

// Kept keeps what it does not know, between what it knows.
type Kept struct {
	B    int64       `cbor:"b"`
	D    string      `cbor:"d,omitempty"`
	Kid  *Strict     `cbor:"kid,omitempty"`
	More abi.Unknown // no key of its own
	Long string      `cbor:"a key that is longer"`
	One  int64       `cbor:"1,keyasint"`
}

// Bag knows no key and keeps all.
type Bag struct{ abi.Unknown }

// KeptTree contains itself and keeps what it does not know on every level.
type KeptTree struct {
	Kids []KeptTree `cbor:"k,omitempty"`
	More abi.Unknown
}

// Strict refuses what it does not know.
//
//wasmactors:unknown refuse
type Strict struct {
	A int64 `cbor:"a"`
}

// Payment is a message in its third version.
//
//wasmactors:message name=bank.payment version=3 answer=Receipt
type Payment struct {
	Cents    int64  `cbor:"cents,required"`
	Currency string `cbor:"currency"`
	More     abi.Unknown
}

// PaymentV2 had no currency.
//
//wasmactors:message name=bank.payment version=2
type PaymentV2 struct {
	Cents int64 `cbor:"cents"`
}

// Upcast makes euros of it.
func (p *PaymentV2) Upcast(next *Payment) { next.Cents, next.Currency = p.Cents, "EUR" }

// PaymentV1 had whole euros.
//
//wasmactors:message name=bank.payment version=1
type PaymentV1 struct {
	Euros int32 `cbor:"euros"`
}

// Upcast makes cents of it.
func (p *PaymentV1) Upcast(next *PaymentV2) { next.Cents = int64(p.Euros) * 100 }

// Receipt answers a Payment.
//
//wasmactors:message name=bank.receipt
type Receipt struct {
	Number uint64 `cbor:"number"`
}
