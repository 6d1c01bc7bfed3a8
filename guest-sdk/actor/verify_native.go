//go:build !wasip1

package actor

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// verify panics, which fails the turn, if what a value has written is not read as the same: see
// actortest.SerializeMessages. It is for native tests alone.
func verify(v Encoder, written []byte) {
	if !bridge.SerializeMessages || v == nil {
		return
	}
	if err := abi.Valid(written); err != nil {
		panic(fmt.Sprintf("actor: %T has not written one item of CBOR: %v", v, err))
	}
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	again, ok := reflect.New(t).Interface().(interface {
		Encoder
		Decoder
	})
	if !ok {
		return // it is only ever sent
	}
	r := abi.NewReader(written)
	again.UnmarshalCBOR(r)
	if err := r.Done(); err != nil {
		panic(fmt.Sprintf("actor: %T cannot read what it has written: %v", v, err))
	}
	w := abi.NewWriter(nil)
	again.MarshalCBOR(w)
	if !bytes.Equal(w.Bytes(), written) {
		panic(fmt.Sprintf("actor: %T has written %x, and is %x when it was read", v, written, w.Bytes()))
	}
}
