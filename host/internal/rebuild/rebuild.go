// Package rebuild is how a system is brought to the state that records describe: by its actors' taking in again what they
// took in, one record after the other.
package rebuild

import (
	"context"
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/record"
)

// Port is a system that is being rebuilt. Its actors do nothing by themselves, and nothing leaves them, until Release is
// called. All methods are for one goroutine.
type Port interface {
	// System is the *host.System.
	System() any
	// Restore makes the actors of a checkpoint, before anything is repeated. The parts are those that Checkpoint has made.
	Restore(parts [][]byte) error
	// Rest is called before Restore, with actors of the checkpoint that stay there until something comes for them. Those that cannot are
	// restored at once.
	Rest(x *dormant.Actors) error
	// Resumes is called before Apply, with the actors that records say have gone on after a failure.
	Resumes(refs map[abi.Ref]bool)
	// Apply repeats a record. An error says that the system is no longer like the one that was recorded.
	Apply(r *record.Record, x Ahead) error
	// Forgotten says that an actor below /user had a ref which no later life of it may have.
	Forgotten(path string, ref abi.Ref) error
	// Repeated says that no record is left. What is spawned from now on is new, and recorded. An error says that an actor is left that
	// nobody starts any more.
	Repeated() error
	// Release lets the system go on: what was sent and is in no record is delivered.
	Release()
}

// Ahead is what the records say that come after one.
type Ahead struct {
	Turns  []*record.Record // that dealing with its signal has led to: they are not applied by themselves
	Last   bool             // nothing else of the actor is recorded
	Born   []*record.Record // of children, before the actor's next turn
	Latest bool             // it has no later turn: the records may have been cut off before its children began
	Fates  map[abi.Ref]Fate // of all actors that records are about

	Again   bool // of a turn that has failed: its message has had another one
	Dropped bool // or later messages have had theirs: it has had none
	NotBack bool // of an order to go on after a failure: the state from before was not there, and the actor has asked for a restart
}

// Fate is what becomes of an actor in the records.
type Fate struct {
	Known   bool             // records are about it
	Began   bool             // in these records
	Name    string           // then; earlier releases have left out names of children that they could not make
	Refused bool             // who was to be its parent was told that it cannot become one
	Renewed int              // how many restarts it has that belong to a renewal
	Removed bool             // it is told to stop by a renewal of its parent
	Ended   bool             // it has stopped for good
	Orders  []*record.Signal // that it has taken from its supervisor
	Quits   int              // how often its supervisor was asked before it stopped itself
}

// RemovedReason is the reason of the stop of a child that its parent's new props do not name. It is in stores.
const RemovedReason = "the props of its parent have changed"

// ErrCode says that an actor's module, or what it begins with, is not that of the records.
var ErrCode = errors.New("its code has changed since its state was recorded")

// Freeze has the durable actors of a system end with the process instead of for good: nothing of what they do from now on
// is recorded. Package host sets it.
var Freeze func(system any)

// Checkpoint copies the state of durable actors of a system. They rest until it returns. mark is called once, when all
// that will be recorded comes after the checkpoint and all that was recorded is in it. It returns whose states are copied, of those who are here
// and have not stopped, in the order of their start, or that these are all. each is called with the parts, those of parents before those of their children,
// and head, which is called later, makes the part of /user. n is how many actors there are, with those who have not returned. It fails if ctx ends before
// all rest. Package host sets it.
var Checkpoint func(ctx context.Context, system any, mark func() (changed []abi.Ref, all bool, err error), each func(part []byte) error) (n int, head func() ([]byte, error), err error)

// Part describes a part of a checkpoint: an actor, or the head, which has no path. Package host sets it.
var Part func(b []byte) (PartOf, error)

// PartOf is what a part of a checkpoint is about.
type PartOf = dormant.Part

// Open makes a system with a host.Config. props, which returns a *host.Props, says how to make an actor that no other
// actor has made; nil for one that is not rebuilt. Package host sets it.
var Open func(config any, props func(*record.Life) (any, error)) (Port, error)

// State is what an actor is, for tests.
type State struct {
	Path        string
	Ref         abi.Ref
	Life        string
	Held        bool // its turn waits for the recorder, or to be carried out
	Incarnation uint64
	Turns       uint64
	Saved       []byte // of a guest: its instance's memory and globals, timers, asks, watches, stash, children
	Timers      []string
	Children    []string
	Mail        []record.Message
	Position    uint64    // of the last message
	Codes       [2][]byte // fingerprints of what a guest runs, and of what its next incarnation begins with
	Rest        string    // what else counts
}

// Look is the state of an actor; nil if there is none. No actor may run meanwhile: the system is a manual one between two
// steps, or is being rebuilt. Package host sets it.
var Look func(system any, ref abi.Ref) *State
