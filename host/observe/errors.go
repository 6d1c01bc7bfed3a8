package observe

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalid wraps what is wrong with a query or a verb.
	ErrInvalid = errors.New("observe: invalid")
	// ErrNoActor: there is no actor at the path, or with the ref.
	ErrNoActor = errors.New("observe: no such actor")
	// ErrNoReport: there is no crash report with the ID.
	ErrNoReport = errors.New("observe: no such crash report")
	// ErrClosed: the observer, or the system, has ended.
	ErrClosed = errors.New("observe: closed")
	// ErrBusy: the limit of simultaneous traces or samples is reached.
	ErrBusy = errors.New("observe: too many traces or samples running")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func noActor(path string) error { return fmt.Errorf("%w: %s", ErrNoActor, clip(path)) }

func noReport(id string) error {
	return fmt.Errorf("%w: %s; it is no longer kept, or never was", ErrNoReport, clip(id))
}
