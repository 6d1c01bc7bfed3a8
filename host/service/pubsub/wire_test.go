package pubsub

import (
	"bytes"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// What the decoders take is what a general decoder sees in the same bytes.
func FuzzWire(f *testing.F) {
	for _, v := range []any{
		map[string]any{"topic": "a.b", "value": []int{1, 2}, "retain": true}, map[string]any{"topic": "a"},
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
		}
	})
}
