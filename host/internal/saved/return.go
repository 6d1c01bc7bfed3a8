package saved

import (
	"cmp"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
)

// Returning is the state of an actor of a checkpoint that returns by itself; ref is the one that it must have.
func Returning(part []byte, ref abi.Ref) (*State, error) {
	s, err := Decode(part)
	if err != nil || s.Ref != ref || s.Whole == nil || s.Whole.Noted == nil {
		return nil, cmp.Or(err, fmt.Errorf("%w: another actor than its index says", ErrState))
	}
	if _, ok := s.Whole.Noted.Record.Child(); !ok {
		return nil, fmt.Errorf("%w: its supervisor has noted what cannot be", ErrState)
	}
	return s, nil
}
