package pubsub

import (
	"bytes"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
)

// What the decoders take is what a general decoder sees in the same bytes.
func FuzzWire(f *testing.F) {
	for _, v := range []any{
		map[string]any{"topic": "a.b", "value": []int{1, 2}, "retain": true}, map[string]any{"topic": "a"}, []any{"ack", 7}, []any{"close", nil}, []any{"ack", "x"},
	} {
		b, err := cbor.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if name, value, retain, err := readPublish(b); err == nil {
			var v struct {
				Topic  string          `cbor:"topic"`
				Value  cbor.RawMessage `cbor:"value"`
				Retain bool            `cbor:"retain"`
			}
			if err := cbor.Unmarshal(b, &v); err != nil || v.Topic != name || v.Retain != retain || !bytes.Equal(v.Value, value) {
				t.Fatalf("% x: %q, % x, %v; the other %+v, %v", b, name, value, retain, v, err)
			}
			event := appendEvent(nil, 7, &Event{name, value}, 3)
			if err := abi.Valid(event); err != nil {
				t.Fatalf("% x: %v", event, err)
			}
		}
		if op, n, err := readOrder(b); err == nil {
			var v []any
			if err := cbor.Unmarshal(b, &v); err != nil || len(v) != 2 || v[0] != op || op == "ack" && v[1] != n {
				t.Fatalf("% x: %q, %d; the other %v, %v", b, op, n, v, err)
			}
		}
	})
}
