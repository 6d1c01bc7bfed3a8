package host

import "github.com/wasmactors/wasmactors/abi"

// RefOf is the ref that a guest has sent as a number in a payload: that of an actor, living or
// not, or of anybody else. The error is ErrNobody for 0. It says nothing about whether there is
// such an actor; what is sent to one that is not fails as always.
func (s *System) RefOf(uid abi.Ref) (Ref, error) {
	if uid == 0 {
		return Ref{}, ErrNobody
	}
	return s.refOf(uid), nil
}
