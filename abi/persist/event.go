// Package persist has the rules of actors whose state is what has happened to them: events, snapshots, what is checked
// before an event is stored, how old events become those of today, and how all of it is encoded. host/persist and
// guest-sdk/persist share them.
package persist

import (
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

// Bounds. Decoders refuse what exceeds them.
const (
	MaxEvent    = 1 << 20 // bytes of an event's payload
	MaxSnapshot = 8 << 20 // bytes of a snapshot's
	MaxTags     = 16
	MaxTag      = 128     // bytes
	MaxTurn     = 1 << 16 // events of a turn
)

// Event is something that has happened to an actor.
type Event struct {
	ID      string // of the actor that it has happened to
	Number  uint64 // among the events of the ID, from 1, without gaps
	Type    string // a message name, see abi.ValidMessageName
	Version uint16 // of the type
	Tags    []string
	Time    int64  // of the turn, ns since 1970
	Payload []byte // CBOR
	Offset  uint64 // among the events of all IDs, for queries; 0: not known
}

// Snapshot is what the events up to a number have made of an actor, as it has written it down itself.
type Snapshot struct {
	Number  uint64 // of the last event in it
	Version uint16 // of its format, for Restore
	Time    int64
	Payload []byte // CBOR
}

// Rejected is the error for an event that cannot be stored. Nothing has changed then.
type Rejected struct{ Reason string }

func (e *Rejected) Error() string { return "persist: " + e.Reason }

// UnknownEvent is the error that stops a recovery: the code does not know an event that was stored.
type UnknownEvent struct {
	Number  uint64
	Type    string
	Version uint16
	Kept    string // the type of the state that the code keeps, if it does; see [Latest]
}

func (e *UnknownEvent) Error() string {
	s := "persist: event " + strconv.FormatUint(e.Number, 10) + " is of the unknown type " + abi.JoinMessageType(e.Type, e.Version)
	if e.Kept != "" {
		return s + ", and the actor keeps its state as " + e.Kept + ": StateDefinition.Events, with a method Apply, takes over what was stored before"
	}
	return s + ": it needs an upcaster, or has to be dropped"
}

// ValidTag reports whether a text can be a tag: 1 to MaxTag bytes of printable ASCII, without spaces.
func ValidTag(tag string) bool {
	if tag == "" || len(tag) > MaxTag {
		return false
	}
	for i := 0; i < len(tag); i++ {
		if tag[i] <= ' ' || tag[i] > '~' {
			return false
		}
	}
	return true
}

// check says what is wrong with an event that an actor has made; "" if nothing is.
func (e *Event) check() string {
	switch {
	case !abi.ValidMessageName(e.Type) || e.Version == 0:
		return "an event needs a type such as bank.paid, and a version from 1"
	case len(e.Payload) > MaxEvent:
		return "an event of " + strconv.Itoa(len(e.Payload)) + " bytes, of at most " + strconv.Itoa(MaxEvent)
	case len(e.Tags) > MaxTags:
		return "an event has at most " + strconv.Itoa(MaxTags) + " tags"
	case abi.Valid(e.Payload) != nil:
		return "the event " + e.Type + " is not valid CBOR"
	}
	for i, tag := range e.Tags {
		if !ValidTag(tag) {
			return "a tag has 1 to " + strconv.Itoa(MaxTag) + " bytes of printable ASCII, without spaces"
		}
		for _, other := range e.Tags[:i] {
			if other == tag {
				return "the tag " + tag + " twice"
			}
		}
	}
	return ""
}
