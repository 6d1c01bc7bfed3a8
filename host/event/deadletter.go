package event

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// DeadReason says why a message was not delivered.
type DeadReason uint8

// The reasons.
const (
	DeadUnknown     DeadReason = iota + 1 // the ref or path names no actor
	DeadStopped                           // the actor has stopped
	DeadMailboxFull                       // its mailbox is at a bound
	DeadTooLarge                          // it cannot fit the inbox
	DeadDenied                            // the sender lacks a capability
	DeadLate                              // an answer that nobody waits for any more
	DeadStashFull                         // the stash is at its bound
	DeadNobody                            // an answer to nobody
	DeadLimit                             // another limit of the sender's
	DeadCrashed                           // its turn has failed
	DeadRestarting                        // it came while the actor waited for its restart
	DeadEvicted                           // too many messages waited for the restart, it was the oldest
	DeadForged                            // an answer from an actor that was not asked
	DeadDropped                           // the mailbox has dropped it, to make room, or because there was none
	DeadDuplicate                         // a message of its key came before
	DeadExpired                           // a question whose asker waits no longer
	DeadIncarnation                       // it was for an incarnation that has ended
	DeadRefused                           // an actor that stands for others has not passed it on, see Head.Refuse
)

var deadNames = [...]string{"none", "unknown actor", "stopped", "mailbox full", "too large for the inbox", "denied by capability",
	"late reply", "stash full", "no sender", "limit reached", "its turn failed", "the actor is about to be restarted",
	"too many messages wait for the restart", "an answer from an actor that was not asked", "the mailbox has dropped it", "a message of its key came before",
	"its asker waits no longer", "it was for an incarnation that has ended", "not passed on by the actor that stands before its receiver"}

// deadKeys are short names, for labels and the like.
var deadKeys = [...]string{"none", "unknown", "stopped", "mailbox_full", "too_large", "denied", "late", "stash_full", "nobody", "limit", "crashed",
	"restarting", "evicted", "forged", "dropped", "duplicate", "expired", "incarnation", "refused"}

// Name is a short name of the reason, of small letters and _, as in "mailbox_full".
func (r DeadReason) Name() string {
	if int(r) < len(deadKeys) {
		return deadKeys[r]
	}
	return deadKeys[0]
}

// DeadReasons are all reasons.
func DeadReasons() []DeadReason {
	all := make([]DeadReason, len(deadNames)-1)
	for i := range all {
		all[i] = DeadReason(i + 1)
	}
	return all
}

// String describes the reason for a person.
func (r DeadReason) String() string {
	if int(r) < len(deadNames) {
		return deadNames[r]
	}
	return deadNames[0]
}

// DeadLetter is a message that was not delivered.
type DeadLetter struct {
	Reason    DeadReason
	Kind      abi.Kind
	Sender    abi.Ref
	From      string // path of the sender, as far as it is known
	Recipient abi.Ref
	Path      string // of the recipient, as far as it is known; never a relative one, if that leads anywhere
	Payload   []byte // CBOR, at most MaxDeadPayload bytes of it; see [System.DeadLetter]
	Size      int    // of the payload, in bytes
	Type      string // the type that the message states, see abi.HeaderType; "" if it states none
	Key       string // the manifest's key for the bound that was met; "" if none was

	ID    uint64 // for [Operator.Redeliver]: its number, from 1; 0 if it is not kept
	Time  time.Time
	Whole bool // all of it is kept
}

// GivenUp reports whether the message is not missed: a question, or the answer to one, that an asker outside of actors has
// given up, such as a client of the gateway that has disconnected. Logs have it at debug.
func (d *DeadLetter) GivenUp() bool {
	return d.Reason == DeadExpired && d.From == "/temp" || d.Reason == DeadLate && d.Path == ""
}

// MaxDeadPayload bounds what a dead letter keeps of its payload, in bytes.
const MaxDeadPayload = 1024
