package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

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
		s.extensions.shut()
	default:
	}
	v, err := s.extensions.get(x, x.name, func() (any, func(context.Context) error, error) {
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

// WithExtensions adds extensions that New makes, in this order; each once, however often it is
// given. If one fails, New closes those before it and fails.
func (c Config) WithExtensions(xs ...AnyExtension) Config {
	c.extensions = append(c.extensions[:len(c.extensions):len(c.extensions)], xs...)
	return c
}

// extensions are those of a system.
type extensions struct {
	mu     sync.Mutex
	by     map[any]*extended
	made   []*extended // in the order in which they were made
	closed bool
}

// extended is the value of an extension. All but name is written before done is closed.
type extended struct {
	name  string
	done  chan struct{}
	value any
	err   error
	close func(context.Context) error
}

func (s *extensions) get(key any, name string, open func() (any, func(context.Context) error, error)) (any, error) {
	s.mu.Lock()
	x := s.by[key]
	if x == nil {
		if s.closed {
			s.mu.Unlock()
			return nil, fmt.Errorf("the extension %s: %w", name, ErrClosed)
		}
		if s.by == nil {
			s.by = map[any]*extended{}
		}
		x = &extended{name: name, done: make(chan struct{}), err: errNotOpened}
		s.by[key] = x
		s.mu.Unlock()
		s.open(x, open)
	} else {
		s.mu.Unlock()
		<-x.done
	}
	if x.err != nil {
		return nil, fmt.Errorf("the extension %s: %w", name, x.err)
	}
	return x.value, nil
}

// errNotOpened is what other callers get if open has panicked.
var errNotOpened = errors.New("opening it has panicked")

// open makes a value, and appends it behind the extensions that its open function has got.
func (s *extensions) open(x *extended, open func() (any, func(context.Context) error, error)) {
	defer close(x.done)
	x.value, x.close, x.err = open()
	if x.err != nil {
		return
	}
	s.mu.Lock()
	late := s.closed
	if !late {
		s.made = append(s.made, x)
	}
	s.mu.Unlock()
	if late { // the system has ended meanwhile
		x.err = ErrClosed
		if e := x.end(context.Background()); e != nil {
			x.err = errors.Join(ErrClosed, e)
		}
	}
}

// shut prevents new values; existing ones stay until end.
func (s *extensions) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// end closes all values, the last one first.
func (s *extensions) end(ctx context.Context) (err error) {
	s.mu.Lock()
	made := s.made
	s.made, s.closed = nil, true
	s.mu.Unlock()
	for i := len(made) - 1; i >= 0; i-- {
		if e := made[i].end(ctx); e != nil {
			err = errors.Join(err, fmt.Errorf("the extension %s was not closed in order: %w", made[i].name, e))
		}
	}
	return err
}

// end closes a value. A panic is an error: those that were there first, and the rest of the system,
// are still to be closed.
func (x *extended) end(ctx context.Context) (err error) {
	if x.close == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it has panicked: %v", p)
		}
	}()
	return x.close(ctx)
}
