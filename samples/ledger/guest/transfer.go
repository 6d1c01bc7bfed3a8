package main

import "github.com/wasmactors/wasmactors/abi"

// transfer is one row of the input.
type transfer struct {
	ID       int64
	From, To string
	Amount   int64 // cents
}

// UnmarshalCBOR reads a map; a field that is missing or of another type is an error.
func (t *transfer) UnmarshalCBOR(r *abi.Reader) {
	seen := 0
	for n := r.Map(); n > 0 && r.Err() == nil; n-- {
		seen++
		switch string(r.TextBytes()) {
		case "id":
			t.ID = r.Int()
		case "from":
			t.From = r.Text()
		case "to":
			t.To = r.Text()
		case "amount":
			t.Amount = r.Int()
		default:
			r.Skip()
			seen--
		}
	}
	if seen != 4 {
		r.Fail(abi.ErrMissing)
	}
}

// MarshalCBOR writes what UnmarshalCBOR reads.
func (t *transfer) MarshalCBOR(w *abi.Writer) {
	w.Map(4)
	w.Text("id")
	w.Int(t.ID)
	w.Text("from")
	w.Text(t.From)
	w.Text("to")
	w.Text(t.To)
	w.Text("amount")
	w.Int(t.Amount)
}

// receipt is the answer to a transfer.
type receipt struct {
	ID     int64
	Status string
}

func (r *receipt) MarshalCBOR(w *abi.Writer) {
	w.Map(2)
	w.Text("id")
	w.Int(r.ID)
	w.Text("status")
	w.Text(r.Status)
}
