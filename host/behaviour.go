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

// Behave makes props of an actor with a behaviour of one's own. Make is called once for
// an actor, not for each incarnation; typ is what [Node] and events call its type.
func Behave(typ string, make func() Behaviour) Props {
	p := Props{typ: typ, strategy: supervision.Default()}
	if make != nil {
		p.make = func(*actor) Behaviour { return &behaved{inner: make()} }
	}
	return p
}

// interruptible is a behaviour whose turns can be ended from outside.
type interruptible interface {
	// kill ends the turn that runs, if one does, within a quantum. Any goroutine may
	// call it.
	kill(reason string)
	// awake reports whether there may be a turn to kill.
	awake() bool
	// endBatch makes the running turn the last one before the actor's system messages
	// are handled. Any goroutine may call it.
	endBatch()
	// goOn revokes endBatch: the system messages are about to be handled.
	goOn()
}

// weighty is a behaviour that knows the memory of its actor, in bytes.
type weighty interface{ memoryBytes() uint64 }
