package sandbox

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
)

// Errors of this package.
var (
	// ErrTooManyInstances is what Get returns at Config.WithMaxInstances.
	ErrTooManyInstances = errors.New("runtime: too many instances")
	// ErrClosed is what methods of a closed Engine or Image return.
	ErrClosed = errors.New("runtime: closed")
	// errProcess wraps errors of the compiling process that are not the module's fault.
	errProcess = errors.New("runtime: the compile process")
	// ErrNotSaved wraps why an instance's state cannot be saved.
	ErrNotSaved = errors.New("runtime: the state cannot be saved")
)

// Violations of the contract that show when commands are read; see
// [Instance.NextCommand]. The decoder has its own (abi.Err...).
var (
	ErrBatchContinued  = errors.New("the batch went on after a turn that must end it")
	ErrAfterFail       = errors.New("a command after fail")
	ErrMissingMarker   = errors.New("the outbox ends before the turn's end marker")
	ErrTrailing        = errors.New("data after the last turn's end marker")
	ErrTooManyCommands = errors.New("more than 65536 commands in a turn")
)

// LoadError is a module that cannot become an image.
type LoadError struct {
	Name   string // of the image
	Reason string
	Err    error // the cause, or nil; an *abi.Failure if the initialisation failed
}

func (e *LoadError) Error() string {
	if e.Name == "" {
		return e.Reason
	}
	return e.Name + ": " + e.Reason
}

// Unwrap is the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// abort is what host functions panic with to end a turn. wazero hands it back
// from the call, wrapped.
type abort struct {
	kind    abi.FailureKind
	reason  string
	message string
	trace   string // the guest's own stack trace
}

func (a *abort) Error() string { return a.kind.String() + ": " + a.reason }

func violation(reason string) *abort { return &abort{kind: abi.FailureABIViolation, reason: reason} }
