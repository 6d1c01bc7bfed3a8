package wasi

import (
	"context"
	"fmt"
)

// Host is what the functions of this package ask of the actor instance that
// calls them. All methods are called on the goroutine that runs the turn, and
// none may keep a slice that it is given: it aliases the guest's memory.
type Host interface {
	// Now is the turn's clock, nanoseconds since 1970 (UTC): the same for the
	// whole turn. It answers every clock that a guest may read.
	Now() int64
	// Random fills p from the actor's random stream.
	Random(p []byte)
	// Stdout and Stderr take what the guest writes to descriptors 1 and 2, in
	// pieces of any size.
	Stdout(p []byte)
	Stderr(p []byte)
	// Args is the command line, with the program's name first, and Env the
	// environment as "KEY=value". Neither may contain a NUL byte. They must not
	// change while an instance lives.
	Args() []string
	Env() []string
	// Files is the table of descriptors, nil if no directory is granted.
	Files() *FileTable
	// Charge accounts for work that the guest makes the host do, in units of
	// fuel (one unit is about half a nanosecond). It is called before the work
	// is done and may end the turn by a panic.
	Charge(fuel uint64)
	// Wait is asked when the guest wants to wait for a time that has not come,
	// which never helps: the clock stands still. If it reports true the guest is
	// told that the time has come, if false that this is not possible
	// (ENOTSUP). It may also end the turn by a panic.
	Wait() bool
	// Exit ends the turn because the guest has called proc_exit; it does not
	// return. (Should it return, the function panics with *ExitError itself.)
	Exit(code uint32)
}

// ExitError is the panic value for a guest that exits.
type ExitError struct{ Code uint32 }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Carrier is a context that brings its Host along. The context given to wazero's
// calls should be one: it is found by a type assertion, without a walk through
// context values.
type Carrier interface {
	context.Context
	WASIHost() Host
}

// FromContext finds the Host: ctx itself if it is a Carrier, else what
// WithHost has put there; nil if there is none.
func FromContext(ctx context.Context) Host {
	if c, ok := ctx.(Carrier); ok {
		return c.WASIHost()
	}
	h, _ := ctx.Value(hostKey{}).(Host)
	return h
}

// WithHost is a context that carries h, for callers without a Carrier of their
// own.
func WithHost(ctx context.Context, h Host) context.Context {
	return context.WithValue(ctx, hostKey{}, h)
}

type hostKey struct{}
