// Package intercepted has actors in Go that are wrapped in interceptors.
package intercepted

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/supervision"
)

// Actor is an actor wrapped in its interceptors. C is the context of a call, M a message: types of package host.
type Actor[C, M any] struct {
	inner   any
	receive func(C, M) error
}

// Wrap puts interceptors around an actor, the first one outermost. receive is how the actor takes a message.
func Wrap[C, M any, R ~func(C, M) error, I ~func(R) R](inner any, receive R, around []I) *Actor[C, M] {
	for i := len(around) - 1; i >= 0; i-- {
		receive = around[i](receive)
	}
	return &Actor[C, M]{inner, receive}
}

// Receive implements host.Actor.
func (x *Actor[C, M]) Receive(ctx C, m M) error { return x.receive(ctx, m) }

// Started implements host.Starter.
func (x *Actor[C, M]) Started(ctx C) error {
	if s, ok := x.inner.(interface{ Started(C) error }); ok {
		return s.Started(ctx)
	}
	return nil
}

// Stopped implements host.Stopper.
func (x *Actor[C, M]) Stopped(ctx C) {
	if s, ok := x.inner.(interface{ Stopped(C) }); ok {
		s.Stopped(ctx)
	}
}

// Decide implements host.Supervisor; for an actor that is none it returns 0.
func (x *Actor[C, M]) Decide(ctx C, child ref.Ref, f *abi.Failure) supervision.Directive {
	if s, ok := x.inner.(interface {
		Decide(C, ref.Ref, *abi.Failure) supervision.Directive
	}); ok {
		return s.Decide(ctx, child, f)
	}
	return 0
}
