package main

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type transfer,receipt,totals

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
