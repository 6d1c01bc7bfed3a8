//go:build !wasip1

package actor

import "github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"

// verify panics, which fails the turn, if what a value has written does not read back as the same value: see
// actortest.SerializeMessages. It is for native tests only.
func verify(v Encoder, written []byte) {
	if bridge.Verify == nil {
		return
	}
	if why := bridge.Verify(v, written); why != "" {
		panic(why)
	}
}
