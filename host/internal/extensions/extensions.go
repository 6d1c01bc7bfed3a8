// Package extensions keeps what a system has once: values that are made when they are first asked for, and closed with the system,
// the last one first.
package extensions

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmactors/wasmactors/host/internal/errs"
)

// Set has the values of the extensions of a system. All methods are for any goroutine.
type Set struct {
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

// Get returns the value of a key, and opens it if it is not there yet: of several callers one opens it, and the others wait. An
// error of open is kept. name is for errors; open also returns what closes the value, which may be nil.
func (s *Set) Get(key any, name string, open func() (any, func(context.Context) error, error)) (any, error) {
	s.mu.Lock()
	x := s.by[key]
	if x == nil {
		if s.closed {
			s.mu.Unlock()
			return nil, fmt.Errorf("the extension %s: %w", name, errs.ErrClosed)
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
func (s *Set) open(x *extended, open func() (any, func(context.Context) error, error)) {
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
		x.err = errs.ErrClosed
		if e := x.end(context.Background()); e != nil {
			x.err = errors.Join(errs.ErrClosed, e)
		}
	}
}

// Shut prevents new values; existing ones stay until End.
func (s *Set) Shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// End closes all values, the last one first.
func (s *Set) End(ctx context.Context) (err error) {
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
