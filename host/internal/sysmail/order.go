// Package sysmail has the system messages of actors: what others tell an actor, what belongs to a family, what an actor tells
// itself, and the queue that they wait in.
package sysmail

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/supervision"
)

// MostBorn is how many starts wait at a watcher one by one; beyond that it searches the tree itself.
const MostBorn = 256

// Msg is a system message. System messages overtake user messages. Besides its kind it is one of three things: what
// others tell it, which may come from another node; an order or a report within a family, which shares a node; what
// the actor tells itself.
type Msg struct {
	Kind   Kind
	More   int32          // how many that say the same were merged into it
	Signal *signal.Signal // Signal
	Kin
	Own
}

// Kin is what a supervisor or an operator orders, and what a child reports.
type Kin struct {
	How       How
	Directive supervision.Directive // ChildFailed: decided already; Decide
	Ref       abi.Ref               // the child it is about
	Child     any                   // ChildFailed, ChildStopped: it may have left the table
	Failure   *abi.Failure
	Reason    string
	Orders    uint64 // ChildFailed, ChildEnded, ChildHalted, ChildBegun: that the child had carried out; Resume, again: the actor
	Delay     time.Duration
	Detail    any // ChildFailed: the *CrashedMail; ChildStopped: the envelopes that have come too late; Renew, Restart: the *renewal
}

// How is what there is to an order or a report, as a set. It is in stores: a number never gets another meaning.
type How uint16

const (
	Order     How = 1 << 0  // it is an order of the supervisor
	Keep      How = 1 << 1  // Restart: the children stay
	Hold      How = 1 << 2  // Restart: until Begin
	Now       How = 1 << 3  // Restart: a delay under way is over
	Below     How = 1 << 4  // Pause, Unpause: all below it, too
	ByItself  How = 1 << 5  // Stop, ChildStopped: the end follows from the actor's own failure or stop, not from an order
	Again     How = 1 << 6  // ChildFailed: the child could not be resumed; Resume: there was no room for it before
	Escalated How = 1 << 7  // ChildFailed: the failure is one of its own children's
	Crowded   How = 1 << 8  // ChildFailed: its start was refused because there is no room
	Noted     How = 1 << 9  // it is in the records already
	Renews    How = 1 << 10 // Renew, Restart: of a renewal. Only in records
)

func (h How) Has(what How) bool { return h&what != 0 }

// If is what, if that is so.
func If(so bool, what How) How {
	if so {
		return what
	}
	return 0
}

// Own is what an actor tells itself, or somebody of its node who looks at it.
type Own struct {
	Due  any         // RestartDue, GraceOver: what the alarm was set for
	Look *look.Visit // Look
	Born *Birth
}

// Missing is told that not all births are told one by one.
type Missing interface{ Miss() }

// Renewing is what a restart changes of an actor.
type Renewing interface{ Changes() bool }

// Birth is the start of an actor that another one looks out for.
type Birth struct {
	To   Missing
	Ref  abi.Ref
	Path string
}

// begins reports whether m may let an actor run in another incarnation or after its
// failure, so that messages after m do not mean the same as before it.
func (m *Msg) begins() bool {
	return m.How.Has(Order) || m.Kind == Start || m.Kind == RestartDue || m.Kind == ChildStopped
}
