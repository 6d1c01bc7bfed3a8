package queue

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Host is what an actor does for its mailbox. Its methods are for any goroutine.
type Host interface {
	// Dropped takes over an envelope that the mailbox drops, one that it has had or one that is
	// being pushed. It becomes a dead letter, and a waiting asker is notified. The caller holds no
	// lock.
	Dropped(e *Envelope, why event.DeadReason)
	// Reserve changes the bytes that the actor's account holds for the mailbox. The error says which limit is reached; it is
	// nil if must is set or bytes is negative. Calls must not overlap: the mailbox's lock ensures that.
	Reserve(bytes int64, must bool) error
}

// Hosted is a mailbox that works with its actor.
type Hosted interface {
	Mailbox
	// Hosted is called once, before anything else.
	Hosted(h Host)
	// The consumer calls EndRun at the end of each run. The mailbox may release what it has reserved and does not need.
	EndRun()
	// Order returns how many envelopes arrived before the one that has waited longest (all of them, if none waits), and how
	// many arrived in total. Any goroutine may call it.
	Order() (before, came uint64)
	// Trim drops sent messages, as DeadEvicted, until at most `most` of them wait: the least urgent first, and of these the
	// oldest first. The consumer calls it.
	Trim(most int)
	// Failed says that the turn of a popped envelope has failed, before anyone else is notified. The caller keeps the
	// envelope and may put it back. The consumer calls it.
	Failed(e *Envelope)
}

// Waiting is a mailbox in which senders from Go may wait for room.
type Waiting interface {
	Mailbox
	// PushWait is Push that waits while the mailbox is full. If ctx ends first, the error wraps ErrMailboxFull.
	PushWait(ctx context.Context, e *Envelope) error
	// Wait is the longest time that a sender waits.
	Wait() time.Duration
}

// FromOutside reports whether the sender of an envelope is not an actor.
func FromOutside(e *Envelope) bool { return e.Sender == 0 || ref.IsTemp(e.SenderPath) }
