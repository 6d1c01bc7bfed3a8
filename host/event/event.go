// Package event has what happens to actors, as values: events, messages that were not delivered, refusals, and how they are
// written as JSON and for a person. System.Subscribe of package host delivers them.
package event

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/supervision"
)

// Kind says what has happened.
type Kind uint8

// The kinds of events.
const (
	Started     Kind = iota + 1 // an incarnation has started
	Failed                      // a turn has failed, and it was decided what follows
	Restarted                   // a fresh incarnation has taken over
	Resumed                     // the actor goes on with the state from before the failure
	Stopped                     // the actor has stopped for good
	Undelivered                 // a message was not delivered
	Log                         // a guest has logged a line
	Unhandled                   // an actor did not handle a message
	Terminated                  // the system has terminated
	Suppressed                  // a message marked as Suppressed was not delivered
	Escalated                   // a failure of a child has reached the actor, and it was decided what follows
	Refused                     // what an actor has asked the host for was refused
	Paused                      // an operator has paused the actor
	Unpaused                    // an operator has let the actor go on
)

var eventNames = [...]string{"none", "started", "failed", "restarted", "resumed", "stopped", "dead_letter", "log", "unhandled", "terminated", "suppressed_dead_letter", "escalated", "refused", "paused", "unpaused"}

// String is the name that JSON output uses.
func (k Kind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return eventNames[0]
}

// Event is something that has happened to an actor. Which of the later fields
// count depends on Kind.
type Event struct {
	Kind        Kind
	Time        time.Time
	Ref         ref.Ref
	Type        string // of the actor
	Incarnation uint64

	ID        string                // failed: of the report; who was waiting for an answer gets it, too
	Failure   *abi.Failure          // failed, escalated, restarted: why; stopped: what it had failed with, if so. Shared, not to be changed
	Directive supervision.Directive // failed, escalated; 0: nothing was decided, Note says why
	Delay     time.Duration         // failed, escalated: before the restart
	Failures  int                   // failed, escalated: of this child, since the count was reset
	Note      string                // failed, escalated: why the directive is not the strategy's; stopped: why
	Silent    bool                  // failed, escalated: the supervisor wants it kept out of logs

	Mail    *CrashedMail // failed: the message whose turn failed, nil if there was none
	Dead    *DeadLetter  // dead_letter, suppressed_dead_letter, unhandled
	Refused *Refusal     // refused
	Level   int          // log: abi.LogDebug to abi.LogError
	Text    string       // log

	// Trace is the place in a trace of the turn that the event is about, nil if there is none:
	// failed, log, dead_letter.
	Trace *span.Context
}

// CrashedMail is the message whose turn has failed, and how large the actor was.
type CrashedMail struct {
	Kind        abi.Kind
	Sender      abi.Ref
	Correlation uint64
	Payload     []byte        // CBOR, at most MaxDeadPayload bytes of it
	Size        int           // of the payload, in bytes
	Memory      uint64        // of the guest, in bytes; 0 for actors in Go
	Waiting     int           // messages in the mailbox behind it
	Redelivered int           // how often it had been delivered before
	Trace       *span.Context // of the turn, nil if it is in no trace
	File        string        // with which wasmactors replay repeats the failure; empty: there is none
}

// Refusal is something that an actor has asked the host for and did not get. Refused
// messages are dead letters instead.
type Refusal struct {
	What   string // spawn, memory: growth of a guest's, instance: one for an actor that sleeps, start: one for an incarnation, or the name of a service
	Type   string // spawn: of the actor to be spawned
	Name   string // spawn: its name
	Reason string // why
	Denied bool   // a capability is missing
	Limit  bool   // a bound is reached
	Key    string // the manifest's key for that bound
}
