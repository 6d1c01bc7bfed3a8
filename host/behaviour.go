package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Behaviour is what an actor does with what it receives. Guests ([Guest]) and actors in
// Go ([Native]) are two of them; routers and proxies are others, see [Behave]. Its
// methods are never called at the same time, and each must return soon.
//
// A failure that a method returns goes to the supervisor, and so does a panic of a
// behaviour that was made with [Behave]. Its sends leave at the end of the turn, as those
// of every actor in Go (see [Context]): a turn of Handle ends with the next call of
// [Head.Next], each call of another method is a turn.
type Behaviour interface {
	// Start begins an incarnation: the first one, or another after a failure, which is
	// cause then. After a failure of Start no message is handled.
	Start(ctx *Context, cause *abi.Failure) *abi.Failure
	// Handle handles messages, at most n. It takes each with [Head.Next], and
	// returns when there is none or n are handled. A failure is that of the message
	// taken last.
	Handle(ctx *Context, n int) *abi.Failure
	// Decide answers [supervision.Ask]: what to do about a child that has failed. 0
	// leaves it to the default decider.
	Decide(ctx *Context, child Ref, f *abi.Failure) (supervision.Directive, *abi.Failure)
	// CannotRewind says why Rewind would fail, empty if it would not. The failure before it may
	// be of any kind.
	CannotRewind() string
	// Rewind goes back to the state from before the turn that has failed; false if that
	// state is not available, and then the actor is restarted.
	Rewind(ctx *Context) bool
	// End ends the incarnation. It is called once for every Start, also for one that has
	// failed.
	End(ctx *Context, end End)
}

// End says how an incarnation ends.
type End struct {
	// Last is set if there is no other: the actor stops.
	Last bool
	// Begun is set if Start has worked.
	Begun bool
	// Cause is the failure that leads to a restart; nil if there is none.
	Cause *abi.Failure
	// Delayed is set if the next incarnation begins later.
	Delayed bool
}

// Actor is an actor in Go. Its methods are never called at the same time.
//
// An error is a failure: it goes to the supervisor. ErrUnhandled is not; it says
// that the message was not for this actor. A panic is a failure, too.
type Actor interface {
	Receive(ctx *Context, m Message) error
}

// Func is Native for a function, as an actor without state.
func Func(f func(ctx *Context, m Message) error) Props {
	return Native(func() Actor { return actorFunc(f) })
}

// Native makes props of an actor in Go. The factory makes a fresh one for
// every incarnation.
func Native(factory func() Actor) Props {
	return Props{typ: "native", strategy: supervision.Default()}.native(factory)
}

// Starter is an actor that wants to know when it begins; an error fails the start.
type Starter interface{ Started(ctx *Context) error }

// Stopper is an actor that wants to know when it ends. It is called at a stop and,
// if the actor did not panic, before a restart.
type Stopper interface{ Stopped(ctx *Context) }

// Supervisor is an actor in Go that itself decides about those failures of its children
// that its strategy answers with [supervision.Ask]. Deciding must be quick, as
// every turn must. 0 leaves the decision to the default decider.
type Supervisor interface {
	Decide(ctx *Context, child Ref, f *abi.Failure) supervision.Directive
}

type actorFunc func(ctx *Context, m Message) error

// native is the behaviour of an actor in Go.
type native struct {
	factory func() Actor
	now     Actor // nil between incarnations, and after a panic: it must not be called any more
}
