// Package swap is how the code of a living guest is exchanged: between two turns, with all that the host holds for it
// left as it is. Package host does it, package host/upgrade decides about it.
package swap

import (
	"context"
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Part is how many bytes of a state a record has at most; tests have less.
var Part = record.MostState

// Taken is a guest between two turns. It handles no messages until Let or Switch is called. All methods may take as long as the turn
// that the actor is in; they fail when ctx ends.
type Taken struct {
	Ref        abi.Ref
	Path, Type string
	Image      *sandbox.Image    // that it runs
	State      *sandbox.Snapshot // a copy of its state, unless Why says that there is none
	Why        error
	Start      abi.Start     // as its next start envelope would be, without a state
	Entry      sandbox.Entry // what its next turn may spend and gets to see
	Durable    bool          // a recorder has to be told of what becomes of it
	Waits      int           // answers that it waits for
	Inputs     []Input       // that it has handled lately, if they are kept
	Timeless   bool          // fuel alone bounds its turns: real time must decide about nothing
	Trial      *Trial        // under way; nil: none

	// Switch has the actor go on with other code, and begins a trial if it is not nil. It fails with ErrMoved if a turn
	// has run, or the incarnation has ended, since the guest was taken; of a durable actor also if it cannot be recorded. After an
	// error the actor is still taken.
	Switch func(ctx context.Context, to *Code, trial *Trial) error
	// Let lets the actor go on as it is. If its new code has failed, and that was to be undone, it fails now.
	Let func()
	// Log says something about the actor, as an event; level is abi.LogInfo, for one.
	Log func(level int, text string)
}

// Input is a message that a turn has taken in.
type Input struct {
	Envelope abi.Envelope // with the time of the turn
	Turn     uint64
}

var (
	// ErrGone says that there is no such actor, or that it is not a guest of the module.
	ErrGone = errors.New("there is no such actor")
	// ErrNotNow says that the actor is not between two turns: it is starting, failed, or about to be restarted.
	ErrNotNow = errors.New("it is starting, failed or being restarted")
	// ErrMoved says that the actor is not any more what was taken.
	ErrMoved = errors.New("it has had a turn, or has been restarted, meanwhile")
	// ErrNoHistory says that nothing has what actors have taken in.
	ErrNoHistory = errors.New("its system has no store")
)

// Take holds a guest. Package host sets it.
var Take func(ctx context.Context, system any, of abi.Ref) (*Taken, error)

// Member is an actor of a module.
type Member struct {
	Ref        ref.Ref
	Path, Type string
	Image      *sandbox.Image // that it runs; nil: it is between two incarnations, or unseen
	Durable    bool
	Events     bool   // it keeps events, and is recovered from them when it begins
	Trial      *Trial // under way; nil: none
	Unseen     bool   // it was in a turn for too long, or its turn waits for its record
}

// Members are the actors of a *host.Module, sorted by path. Package host sets it.
var Members func(ctx context.Context, system, module any) []Member

// Release is Taken.Let for an actor that could not be taken. Package host sets it.
var Release func(system any, of abi.Ref)

// Settle ends the trial of an actor. Package host sets it.
var Settle func(ctx context.Context, system any, of abi.Ref)

// Renew restarts an actor with the code that its module has now; false: there is no such actor, or that cannot be recorded. The child
// of a resender ends, so that another one takes its place. Package host sets it.
var Renew func(ctx context.Context, system any, of abi.Ref) bool

// Assign has the next incarnation of a durable actor begin with the code that its module has now, as those of others do. Package
// host sets it.
var Assign func(ctx context.Context, system any, of abi.Ref) error

// Manual reports whether a system runs only while somebody calls it. Package host sets it.
var Manual func(system any) bool

// History has a system's recorder tell of all that durable actors have taken in, as record.Historian does. It fails with ErrNoHistory if
// it cannot. Package host sets it.
var History func(ctx context.Context, system any, behind record.Place, each func(*record.Record) error) (record.Place, error)
