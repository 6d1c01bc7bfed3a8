package feed

import (
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
)

// What the decoder takes is what a general decoder sees in the same bytes; an event is valid CBOR.
func FuzzOrder(f *testing.F) {
	for _, v := range []any{[]any{"ack", 7}, []any{"close", nil}, []any{"ack", "x"}, []any{"end", 1}, []any{"ack"}} {
		b, err := cbor.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		op, n, err := readOrder(b)
		if err != nil {
			return
		}
		var v []any
		if err := cbor.Unmarshal(b, &v); err != nil || len(v) != 2 || v[0] != op || op == "ack" && v[1] != n {
			t.Fatalf("% x: %q, %d; the other %v, %v", b, op, n, v, err)
		}
		if event := appendEvent(nil, op, n, op, b, n); abi.Valid(event) != nil {
			t.Fatalf("% x", event)
		}
	})
}
