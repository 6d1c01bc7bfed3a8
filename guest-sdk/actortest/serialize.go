//go:build !wasip1

package actortest

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// SerializeMessages makes everything that actors send be decoded again, until the test ends: a turn fails if a message
// cannot be read by its own type, or is not equal afterwards, as when a field is not written. It is for all actors of
// the process.
func SerializeMessages(t testing.TB) {
	had := bridge.Verify
	bridge.Verify = verify
	t.Cleanup(func() { bridge.Verify = had })
}

// verify says what is wrong with what a value has written.
func verify(v any, written []byte) string {
	if err := abi.Valid(written); err != nil {
		return fmt.Sprintf("actortest: %T has not written one item of CBOR: %v", v, err)
	}
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	again, ok := reflect.New(t).Interface().(interface {
		actor.Encoder
		actor.Decoder
	})
	if !ok {
		return "" // it is only ever sent
	}
	r := abi.NewReader(written)
	again.UnmarshalCBOR(r)
	if err := r.Done(); err != nil {
		return fmt.Sprintf("actortest: %T cannot read what it has written: %v", v, err)
	}
	w := abi.NewWriter(nil)
	again.MarshalCBOR(w)
	if !bytes.Equal(w.Bytes(), written) {
		return fmt.Sprintf("actortest: %T has written %x, and is %x when it was read", v, written, w.Bytes())
	}
	return ""
}
