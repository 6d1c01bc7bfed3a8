package host

import (
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Receive handles a message, as [Actor] does.
type Receive func(ctx *Context, m Message) error

// Interceptor stands around what handles the messages of an actor in Go: what it returns is
// called instead of next, and calls next or not, with the message or another one. What it does
// before is done first, what it does after comes after, an error of next included; without a call
// of next it has handled the message completely. A panic passes through it like through any function.
//
// It is called once for each incarnation, so what it declares is state of that. What it returns is
// called with whatever the actor gets: messages, answers, timers, ends of watched actors.
type Interceptor func(next Receive) Receive

// WithInterceptors puts interceptors around an actor in Go ([Native], [Func] and what is made of
// them), the first one given outermost; those that the props have already are inside of them. Other
// props are refused with ErrBadProps when an actor is to be started: a guest has actor.Intercepted of
// its SDK for that. An actor without interceptors pays nothing for them.
func (p Props) WithInterceptors(around ...Interceptor) Props {
	if p.factory == nil {
		p.wrong = fmt.Errorf("%w: interceptors are for actors in Go; guests have actor.Intercepted of the SDK", ErrBadProps)
		return p
	}
	return p.native(intercept(p.factory, slices.Clone(around)))
}

// native is p for an actor in Go.
func (p Props) native(factory func() Actor) Props {
	if factory != nil {
		p.factory, p.make = factory, func(*actor) Behaviour { return &native{factory: factory} }
	}
	return p
}

// intercept has the actors of a factory handle messages within interceptors.
func intercept(factory func() Actor, around []Interceptor) func() Actor {
	return func() Actor {
		inner := factory()
		if inner == nil {
			return nil
		}
		x := &intercepted{inner: inner, receive: inner.Receive}
		for i := len(around) - 1; i >= 0; i-- {
			x.receive = around[i](x.receive)
		}
		return x
	}
}

// intercepted is an actor within its interceptors.
type intercepted struct {
	inner   Actor
	receive Receive
}

// Receive implements Actor.
func (x *intercepted) Receive(ctx *Context, m Message) error { return x.receive(ctx, m) }

// Started implements Starter.
func (x *intercepted) Started(ctx *Context) error {
	if s, ok := x.inner.(Starter); ok {
		return s.Started(ctx)
	}
	return nil
}

// Stopped implements Stopper.
func (x *intercepted) Stopped(ctx *Context) {
	if s, ok := x.inner.(Stopper); ok {
		s.Stopped(ctx)
	}
}

// Decide implements Supervisor; 0 is what an actor that is none decides.
func (x *intercepted) Decide(ctx *Context, child Ref, f *abi.Failure) supervision.Directive {
	if s, ok := x.inner.(Supervisor); ok {
		return s.Decide(ctx, child, f)
	}
	return 0
}
