package main

import "github.com/wasmactors/wasmactors/abi"

// note is every message of these guests, and their arguments.
type note struct {
	op       string
	id       int64 // of the transfer
	key      int64 // of what an account is to do
	from, to string
	amount   int64
	mistake  mistake
}

// MarshalCBOR implements actor.Encoder.
func (n *note) MarshalCBOR(w *abi.Writer) {
	w.Map(7)
	w.Text("op")
	w.Text(n.op)
	w.Text("id")
	w.Int(n.id)
	w.Text("key")
	w.Int(n.key)
	w.Text("from")
	w.Text(n.from)
	w.Text("to")
	w.Text(n.to)
	w.Text("amount")
	w.Int(n.amount)
	w.Text("mistake")
	w.Int(n.mistake)
}

// UnmarshalCBOR implements actor.Decoder.
func (n *note) UnmarshalCBOR(r *abi.Reader) {
	for left := r.Map(); left > 0 && r.OK(); left-- {
		switch r.Text() {
		case "op":
			n.op = r.Text()
		case "id":
			n.id = r.Int()
		case "key":
			n.key = r.Int()
		case "from":
			n.from = r.Text()
		case "to":
			n.to = r.Text()
		case "amount":
			n.amount = r.Int()
		case "mistake":
			n.mistake = r.Int()
		default:
			r.Skip()
		}
	}
}
