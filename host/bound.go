package host

import (
	"encoding/hex"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/secret"
)

// Asks that are bound to the incarnation that takes them. An actor may take a question in one turn and answer it in a later
// one; if it stops in between, no other actor will answer. A bound ask then ends at once. The actor keeps a list of taken
// questions; answered ones are removed when the list has doubled.

// ErrEnded ends a bound ask when the actor has taken the question and has then
// ended, without a failure and without an answer. It is an ErrStopped, too.
var ErrEnded = errs.ErrEnded

// failTaken ends the asks that the incarnation which has just ended will not answer.
func (a *actor) failTaken(cause *abi.Failure) {
	taken := a.taken.End()
	a.taken = nil
	if len(taken) == 0 {
		return
	}
	err := ErrEnded
	if cause != nil {
		err = a.sys.turnError(a, cause)
	}
	for _, q := range taken {
		a.sys.willNotAnswer(nil, q.Asker, q.Correlation, a.uid, err)
	}
}

// reportID names a failure: the same in the crash report and in the errors that it causes. It reveals nothing else. It is 16
// hexadecimal digits.
func (s *System) reportID(of abi.Ref, turn uint64) string {
	v := s.secret.Derive(secret.ForReports, of, turn)
	return hex.EncodeToString(v[:8])
}

// turnError is the error that waiting askers get for a failure.
func (s *System) turnError(a *actor, f *abi.Failure) error {
	return &TurnError{Ref: a.ref(), Failure: f, ID: s.reportID(a.uid, f.Turn)}
}
