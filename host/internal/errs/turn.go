package errs

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// TurnError is why an ask has no answer: the turn of its message has failed.
type TurnError struct {
	Ref     ref.Ref // of the actor that was asked
	Failure *abi.Failure
	ID      string // of the crash report, see event.Event
}

// Error names the actor and its failure.
func (e *TurnError) Error() string {
	return "host: " + e.Ref.Path() + " has failed: " + e.Failure.Error()
}

// Unwrap is the failure.
func (e *TurnError) Unwrap() error { return e.Failure }

// FailedAt names the actor that was asked in the error of its turn: one of another node has no path here.
func FailedAt(err error, asked ref.Ref) error {
	if x, ok := err.(*TurnError); ok && x.Ref.UID() == asked.UID() {
		x.Ref = asked
	}
	return err
}

// BadName is ErrBadName with the invalid name.
func BadName(name string) error {
	return fmt.Errorf("%w: %q: use 1 to %d bytes of A-Z a-z 0-9 _ . ~ -, but not . or ..", ErrBadName, printable.Clip(name, 100), abi.MaxName)
}
