package host

import (
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/internal/plainjson"
)

// What happens to actors, and messages that were not delivered. Package event describes these types.
type (
	// Event is something that has happened to an actor.
	Event = event.Event
	// EventKind says what has happened.
	EventKind = event.Kind
	// CrashedMail is the message whose turn has failed, and how large the actor was.
	CrashedMail = event.CrashedMail
	// DeadLetter is a message that was not delivered.
	DeadLetter = event.DeadLetter
	// DeadReason says why a message was not delivered.
	DeadReason = event.DeadReason
	// Refusal is something that an actor has asked the host for and did not get. Refused
	// messages are dead letters instead.
	Refusal = event.Refusal
)

// The kinds of events.
const (
	EventStarted    = event.Started
	EventFailed     = event.Failed
	EventRestarted  = event.Restarted
	EventResumed    = event.Resumed
	EventStopped    = event.Stopped
	EventDeadLetter = event.Undelivered
	EventLog        = event.Log
	EventUnhandled  = event.Unhandled
	EventTerminated = event.Terminated
	EventSuppressed = event.Suppressed
	EventEscalated  = event.Escalated
	EventRefused    = event.Refused
	EventPaused     = event.Paused
	EventUnpaused   = event.Unpaused
)

// The reasons.
const (
	DeadUnknown     = event.DeadUnknown
	DeadStopped     = event.DeadStopped
	DeadMailboxFull = event.DeadMailboxFull
	DeadTooLarge    = event.DeadTooLarge
	DeadDenied      = event.DeadDenied
	DeadLate        = event.DeadLate
	DeadStashFull   = event.DeadStashFull
	DeadNobody      = event.DeadNobody
	DeadLimit       = event.DeadLimit
	DeadCrashed     = event.DeadCrashed
	DeadRestarting  = event.DeadRestarting
	DeadEvicted     = event.DeadEvicted
	DeadForged      = event.DeadForged
	DeadDropped     = event.DeadDropped
	DeadDuplicate   = event.DeadDuplicate
	DeadExpired     = event.DeadExpired
	DeadIncarnation = event.DeadIncarnation
	DeadRefused     = event.DeadRefused
)

// MaxDeadPayload bounds what a dead letter keeps of its payload, in bytes.
const MaxDeadPayload = event.MaxDeadPayload

// DeadReasons are all reasons.
func DeadReasons() []DeadReason { return event.DeadReasons() }

// LevelName is the name of a level of guests' logs; a level outside the range counts as the
// nearest one.
func LevelName(level int) string { return event.LevelName(level) }

// LevelNames are the names, the lowest first.
func LevelNames() []string { return event.LevelNames() }

// ParseLevel is the inverse of LevelName.
func ParseLevel(name string) (level int, ok bool) { return event.ParseLevel(name) }

// ToJSON turns a payload into JSON. Byte strings become base64, keys that are
// not texts are written as texts, and what JSON has no numbers for (NaN and the
// infinities) becomes a text. Floats have a point or an exponent, so that they are read as floats
// again. Control characters are escaped.
func ToJSON(payload []byte) ([]byte, error) { return plainjson.FromCBOR(payload) }
