//go:build wasip1

package main

import (
	"crypto/sha256"
	"encoding/binary"
)

// sha hashes n times 4 KiB, each time with the last hash in it.
func sha(n int) uint32 {
	var block [4096]byte
	for range n {
		sum := sha256.Sum256(block[:])
		copy(block[:], sum[:])
	}
	return binary.LittleEndian.Uint32(block[:])
}
