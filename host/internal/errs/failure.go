package errs

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
)

// AsFailure is err itself if it is a failure, else one of a kind.
func AsFailure(kind abi.FailureKind, err error) *abi.Failure {
	var f *abi.Failure
	if errors.As(err, &f) {
		return f
	}
	return &abi.Failure{Kind: kind, Reason: err.Error()}
}

// FailureOf is the failure for an error of an actor in Go, in its turn of a number.
func FailureOf(err error, turn uint64) *abi.Failure {
	var known *abi.Failure
	if errors.As(err, &known) {
		return known
	}
	return &abi.Failure{Kind: abi.FailureGuestError, Reason: err.Error(), Turn: turn}
}
