package host

import "github.com/wasmactors/wasmactors/internal/mailbox"

// Envelope is a message on its way, as a [Mailbox] sees it. A mailbox must change
// nothing of it.
type Envelope = mailbox.Envelope

// Mailbox is where the messages of an actor wait. The bounded queue that every actor has
// unless [Props.WithMailbox] says otherwise is the fast path; others stand beside it.
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
	// Pop takes the next envelope out, Peek looks at it; nil if there is none. What
	// Peek has shown the next Pop takes.
	Pop() *Envelope
	Peek() *Envelope
	// PushFront puts envelopes back before all others, the first one given first.
	PushFront(es ...*Envelope)
	// Close refuses all that comes later and hands over what still waits.
	Close(drain func(*Envelope))
	// Len is the number of envelopes, Bytes their size.
	Len() int
	Bytes() int64
	// Empty reports whether Pop would find nothing.
	Empty() bool
}

// MailboxLimits bound a mailbox in messages and bytes.
type MailboxLimits = mailbox.Limits

// box is an actor's mailbox: the usual one without a detour, or another.
type box struct {
	usual mailbox.Mailbox
	other Mailbox
}

func (b *box) init(make func(MailboxLimits) Mailbox, l mailbox.Limits) {
	if make != nil {
		b.other = make(l)
		return
	}
	b.usual.Init(l)
}

func (b *box) Push(e *Envelope) error {
	if b.other != nil {
		return b.other.Push(e)
	}
	switch b.usual.Push(e) {
	case nil:
		return nil
	case mailbox.ErrClosed:
		return ErrStopped
	}
	return ErrMailboxFull
}

func (b *box) Force(e *Envelope) bool {
	if b.other != nil {
		return b.other.Force(e)
	}
	return b.usual.Force(e)
}

func (b *box) Pop() *Envelope {
	if b.other != nil {
		return b.other.Pop()
	}
	return b.usual.Pop()
}

func (b *box) Peek() *Envelope {
	if b.other != nil {
		return b.other.Peek()
	}
	return b.usual.Peek()
}

func (b *box) PushFront(es ...*Envelope) {
	if b.other != nil {
		b.other.PushFront(es...)
		return
	}
	b.usual.PushFront(es...)
}

func (b *box) Close(drain func(*Envelope)) {
	if b.other != nil {
		b.other.Close(drain)
		return
	}
	b.usual.Close(drain)
}

func (b *box) Len() int {
	if b.other != nil {
		return b.other.Len()
	}
	return b.usual.Len()
}

func (b *box) Bytes() int64 {
	if b.other != nil {
		return b.other.Bytes()
	}
	return b.usual.Bytes()
}

func (b *box) Empty() bool {
	if b.other != nil {
		return b.other.Empty()
	}
	return b.usual.Empty()
}
