package host

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Actor is an actor in Go. Its methods are never called at the same time.
//
// An error is a failure: it goes to the supervisor. ErrUnhandled is not; it says
// that the message was not for this actor. A panic is a failure, too.
type Actor interface {
	Receive(ctx *Context, m Message) error
}

// Starter is an actor that wants to know when it begins; an error fails the start.
type Starter interface{ Started(ctx *Context) error }

// Stopper is an actor that wants to know when it ends. It is called at a stop and,
// if the actor did not panic, before a restart.
type Stopper interface{ Stopped(ctx *Context) }

// Supervisor is an actor in Go that decides itself about failures of its children
// that its strategy answers with [supervision.Ask]. Deciding must be quick, as
// every turn. 0 leaves it to the default decider.
type Supervisor interface {
	Decide(ctx *Context, child Ref, f *abi.Failure) supervision.Directive
}

// Native is the recipe of an actor in Go. The factory makes a fresh one for
// every incarnation.
func Native(factory func() Actor) Props {
	p := Props{typ: "native", strategy: supervision.Default()}
	if factory != nil {
		p.make = func(*actor) Behaviour { return &native{factory: factory} }
	}
	return p
}

// Func makes a function an actor without state.
func Func(f func(ctx *Context, m Message) error) Props {
	return Native(func() Actor { return actorFunc(f) })
}

type actorFunc func(ctx *Context, m Message) error

func (f actorFunc) Receive(ctx *Context, m Message) error { return f(ctx, m) }

// native is the behaviour of an actor in Go.
type native struct {
	factory func() Actor
	now     Actor // nil between incarnations, and after a panic: it is not to be called any more
}

// Start implements Behaviour.
func (n *native) Start(ctx *Context, _ *abi.Failure) *abi.Failure {
	return n.guarded(ctx, func() error {
		n.now = n.factory()
		if n.now == nil {
			return errors.New("the factory returned nil")
		}
		if s, ok := n.now.(Starter); ok {
			return s.Started(ctx)
		}
		return nil
	})
}

// Handle implements Behaviour.
func (n *native) Handle(ctx *Context, _ int) *abi.Failure {
	ctx.scr.same = 0 // it may take as long as it likes
	for {
		m, ok := ctx.Next()
		if !ok {
			return nil
		}
		if m.Kind == abi.KindTerminated {
			m.Sender.path = cmp.Or(pathOfEnded(ctx.env), m.Sender.path)
		}
		if f := n.receive(ctx, m); f != nil {
			return f
		}
	}
}

func (n *native) receive(ctx *Context, m Message) *abi.Failure {
	return n.guarded(ctx, func() error {
		err := n.now.Receive(ctx, m)
		if errors.Is(err, ErrUnhandled) {
			if m.Kind == abi.KindTerminated {
				return ctx.actor.deathPact()
			}
			ctx.actor.unhandled(ctx.env)
			return nil
		}
		return err
	})
}

// Decide implements Behaviour.
func (n *native) Decide(ctx *Context, child Ref, f *abi.Failure) (d supervision.Directive, failure *abi.Failure) {
	s, ok := n.now.(Supervisor)
	if !ok {
		return 0, nil
	}
	failure = n.guarded(ctx, func() error { d = s.Decide(ctx, child, f); return nil })
	return d, failure
}

// CannotRewind implements Behaviour: an actor in Go goes on as it is.
func (n *native) CannotRewind() string {
	if n.now == nil {
		return "the actor has panicked"
	}
	return ""
}

// Rewind implements Behaviour.
func (n *native) Rewind(*Context) bool { return n.now != nil }

// End implements Behaviour.
func (n *native) End(ctx *Context, _ End) {
	s, ok := n.now.(Stopper)
	if ok {
		if f := n.guarded(ctx, func() error { s.Stopped(ctx); return nil }); f != nil {
			ctx.actor.sys.logf(ctx.actor, abi.LogError, "stopping: %v", f)
		}
	}
	n.now = nil
}

// guarded makes a call of the actor's. An error or a panic is a failure; what the call
// was to let out leaves now, or never.
func (n *native) guarded(ctx *Context, f func() error) (failure *abi.Failure) {
	a := ctx.actor
	defer func() {
		if r := recover(); r != nil {
			failure = &abi.Failure{Kind: abi.FailureNativePanic, Reason: "panic", Message: fmt.Sprint(r), GuestStack: clip(string(debug.Stack()), abi.MaxReason), Turn: a.turns}
			n.now = nil
		}
		if failure == nil {
			failure = a.commitTurn(ctx)
		}
		a.leaveTurn(ctx.scr, failure != nil)
	}()
	err := f()
	if err == nil {
		return nil
	}
	var known *abi.Failure
	if errors.As(err, &known) {
		return known
	}
	return &abi.Failure{Kind: abi.FailureGuestError, Reason: err.Error(), Turn: a.turns}
}
