//go:build !wasm

package abi

import "encoding/binary"

// Eight bytes at once, the lowest first. The caller has checked that they lie within the
// capacity of b.

func loadWord(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at : at+8 : cap(b)]) }

func storeWord(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:at+8:cap(b)], v) }
