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

// IsMail reports whether an envelope is a sent message or an answer. Any other is the host's: that of a timer, the end of a
// watched actor, a poison pill. It keeps its place behind what was pushed before it unless the mailbox orders otherwise, and
// its payload may be empty.
func IsMail(e *Envelope) bool { return isMail(e) }

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

// MailboxLimits bound a mailbox in messages and bytes.
type MailboxLimits = mailbox.Limits

// box is an actor's mailbox: the usual one, called directly, or another. What waits in it
// is on the actor's account, in steps, so that the account costs a small message nothing: the
// usual mailbox has bounds below its limits, which are raised when they are met.
type box struct {
	usual mailbox.Mailbox
	other Mailbox

	hosted HostedMailbox // other, if it is one

	account *account.Account
	limits  mailbox.Limits
	mu      sync.Mutex
	now     mailbox.Limits // bounds of the usual mailbox at present
	calm    int            // spells since the bounds were last met
	grown   atomic.Bool    // something is on the account, or the bounds were raised
	shut    bool           // the account is closed
}

// The size of an envelope in addition to its payload and headers, and how much may wait for every actor
// without being on any account.
const (
	envelopeBytes = 200
	freeMessages  = 8
	freeBytes     = 1 << 10
)

// freeBox are the bounds within which the account is not asked.
var freeBox = mailbox.Limits{Messages: freeMessages, Bytes: freeBytes}

// boxBytes is the most that a mailbox with these bounds can hold.
func boxBytes(l mailbox.Limits) int64 { return int64(l.Messages)*envelopeBytes + l.Bytes }

func (b *box) init(make func(MailboxLimits) Mailbox, l mailbox.Limits, a *account.Account) {
	b.account, b.limits = a, l
	if make != nil {
		b.other = make(l)
		return
	}
	b.now = b.free()
	b.usual.Init(b.now)
}

func (b *box) Push(e *Envelope) error {
	if b.other != nil {
		return b.pushOther(e)
	}
	if b.usual.Push(e) == nil {
		return nil
	}
	return b.pushMore(e)
}

// pushMore is Push when the present bounds are met.
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
		if b.shut {
			return ErrStopped
		}
		if b.now == b.limits {
			return b.whyFull()
		}
		if err := b.raise(int64(e.Size())); err != nil {
			return fmt.Errorf("%w: %w", ErrMailboxFull, err)
		}
	}
}

// raise raises the bounds so that a message of a size gets in: to four times what they
// were, or as far as there is room.
func (b *box) raise(size int64) (err error) {
	for factor := 4; factor >= 1; factor /= 2 {
		next := mailbox.Limits{
			Messages: min(max(factor*b.now.Messages, b.usual.Len()+1), b.limits.Messages),
			Bytes:    min(max(int64(factor)*b.now.Bytes, b.usual.Bytes()+size), b.limits.Bytes),
		}
		if next == b.now {
			return err
		}
		more := boxBytes(next) - boxBytes(b.now) - b.beyond()
		if err = b.account.GrowMailbox(max(more, 0)); err == nil {
			b.now, b.calm = next, 0
			b.grown.Store(true)
			b.usual.SetLimits(next)
			return nil
		}
	}
	return err
}

// beyond is what is on the account beyond the bounds: what the host
// itself has put there, or the actor has put back.
func (b *box) beyond() int64 {
	return max(0, b.account.Of(account.Mailbox)-(boxBytes(b.now)-boxBytes(b.free())))
}

// free are the bounds within which the account is not asked.
func (b *box) free() mailbox.Limits {
	return mailbox.Limits{Messages: min(b.limits.Messages, freeMessages), Bytes: min(b.limits.Bytes, freeBytes)}
}

// fullError is ErrMailboxFull with the bound that was met.
type fullError struct{ key string }

func (e *fullError) Error() string { return ErrMailboxFull.Error() }
func (e *fullError) Unwrap() error { return ErrMailboxFull }

