//go:build !wasm

package abi

import (
	"encoding/binary"
	"unsafe"
)

// Eight bytes at once, the lowest first. The caller has checked that they lie within the
// capacity of b.

func loadWord(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at : at+8 : cap(b)]) }

func storeWord(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:at+8:cap(b)], v) }

func loadAt(p unsafe.Pointer, at int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, at))[:])
}

func storeAt(p unsafe.Pointer, at int, v uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(p, at))[:], v)
}

// copyText copies s to where there is room.
func copyText(p unsafe.Pointer, at int, s string) {
	copy(unsafe.Slice((*byte)(unsafe.Add(p, at)), len(s)), s)
}
