package actor

// Rand is a source of randomness that is part of the actor's state: the same
// seed gives the same numbers. It is splitmix64 over a 128-bit seed folded to 64;
// not for cryptography.
type Rand struct{ state uint64 }

// Seed begins anew.
func (r *Rand) Seed(seed [16]byte) {
	r.state = 0
	for i, b := range seed {
		r.state ^= uint64(b) << (8 * (i % 8)) * uint64(1+i/8*2)
	}
}

// Uint64 is uniform over all values.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
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
