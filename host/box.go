package host

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Envelope is a message on its way, as a [Mailbox] sees it. A mailbox must change
// nothing of it.
type Envelope = mailbox.Envelope

// IsMail reports whether an envelope is a message that somebody has sent, an answer
// included. Any other is the host's: that of a timer, the end of a watched actor, a poison
// pill. It comes behind what was pushed before it unless the mailbox says otherwise, and
// its payload may be empty.
func IsMail(e *Envelope) bool { return isMail(e) }

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

// box is an actor's mailbox: the usual one without a detour, or another. What waits in it
// is on the actor's account, in steps, so that a small message costs nothing for it: the
// usual mailbox has bounds below its limits, which are raised when they are met.
type box struct {
	usual mailbox.Mailbox
	other Mailbox

	account *account.Account
	limits  mailbox.Limits
	mu      sync.Mutex
	now     mailbox.Limits // bounds of the usual mailbox at present
	calm    int            // spells since the bounds were last met
	grown   atomic.Bool    // something is on the account
}

// What an envelope takes besides its payload and headers, and what every actor may have
// waiting without any account.
const (
	envelopeBytes = 200
	freeMessages  = 8
	freeBytes     = 1 << 10
)

// freeBox are the bounds within which nothing is asked.
var freeBox = mailbox.Limits{Messages: freeMessages, Bytes: freeBytes}

// boxBytes is what bounds may make a mailbox hold.
func boxBytes(l mailbox.Limits) int64 { return int64(l.Messages)*envelopeBytes + l.Bytes }

func (b *box) init(make func(MailboxLimits) Mailbox, l mailbox.Limits, a *account.Account) {
	b.account, b.limits = a, l
	if make != nil {
		b.other = make(l)
		return
	}
	b.now = mailbox.Limits{Messages: min(l.Messages, freeMessages), Bytes: min(l.Bytes, freeBytes)}
	b.usual.Init(b.now)
}

func (b *box) Push(e *Envelope) error {
	if b.other != nil {
		return b.other.Push(e)
	}
	if b.usual.Push(e) == nil {
		return nil
	}
	return b.pushMore(e)
}

// pushMore is Push where the bounds at present are met.
func (b *box) pushMore(e *Envelope) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch b.usual.Push(e) {
		case nil:
			return nil
		case mailbox.ErrClosed:
			return ErrStopped
		}
		if b.now == b.limits {
			return ErrMailboxFull
		}
		next := mailbox.Limits{
			Messages: min(4*b.now.Messages, b.limits.Messages),
			Bytes:    min(max(4*b.now.Bytes, b.usual.Bytes()+int64(e.Size())), b.limits.Bytes),
		}
		if err := b.account.GrowMailbox(boxBytes(next) - boxBytes(b.now)); err != nil {
			return fmt.Errorf("%w: %w", ErrMailboxFull, err)
		}
		b.now, b.calm = next, 0
		b.grown.Store(true)
		b.usual.SetLimits(next)
	}
}

// What a mailbox that was once full keeps of its bounds, and for how many spells without
// meeting them.
const (
	calmBytes  = 256 << 10
	calmSpells = 64
)

// settled reports whether there is nothing for settle to do, as a rule.
func (b *box) settled() bool { return b.other == nil && !b.grown.Load() && b.usual.Len() == 0 }

// nothing reports whether the box is known to be empty, without a detour.
func (b *box) nothing() bool { return b.other == nil && b.usual.Empty() }

// drop is Pop of what Peek has just shown.
func (b *box) drop(e *Envelope) {
	if b.other != nil {
		b.other.Pop()
		return
	}
	b.usual.Drop(e)
}

// settle gives back what an empty mailbox need not hold, and takes what it does hold
// although nobody was asked. It is called by the consumer, at the end of a spell.
func (b *box) settle() {
	if b.other != nil {
		held := b.other.Bytes() + int64(b.other.Len())*envelopeBytes
		if more := held - b.account.Of(account.Mailbox); more != 0 {
			b.account.ShrinkMailbox(-more)
		}
		return
	}
	free := mailbox.Limits{Messages: min(b.limits.Messages, freeMessages), Bytes: min(b.limits.Bytes, freeBytes)}
	if !b.grown.Load() && b.usual.Len() <= free.Messages && b.usual.Bytes() <= free.Bytes {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.usual.Bytes() + int64(b.usual.Len())*envelopeBytes
	if over := held - boxBytes(free) - b.account.Of(account.Mailbox); over > 0 { // given back, or the host's own
		b.account.ShrinkMailbox(-over)
		b.grown.Store(true)
	}
	if !b.usual.Empty() {
		b.calm = 0
		return
	}
	if b.calm++; b.calm < calmSpells && boxBytes(b.now) <= calmBytes {
		return
	}
	b.usual.SetLimits(free)
	b.now, b.calm = free, 0
	b.grown.Store(false)
	held = max(0, b.usual.Bytes()+int64(b.usual.Len())*envelopeBytes-boxBytes(free)) // pushed meanwhile
	b.account.ShrinkMailbox(b.account.Of(account.Mailbox) - held)
	if held > 0 {
		b.grown.Store(true)
	}
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
