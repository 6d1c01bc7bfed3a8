// Package queue has what mailboxes are: the interfaces between an actor and a mailbox of another kind than the usual one.
package queue

import (
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Envelope is a message on its way, as a [Mailbox] sees it. A mailbox must change
// nothing of it.
type Envelope = mailbox.Envelope

// IsMail reports whether an envelope is a sent message or an answer. Any other is the host's: that of a timer, the end of a
// watched actor, a poison pill. It keeps its place behind what was pushed before it unless the mailbox orders otherwise, and
// its payload may be empty.
func IsMail(e *Envelope) bool { return mark.IsMail(e) }

// Mailbox is where the messages of an actor wait. The bounded queue that every actor has
// unless [Props.WithMailbox] says otherwise is the fast path; other mailboxes are called through this interface.
//
// Push, Force, Len and Bytes are for any goroutine at any time; all other methods are
// for one consumer at a time.
type Mailbox interface {
	// Push takes an envelope in, or refuses it with an error that wraps ErrMailboxFull,
	// or ErrStopped after Close. It never waits.
	Push(e *Envelope) error
	// Force takes an envelope of the host's own in, however full the mailbox is (timers
	// and answers bound their number themselves); false after Close.
	Force(e *Envelope) bool
	// Pop removes and returns the next envelope, Peek only returns it; nil if the mailbox is empty. The next Pop returns the
	// envelope that Peek has returned.
	Pop() *Envelope
	Peek() *Envelope
	// PushFront puts envelopes back before all others, the first one given first.
	PushFront(es ...*Envelope)
	// Close refuses all envelopes that come later and passes those that still wait to drain.
	Close(drain func(*Envelope))
	// Len is the number of envelopes, Bytes their size.
	Len() int
	Bytes() int64
	// Empty reports whether Pop would find nothing.
	Empty() bool
}

// Limits bound a mailbox in messages and bytes.
type Limits = mailbox.Limits
