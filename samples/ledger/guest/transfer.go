package main

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type transfer,receipt,totals,instruction,standing

// transfer is one row of the input.
type transfer struct {
	ID     int64  `cbor:"id,required"`
	From   string `cbor:"from,required"`
	To     string `cbor:"to,required"`
	Amount int64  `cbor:"amount,required"` // cents
}

// receipt is the answer to a transfer.
type receipt struct {
	ID     int64  `cbor:"id"`
	Status string `cbor:"status"`
}

// totals is the auditor's report.
type totals struct {
	Transfers int64 `cbor:"transfers"`
	Volume    int64 `cbor:"volume"` // cents
	Ended     int64 `cbor:"ended"`
}

// instruction is what an account of a cluster is asked: a clerk's order to pay, or another account's payment.
type instruction struct {
	ID     int64  `cbor:"id,required"` // of the clerk's orders, or of the payer's payments; each is larger than the one before
	Clerk  string `cbor:"clerk"`       // of an order
	To     string `cbor:"to"`          // of an order
	Payer  string `cbor:"payer"`       // of a payment
	Amount int64  `cbor:"amount,required"`
}

// standing is an account's balance, and what has left it and is on its way, in cents.
type standing struct {
	Balance  int64 `cbor:"balance"`
	OnTheWay int64 `cbor:"on_the_way"`
}
