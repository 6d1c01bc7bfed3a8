//go:build tinygo && wasip1

package actor

import (
	"crypto/rand"
	"errors"
	"unsafe"
)

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(p unsafe.Pointer, n uint32) (errno uint32)

// turnRandom reads the actor's own stream of random bytes.
type turnRandom struct{}

func (turnRandom) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if randomGet(unsafe.Pointer(&p[0]), uint32(len(p))) != 0 {
		return 0, errors.New("actor: no random bytes")
	}
	return len(p), nil
}

// TinyGo's own reader is arc4random of wasi-libc, which is seeded once, before the image is
// made: all actors of the module would draw the same, in every incarnation.
func init() { rand.Reader = turnRandom{} }
