package actor

import "github.com/wasmactors/wasmactors/abi"

// Interceptor wraps what handles messages: the behavior that it returns is called instead of next, and
// may call next, before, between or after what it does itself. If it does not call next, it has
// handled the message completely. It is called once for each incarnation, so the variables that it
// declares are state of the actor.
type Interceptor func(next Behavior) Behavior

// Intercepted makes a factory whose actors handle messages within interceptors, the first one
// given outermost:
//
//	actor.Register("greeter", actor.Intercepted(newGreeter, counted, authorized))
//
// An intercepted actor starts, stops, and decides about its children as it does without. Answers to asks go
// to the functions that were given to Ask, and to no interceptor. Actors without interceptors pay
// nothing for those that have some.
func Intercepted(factory func() Actor, around ...Interceptor) func() Actor {
	around = append([]Interceptor(nil), around...)
	return func() Actor {
		inner := factory()
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
	receive Behavior
}

// Receive implements Actor.
func (x *intercepted) Receive(ctx *Context, msg *Message) error { return x.receive(ctx, msg) }

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

// PreRestart implements PreRestarter.
func (x *intercepted) PreRestart(ctx *Context, reason string) {
	if s, ok := x.inner.(PreRestarter); ok {
		s.PreRestart(ctx, reason)
	}
}

// Decide implements Supervisor.
func (x *intercepted) Decide(ctx *Context, child Ref, f *abi.Failure) Directive {
	if s, ok := x.inner.(Supervisor); ok {
		return s.Decide(ctx, child, f)
	}
	return DefaultDirective
}

// Replacement hands messages on with another payload. Its memory is used again for the next one. The
// zero value is ready.
type Replacement struct {
	msg    Message
	writer abi.Writer
	buffer []byte
}

// Next calls next with msg as it is but for its payload, which is v. What next gets is valid until it
// returns, and msg is not to be read until then. Context.Forward and Context.Stash are about what was received, which v does not change.
func (r *Replacement) Next(ctx *Context, msg *Message, v Encoder, next Behavior) error {
	r.writer.Reset(r.buffer[:0])
	encode(v, &r.writer)
	b := r.writer.Bytes()
	r.msg = *msg
	r.msg.payload, r.msg.size = 0, len(b)
	r.buffer = append(b, make([]byte, spare)...)
	// A message knows where in the inbox its payload is. So this one has an inbox of its own, as long as
	// it is handled, and nothing on the usual path has to ask which one it is.
	received := inbox
	inbox = r.buffer
	err := next(ctx, &r.msg)
	inbox = received
	return err
}
