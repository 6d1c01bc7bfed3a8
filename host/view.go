package host

import (
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/host/window"
)

// What is known of actors and of a system, and the bounds of an actor. Package view describes these types.
type (
	// Info is what is known of an actor at any time, by any goroutine, without involving the actor.
	Info = view.Info
	// ActorState is what an actor is doing, as seen from outside.
	ActorState = view.ActorState
	// LastFailure is the last failure of an actor, shortened.
	LastFailure = view.LastFailure
	// Held is what the host holds for an actor, in bytes.
	Held = view.Held
	// Inspection is one actor in full.
	Inspection = view.Inspection
	// Counts are what an actor has at the moment.
	Counts = view.Counts
	// Load is how busy an actor is, for code that spreads work over several.
	Load = view.Load
	// Node is one actor in a snapshot of the tree.
	Node = view.Node
	// Stats are totals since the start, of actors that have stopped, too.
	Stats = view.Stats
	// TypeStats are totals of the actors of one type.
	TypeStats = view.TypeStats
	// Totals are figures of a system that cost nothing to read, however many actors there are.
	Totals = view.Totals
	// TurnTimes are durations of turns of one type, a sample of them.
	TurnTimes = view.TurnTimes
	// Limits bound an actor. Zero values mean the defaults.
	Limits = view.Limits
	// TreeLimits bound an actor and all below it.
	TreeLimits = view.TreeLimits
	// Capabilities are what a guest may do in addition to answering and sending to actors whose refs it has. The zero
	// value allows nothing.
	Capabilities = view.Capabilities
)

// The states. If several apply, the one with the highest number is shown.
const (
	StateRunning   = view.StateRunning
	StateStarting  = view.StateStarting
	StateAsleep    = view.StateAsleep
	StateStarved   = view.StateStarved
	StatePaused    = view.StatePaused
	StateSuspended = view.StateSuspended
	StateDelayed   = view.StateDelayed
	StateStopping  = view.StateStopping
)

// What is kept of a failure, and defaults of [Limits].
const (
	LastFailureText     = view.LastFailureText
	LastFailureFrames   = view.LastFailureFrames
	DefaultMailbox      = view.DefaultMailbox
	DefaultMailboxBytes = view.DefaultMailboxBytes
	DefaultFuel         = view.DefaultFuel
	DefaultOutbox       = view.DefaultOutbox
	DefaultMessage      = view.DefaultMessage
	DefaultChildren     = view.DefaultChildren
	DefaultTimers       = view.DefaultTimers
	DefaultWatches      = view.DefaultWatches
	DefaultAsks         = view.DefaultAsks
	DefaultStash        = view.DefaultStash
	DefaultReplies      = view.DefaultReplies
	DefaultHeld         = view.DefaultHeld
)

// View is what can be seen of a system's actors, without taking part: what each is and does, totals, the messages and the
// fuel of running turns. All methods may be called concurrently. Package window describes it.
type View = window.View

// What a View samples, and how long Inspect waits for an actor whose context has no deadline.
type (
	// Flowed is a message that was sampled: From, To, Kind, Size, OneIn (it stands for so many messages) and First (of its turn).
	// It is reported when the turn that has taken it ends. A message to no actor of the tree (an answer to the outside) is
	// sampled when the turn that sends it ends.
	Flowed = look.Flowed
	// FuelSample is the code position of a guest after it had spent some more fuel, see [View.SampleFuel].
	FuelSample = window.FuelSample
)

// Bounds of views.
const (
	DefaultInspectTimeout = window.DefaultInspectTimeout
	MinFuelSample         = window.MinFuelSample
)

// ErrSampling says that another sample is already running.
var ErrSampling = window.ErrSampling

// OtherTypes has the durations of turns of further types in [Totals].
const OtherTypes = look.OtherTypes
