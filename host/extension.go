package host

import "context"

// Extension is something that a system has once, and that code in Go shares: a pool of
// connections, settings, a client. Its value is made when it is first asked for, or when the
// system starts ([Config.WithExtensions]), and closed with the system. An Extension itself is
// usually a package variable; it is immutable, and may be used by any goroutine and any number of systems.
//
// For guests use a service (host/service), which has an actor, grants and bounds.
type Extension[T any] struct {
	name  string
	open  func(*System) (T, error)
	close func(context.Context, T) error
}

// NewExtension makes an extension: a name for errors, what makes its value for a system, and what
// closes the value again, which may be nil. A panic of close is an error of [System.Close]. Open may get other extensions of the system, and start
// actors. Close is called when all actors have ended, before extensions that were there first.
func NewExtension[T any](name string, open func(*System) (T, error), close func(context.Context, T) error) *Extension[T] {
	return &Extension[T]{name, open, close}
}

// Name is the extension's name.
func (x *Extension[T]) Name() string { return x.name }

// Get returns the value for a system, and makes it if it is not there yet: of several callers one
// makes it, and the others wait. An error of open is kept: every caller gets the same one. In a
// system that has ended the error is ErrClosed. Get may be called by actors; the first call takes
// as long as open does. If the open functions of two extensions get each other, both wait for ever.
func (x *Extension[T]) Get(s *System) (T, error) {
	select {
	case <-s.done:
		s.extensions.Shut()
	default:
	}
	v, err := s.extensions.Get(x, x.name, func() (any, func(context.Context) error, error) {
		v, err := x.open(s)
		if err != nil || x.close == nil {
			return v, nil, err
		}
		return v, func(ctx context.Context) error { return x.close(ctx, v) }, nil
	})
	if err != nil {
		var none T
		return none, err
	}
	t, _ := v.(T) // the value may be nil, if T is an interface
	return t, nil
}

// load implements AnyExtension.
func (x *Extension[T]) load(s *System) error {
	_, err := x.Get(s)
	return err
}

// AnyExtension is an [Extension] of any type.
type AnyExtension interface {
	Name() string
	load(*System) error
}
