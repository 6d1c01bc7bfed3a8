package flow_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/host"
	hostflow "github.com/wasmactors/wasmactors/host/flow"
)

// The codec writes what host.Encode writes, and reads what Message.Decode reads, also of the types that need no reflection.
func TestCodecOfMessages(t *testing.T) {
	same(t, hostflow.CBOR[int](), 0, 1, -1, 23, 24, math.MaxInt, math.MinInt)
	same(t, hostflow.CBOR[int64](), 0, 7, math.MaxInt64, math.MinInt64)
	same(t, hostflow.CBOR[string](), "", "a", "ä\x00", "a longer text than twenty-three bytes")
	same(t, hostflow.CBOR[[]byte](), []byte{1}, nil)
	same(t, hostflow.CBOR[map[string]int](), map[string]int{"a": 1})
	same(t, hostflow.CBOR[bool](), true, false)
	type named int
	same(t, hostflow.CBOR[named](), 5, -5)
}

func same[T any](t *testing.T, c flow.Codec[T], vs ...T) {
	t.Helper()
	others := []host.Raw{{0xf6}, {0x01}, {0x20}, {0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x3b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0x61, 'x'}, {0x61, 0xff}, {0x41, 1}, {0xfb, 0x40, 0, 0, 0, 0, 0, 0, 0}, {0x80}, {0xa0}, {0xf5}, {0x1a}}
	for _, v := range vs {
		want, err := host.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		w := abi.NewWriter(nil)
		if c.Put(w, v); string(w.Bytes()) != string(want) {
			t.Errorf("%T %v: wrote %x, want %x", v, v, w.Bytes(), want)
		}
		others = append(others, want)
	}
	for _, payload := range others {
		var want T
		bad := (host.Message{Payload: payload}).Decode(&want) != nil
		r := abi.NewReader(payload)
		got := c.Get(r)
		if (r.Done() != nil) != bad || !bad && !reflect.DeepEqual(got, want) {
			t.Errorf("%T of %x: read %v, %v; want %v, refused: %v", want, payload, got, r.Done(), want, bad)
		}
	}
}
