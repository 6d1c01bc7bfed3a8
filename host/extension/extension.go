// Package extension has what a system has once, and code in Go shares: host.Extension is its Extension.
package extension

import (
	"context"

	"github.com/wasmactors/wasmactors/host/internal/extensions"
)

// Extension is something that a system has once, see host.Extension. S is a system, T the type of the value.
type Extension[S, T any] struct {
	name  string
	open  func(S) (T, error)
	close func(context.Context, T) error
	of    func(S) (*extensions.Set, <-chan struct{})
}

// New makes an extension, see host.NewExtension; of says where a system has its values, and what is closed when it has ended.
func New[S, T any](name string, open func(S) (T, error), close func(context.Context, T) error, of func(S) (*extensions.Set, <-chan struct{})) *Extension[S, T] {
	return &Extension[S, T]{name, open, close, of}
}

// Name is the extension's name.
func (x *Extension[S, T]) Name() string { return x.name }

// Get returns the value for a system, and makes it if it is not there yet: of several callers one
// makes it, and the others wait. An error of open is kept: every caller gets the same one. In a
// system that has ended the error is ErrClosed. Get may be called by actors; the first call takes
// as long as open does. If the open functions of two extensions get each other, both wait for ever.
func (x *Extension[S, T]) Get(s S) (T, error) {
	set, done := x.of(s)
	select {
	case <-done:
		set.Shut()
	default:
	}
	v, err := set.Get(x, x.name, func() (any, func(context.Context) error, error) {
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

// load implements Any.
func (x *Extension[S, T]) load(s S) error {
	_, err := x.Get(s)
	return err
}

// Any is an [Extension] of any type.
type Any[S any] interface {
	Name() string
	load(S) error
}

// Load makes the value of an extension for a system, if it is not there yet.
func Load[S any](x Any[S], s S) error { return x.load(s) }
