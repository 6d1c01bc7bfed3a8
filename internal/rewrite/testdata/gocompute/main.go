//go:build wasip1

// A guest of standard Go that computes: what metering costs real code.
package main

import (
	"crypto/sha256"
	"sort"
)

var buf [1 << 16]byte

//go:wasmexport wasmactors_init
func start() int32 { return 0 }

//go:wasmexport wasmactors_turn
func turn(kind int32) int32 {
	switch kind {
	case 1:
		sum := sha256.Sum256(buf[:])
		return int32(sum[0])
	default:
		x := make([]int, 10000)
		s := uint32(1)
		for i := range x {
			s = s*1664525 + 1013904223
			x[i] = int(s >> 8)
		}
		sort.Ints(x)
		return int32(x[0])
	}
}

func main() {}
