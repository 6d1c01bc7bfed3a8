package secret

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/wasmactors/wasmactors/abi"
)

// Dice are an actor's source of randomness, which follows from the system's secret. The zero value is ready; only the actor's
// own run may use it.
type Dice struct{ *drawn }

// drawn is the generator, once something was drawn.
type drawn struct {
	pcg  *rand.PCG
	rand *rand.Rand
}

// Rand is the source of the actor of a ref. s counts when it is called for the first time.
func (d *Dice) Rand(s *Secret, of abi.Ref) *rand.Rand {
	if d.drawn == nil {
		v := s.Derive(ForJitter, of, 0)
		pcg := rand.NewPCG(binary.LittleEndian.Uint64(v[:8]), binary.LittleEndian.Uint64(v[8:16]))
		d.drawn = &drawn{pcg, rand.New(pcg)}
	}
	return d.rand
}

// Save is where the generator is; nil: nothing was drawn.
func (d *Dice) Save() []byte {
	if d.drawn == nil {
		return nil
	}
	b, _ := d.pcg.MarshalBinary()
	return b
}

// Load goes on from where Save was called.
func (d *Dice) Load(s *Secret, of abi.Ref, b []byte) error {
	d.Rand(s, of)
	return d.pcg.UnmarshalBinary(b)
}
