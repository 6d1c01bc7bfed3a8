package secret

import "github.com/wasmactors/wasmactors/abi"

// Keys are what a guest gets to know of the system's secret: the seed of its incarnation's randomness, and the key of the refs
// of its children. The zero value has none.
type Keys struct {
	Seed  [abi.SeedSize]byte
	child abi.RefKey
}

// Draw makes the seed of an incarnation, and with the first one also the key.
func (k *Keys) Draw(s *Secret, of abi.Ref, incarnation uint64) {
	seed, key := s.Guest(of, incarnation)
	if k.Seed = seed; incarnation == 0 {
		k.child = key
	}
}

// Child is the key of the refs of the children that the guest spawns.
func (k *Keys) Child(s *Secret, of abi.Ref) abi.RefKey {
	if k.child == (abi.RefKey{}) {
		_, k.child = s.Guest(of, 0)
	}
	return k.child
}
