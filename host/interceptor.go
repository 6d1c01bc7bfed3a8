package host

import (
	"errors"
	"slices"

	"github.com/wasmactors/wasmactors/host/internal/intercepted"
)

// Receive handles a message, as [Actor] does.
type Receive func(ctx *Context, m Message) error

// Interceptor wraps what handles the messages of an actor in Go: the function that it returns is
// called instead of next, and may call next, with the message or another one, before, between or after
// what it does itself; it sees the error of next. If it does not call
// next, it has handled the message completely. A panic passes through it like through any function.
//
// It is called once for each incarnation, so the variables that it declares are state of that incarnation. The
// function that it returns gets everything that the actor gets: messages, answers, timers, termination notices.
type Interceptor func(next Receive) Receive

// WithInterceptors puts interceptors around an actor in Go ([Native], [Func] and what is made of
// them), the first one given outermost; interceptors that the props already have are inside of them. For other
// props, starting an actor fails with ErrBadProps: a guest uses actor.Intercepted of
// its SDK. An actor without interceptors pays nothing for them.
func (p Props) WithInterceptors(around ...Interceptor) Props {
	if p.factory == nil {
		return p.WithError(errors.New("interceptors are for actors in Go; guests have actor.Intercepted of the SDK"))
	}
	return p.native(intercept(p.factory, slices.Clone(around)))
}

// native makes p the props of an actor in Go.
func (p Props) native(factory func() Actor) Props {
	if factory != nil {
		p.factory, p.make = factory, func(*actor) Behaviour { return &native{factory: factory} }
	}
	return p
}

// intercept wraps the actors of a factory in interceptors.
func intercept(factory func() Actor, around []Interceptor) func() Actor {
	return func() Actor {
		inner := factory()
		if inner == nil {
			return nil
		}
		return intercepted.Wrap[*Context, Message](inner, inner.Receive, around)
	}
}
