//go:build wasip1

// The Go programs of the compute suite. A turn runs one of them: the low eight
// bits of its argument say which, the rest how much work it does. The result is a
// checksum of all that it has computed.
package main

// programs in the order of compute.Programs.
var programs = []func(n int) uint32{sorting, sha, parseJSON, match, matrix, nbody, deflate, interpret}

//go:wasmexport wasmactors_init
func start() int32 { return 0 }

//go:wasmexport wasmactors_turn
func turn(what int32) int32 {
	return int32(programs[what&0xff](int(what >> 8)))
}

// random is a xorshift generator: the same numbers in every run.
type random uint32

func (r *random) next() uint32 {
	x := uint32(*r)
	x ^= x << 13
	x ^= x >> 17
	x ^= x << 5
	*r = random(x)
	return x
}

// mix adds a value to a checksum.
func mix(sum, v uint32) uint32 { return (sum ^ v) * 16777619 }

func main() {}
