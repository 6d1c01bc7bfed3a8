// Package view has what is known of actors and of a system, as values, and the bounds of an actor. View.Info, Inspect, Stats and
// Totals of package host make them.
package view

import (
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/supervision"
)

// Held is what the host holds for an actor, in bytes.
type Held struct {
	Base     int64 // the actor itself
	Memory   int64 // a guest's instance
	Mailbox  int64 // room for messages that wait
	Stash    int64 // and what Head.Hold has added
	Timers   int64
	Asks     int64
	Watches  int64
	Snapshot int64 // of a guest that sleeps, or can be resumed
}

// Total is the sum.
func (h Held) Total() int64 {
	return h.Base + h.Memory + h.Mailbox + h.Stash + h.Timers + h.Asks + h.Watches + h.Snapshot
}

// ActorState is what an actor is doing, as seen from outside.
type ActorState uint8

// The states. If several apply, the one with the highest number is shown.
const (
	StateRunning   ActorState = iota // it handles messages, or waits for one
	StateStarting                    // its first turn is still to come, or runs
	StateAsleep                      // a guest that has given its instance back
	StateStarved                     // a guest that needs an instance, and none is to be had
	StatePaused                      // an operator has paused it, see [Operator.Pause]
	StateSuspended                   // it, or an ancestor, has failed and waits for a decision
	StateDelayed                     // between two incarnations
	StateStopping                    // waits for its children to stop
)

var stateNames = [...]string{"running", "starting", "asleep", "starved", "paused", "suspended", "delayed", "stopping"}

// String is the state's name.
func (s ActorState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Info is what is known of an actor at any time, by any goroutine, without involving the
// actor. Counts of turns and fuel are those until its last spell of work.
type Info struct {
	Ref         ref.Ref
	Parent      ref.Ref // nobody's for /user and /system
	Type        string
	State       ActorState
	Paused      bool // true even if State shows a higher state
	Failed      bool // it has failed itself, and waits for its supervisor's decision
	Grace       bool // messages are held back for a while after a delayed restart
	Incarnation uint64

	Mailbox      int // messages that wait
	MailboxBytes int64
	Before, Came uint64 // of a [HostedMailbox]: its Order; 0: there is no such mailbox, and Turns messages came before those that wait
	Turns        uint64
	Fuel         uint64
	Crashes      uint64
	Restarts     uint64
	Held         int64 // bytes that the host holds for it
	Children     int   // only from [host.View.Info]; 0 from [host.View.AppendInfo]

	Since   int64         // when the present incarnation began, ns since 1970; 0: none has
	Due     time.Duration // StateDelayed: the rest of the delay; 0: it waits for something else
	Failure *LastFailure  // nil: it has not failed yet. Not to be changed
}

// LastFailure is the last failure of an actor. It is kept until the actor has stopped,
// so it is shortened: each text to LastFailureText bytes, and the stack to so many frames.
type LastFailure struct {
	At      time.Time
	Failure abi.Failure
}

// What is kept of a failure.
const (
	LastFailureText   = 256
	LastFailureFrames = 8
)

// Shortened is a failure as it is kept.
func Shortened(at time.Time, f *abi.Failure) *LastFailure {
	l := &LastFailure{At: at, Failure: *f} // a failure is not changed any more
	l.Failure.Reason, l.Failure.Message, l.Failure.GuestStack = kept(f.Reason), kept(f.Message), kept(f.GuestStack)
	if !short(f.Stack) {
		l.Failure.Stack = make([]string, min(len(f.Stack), LastFailureFrames))
		for i := range l.Failure.Stack {
			l.Failure.Stack[i] = kept(f.Stack[i])
		}
	}
	return l
}

// short reports whether frames are few and short enough to be kept as they are.
func short(frames []string) bool {
	if len(frames) > LastFailureFrames {
		return false
	}
	for _, frame := range frames {
		if len(frame) > LastFailureText {
			return false
		}
	}
	return true
}

// kept is a copy of a text, so that it does not keep a larger one alive.
func kept(s string) string {
	if len(s) <= LastFailureText {
		return s
	}
	return strings.Clone(printable.Clip(s, LastFailureText))
}

// Weight is what the failure takes, in bytes.
func (l *LastFailure) Weight() int64 {
	if l == nil {
		return 0
	}
	f := &l.Failure
	n := 160 + len(f.Reason) + len(f.Message) + len(f.GuestStack)
	for _, frame := range f.Stack {
		n += 16 + len(frame)
	}
	return int64(n)
}

// Inspection is one actor in full.
type Inspection struct {
	Info
	Parts        Held
	Limits       Limits
	Capabilities Capabilities
	Lifetime     supervision.Lifetime
	Replies      int // handles of Context.Later not used yet

	// Module is the name of a guest's image, and Code the SHA-256 of the module that its present incarnation runs. They are missing
	// if Counts are.
	Module string
	Code   [32]byte
	// Counts are what only the actor itself knows; nil if it is in the middle of a turn.
	Counts *Counts
	// Strategy is how its supervisor supervises it; the zero value for /user and /system.
	Strategy supervision.Strategy
	// Record is what its supervisor has noted about it; nil if the supervisor is in the middle of
	// a turn, and for /user and /system. Left: it was left suspended for an operator to decide
	// about, see [Operator.Decide].
	Record *supervision.Record
	Left   bool
}

// Counts are what an actor has at the moment.
type Counts struct {
	Timers, Asks, Watches, Watchers, Stash int
	Undecided                              int // children that wait for a decision until it goes on
}

// Load is how busy an actor is, for code that spreads work over several.
type Load struct {
	// Waiting is the number of messages in its mailbox.
	Waiting int
	// Running is set while the actor does a spell of work: one turn or several.
	Running bool
	// Open is set unless the actor handles no messages: it has failed, is paused, waits for
	// a delay or an instance, or is stopping.
	Open bool
}

// Node is one actor in a snapshot of the tree.
type Node struct {
	Ref         ref.Ref
	Type        string
	State       string
	Incarnation uint64
	Asleep      bool // it has given its instance back
	Mailbox     int
	Turns       uint64
	Children    []Node
}

// String prints the tree, an actor a line.
func (n Node) String() string {
	var b strings.Builder
	n.print(&b, "")
	return b.String()
}

func (n Node) print(b *strings.Builder, indent string) {
	b.WriteString(indent + n.Ref.Name() + " (" + n.Type + ") " + n.State + ", " + strconv.FormatUint(n.Turns, 10) + " turns\n")
	for _, k := range n.Children {
		k.print(b, indent+"  ")
	}
}