var fullOfMessages, fullOfBytes = &fullError{"limits.mailbox"}, &fullError{"limits.mailbox-bytes"}

// whyFull says which of the mailbox's own bounds is met.
func (b *box) whyFull() error {
	if b.usual.Len() >= b.limits.Messages {
		return fullOfMessages
	}
	return fullOfBytes
}

// full reports whether a message of a size cannot get in, whatever the account has room for.
func (b *box) full(size int) bool {
	return b.other == nil && (b.usual.Len() >= b.limits.Messages || b.usual.Bytes()+int64(size) > b.limits.Bytes) && !b.usual.Closed()
}

// crowded says which bound is exceeded twofold; nil if none is. Others can fill a mailbox only up to its
// bounds: the rest is what the actor itself has caused.
func (b *box) crowded(size int) error {
	switch {
	case b.Len() >= 2*b.limits.Messages:
		return fullOfMessages
	case b.Bytes()+int64(size) > 2*b.limits.Bytes:
		return fullOfBytes
	}
	return nil
}

// overdrawn notes what the host itself has put into the mailbox, or the actor has put
// back, beyond the bounds. Any goroutine may call it.
func (b *box) overdrawn() {
	if b.other != nil || b.usual.Bytes()+int64(b.usual.Len())*envelopeBytes <= freeBytes+freeMessages*envelopeBytes {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takeOver()
}

// takeOver brings the account up to what the bounds allow, or to what is in the mailbox if that is
// more.
func (b *box) takeOver() {
	if b.shut {
		return
	}
	held := max(boxBytes(b.now), b.usual.Bytes()+int64(b.usual.Len())*envelopeBytes) - boxBytes(b.free())
	if more := held - b.account.Of(account.Mailbox); more != 0 {
		b.account.ShrinkMailbox(-more)
	}
	b.grown.Store(b.now != b.free() || held != 0)
}

// closeAccount closes the account: later messages are refused, and count for no actor.
func (b *box) closeAccount() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
	b.account.Close()
}

// The largest bounds that a mailbox keeps after it was full, and for how many spells without
// meeting them.
const (
	calmBytes  = 256 << 10
	calmSpells = 64
)

// minimal reports whether there is nothing for giveBack to do, as a rule.
func (b *box) minimal() bool { return b.other == nil && !b.grown.Load() && b.usual.Len() == 0 }

// nothing reports whether the box is certainly empty, without asking another mailbox.
func (b *box) nothing() bool { return b.other == nil && b.usual.Empty() }

// drop is Pop of what Peek has just shown.
func (b *box) drop(e *Envelope) {
	if b.other != nil {
		b.other.Pop()
		return
	}
	b.usual.Drop(e)
}

// giveBack gives back what an empty mailbox need not hold, and puts on the account what the mailbox
// holds without having asked. It is called by the consumer, at the end of a spell.
func (b *box) giveBack() {
	if b.other != nil {
		if b.shut { // only the consumer shuts it
			return
		}
		if b.hosted != nil {
			b.hosted.EndRun()
			return
		}
		held := b.other.Bytes() + int64(b.other.Len())*envelopeBytes
		if more := held - b.account.Of(account.Mailbox); more != 0 {
			b.account.ShrinkMailbox(-more)
		}
		return
	}
	free := b.free()
	if !b.grown.Load() && b.usual.Len() <= free.Messages && b.usual.Bytes() <= free.Bytes {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut {
		return
	}
	b.takeOver()
	if !b.usual.Empty() {
		b.calm = 0
		return
	}
	if b.calm++; b.calm < calmSpells && boxBytes(b.now) <= calmBytes {
		return
	}
	b.usual.SetLimits(free)
	b.now, b.calm = free, 0
	b.takeOver() // of what was pushed meanwhile
}

func (b *box) Force(e *Envelope) bool {
	if b.other != nil {
		return b.other.Force(e)
	}
	if !b.usual.Force(e) {
		return false
	}
	b.overdrawn()
	return true
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
	b.overdrawn()
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
