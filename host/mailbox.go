package host

import "github.com/wasmactors/wasmactors/host/queue"

// What a mailbox is. Package queue describes these types, host/mailbox has kinds of mailboxes.
type (
	// Envelope is a message on its way, as a [Mailbox] sees it. A mailbox must change nothing of it.
	Envelope = queue.Envelope
	// Mailbox is where the messages of an actor wait. The bounded queue that every actor has unless [Props.WithMailbox]
	// says otherwise is the fast path; other mailboxes are called through this interface.
	Mailbox = queue.Mailbox
	// MailboxLimits bound a mailbox in messages and bytes.
	MailboxLimits = queue.Limits
	// HostedMailbox is a mailbox that works with its actor.
	HostedMailbox = queue.Hosted
	// MailboxHost is what an actor does for its mailbox. Its methods are for any goroutine.
	MailboxHost = queue.Host
	// WaitingMailbox is a mailbox in which senders from Go may wait for room.
	WaitingMailbox = queue.Waiting
)

// IsMail reports whether an envelope is a sent message or an answer, see [queue.IsMail].
func IsMail(e *Envelope) bool { return queue.IsMail(e) }

// FromOutside reports whether the sender of an envelope is not an actor.
func FromOutside(e *Envelope) bool { return queue.FromOutside(e) }
