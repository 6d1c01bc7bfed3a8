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
	// ErrClosed: the observer, or the system, has ended.
	ErrClosed = errors.New("observe: closed")
	// ErrBusy: the bound of simultaneous traces or samples is reached.
	ErrBusy = errors.New("observe: too many at a time")
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func noActor(path string) error { return fmt.Errorf("%w: %s", ErrNoActor, clip(path)) }
