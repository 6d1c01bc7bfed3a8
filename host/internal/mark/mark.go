// Package mark has the flags of envelopes within the host, and what follows from them.
package mark

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Shown is the payload that others than the actor may see: not that of a start envelope, which has
// the actor's seed and the key of its children's refs.
func Shown(e *mailbox.Envelope) []byte {
	if e.Kind == abi.KindStart {
		return nil
	}
	return e.Payload
}

// AwaitsReply reports whether a sender waits for an answer to a message.
func AwaitsReply(e *mailbox.Envelope) bool {
	return e.Kind == abi.KindMessage && e.Correlation != 0 && e.Sender != 0
}

// IsMail reports whether an envelope is a sent message, and not the host's own.
func IsMail(e *mailbox.Envelope) bool {
	switch e.Kind {
	case abi.KindMessage, abi.KindReply, abi.KindReplyError:
		return e.Flags&Control == 0
	}
	return false
}

// Until notes when the asker of a question gives up, unless the question lasts.
func Until(e *mailbox.Envelope, at int64) {
	if e.Flags&Lasting == 0 {
		e.Flags |= Due
		e.Due = at
	}
}

// Flags of envelopes within the host. They are in stores: a number never gets another meaning.
const (
	Poison      uint16 = 1 << 0  // stop when it is reached
	Kill        uint16 = 1 << 1  // fail when it is reached
	Identify    uint16 = 1 << 2  // answer when it is reached
	NoInfluence uint16 = 1 << 3  // does not reset the receive timeout
	Suppressed  uint16 = 1 << 4  // a suppressed dead letter if it is not delivered
	Resent      uint16 = 1 << 5  // its sender keeps it and will resend it: never a dead letter
	Try         uint16 = 1 << 6  // its sender tries again if the mailbox is full
	Again       uint16 = 1 << 7  // its turn has failed before
	Due         uint16 = 1 << 8  // Due is set: from then on nobody waits for an answer
	Promised    uint16 = 1 << 9  // its sender is an ask from Go, the only one that waits for an answer
	Lasting     uint16 = 1 << 10 // it is handled although nobody waits any more
	Incarnation uint16 = 1 << 11 // Due is the incarnation that it is for
	Ours        uint16 = 1 << 12 // an answer that the host itself gives: it needs no permission
	ForGood     uint16 = 1 << 13 // with flagPoison: it is an order, whatever the actor's lifetime
	IfIdle      uint16 = 1 << 14 // with flagPoison: only if the actor is idle, see Passivate

	Control = Poison | Kill | Identify                 // the host's own, no messages
	Mortal  = Due | Promised | Incarnation             // it is checked whether somebody still waits
	Special = Control | Mortal                         // what is checked before the turn
	Kept    = NoInfluence | Suppressed | Due | Lasting // what a copy and a forwarded message keep
)
