package actor

import "github.com/wasmactors/wasmactors/abi"

// Rand is a source of randomness that is part of the actor's state: the same seed gives the same numbers. They are
// SipHash-2-4 of 0, 1, 2 and so on under the seed, so some of them do not reveal the others, or the seed.
type Rand struct {
	key  [abi.SeedSize]byte
	next uint64
}

// Seed restarts the numbers from a seed.
func (r *Rand) Seed(seed [abi.SeedSize]byte) { r.key, r.next = seed, 0 }

// Uint64 is uniform over all values.
func (r *Rand) Uint64() uint64 {
	r.next++
	return abi.SipHash(r.key, r.next-1)
}

// IntN is uniform in [0, n); n must be positive.
func (r *Rand) IntN(n int) int {
	if n <= 0 {
		panic("actor: IntN of a number that is not positive")
	}
	limit := -uint64(n) % uint64(n) // the values below would come once too often
	for {
		if v := r.Uint64(); v >= limit {
			return int(v % uint64(n))
		}
	}
}

// Float64 is uniform in [0, 1).
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }
