// Package box is an actor's mailbox as the actor uses it: the usual one, called directly, or another.
package box

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/queue"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Box is an actor's mailbox: the usual one, called directly, or another. What waits in it
// is on the actor's account, in steps, so that the account costs a small message nothing: the
// usual mailbox has bounds below its limits, which are raised when they are met.
type Box struct {
	Usual mailbox.Mailbox
	Other queue.Mailbox // takes in what comes; nil: Usual does

	Hosted queue.Hosted // other, if it is one

	account *account.Account
	limits  mailbox.Limits
	mu      sync.Mutex
	now     mailbox.Limits // bounds of the usual mailbox at present
	calm    int            // spells since the bounds were last met
	grown   atomic.Bool    // something is on the account, or the bounds were raised
	shut    bool           // the account is closed
	apart   bool           // what waits is in Other; else in Usual, whatever has taken it in
}

// The size of an envelope in addition to its payload and headers, and how much may wait for every actor
// without being on any account.
const (
	EnvelopeBytes = 200
	freeMessages  = 8
	freeBytes     = 1 << 10
)

// FreeBox are the bounds within which the account is not asked.
var FreeBox = mailbox.Limits{Messages: freeMessages, Bytes: freeBytes}

// BoxBytes is the most that a mailbox with these bounds can hold.
func BoxBytes(l mailbox.Limits) int64 { return int64(l.Messages)*EnvelopeBytes + l.Bytes }

func (b *Box) Init(make func(queue.Limits) queue.Mailbox, l mailbox.Limits, a *account.Account) {
	b.account, b.limits = a, l
	if make != nil {
		b.Other, b.apart = make(l), true
		return
	}
	b.now = b.free()
	b.Usual.Init(b.now)
}

// Before has all that is pushed, forced, or left when the box is closed pass m, which stands before the usual mailbox: it calls Reserve
// and Usual, and never this Push. It is called once, after Init.
func (b *Box) Before(m queue.Mailbox) { b.Other = m }

// Reserve is the first half of Push, for what stands before the usual mailbox and has producers take turns: see mailbox.Mailbox.Reserve.
func (b *Box) Reserve(e *queue.Envelope) error {
	if b.Usual.Reserve(e) == nil {
		return nil
	}
	return b.pushMore(e, (*mailbox.Mailbox).Reserve)
}

// Limit sets other limits, of an actor that nobody sends to.
func (b *Box) Limit(l mailbox.Limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = l
	b.now = mailbox.Limits{Messages: min(b.now.Messages, l.Messages), Bytes: min(b.now.Bytes, l.Bytes)}
	b.Usual.SetLimits(b.now)
}

func (b *Box) Push(e *queue.Envelope) error {
	if b.Other != nil {
		return b.pushOther(e)
	}
	if b.Usual.Push(e) == nil {
		return nil
	}
	return b.pushMore(e, (*mailbox.Mailbox).Push)
}

// pushMore is a push to the usual mailbox when its present bounds are met.
func (b *Box) pushMore(e *queue.Envelope, push func(*mailbox.Mailbox, *mailbox.Envelope) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch push(&b.Usual, e) {
		case nil:
			return nil
		case mailbox.ErrClosed:
			return errs.ErrStopped
		}
		if b.shut {
			return errs.ErrStopped
		}
		if b.now == b.limits {
			return b.WhyFull()
		}
		if err := b.raise(int64(e.Size())); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrMailboxFull, err)
		}
	}
}

// raise raises the bounds so that a message of a size gets in: to four times what they
// were, or as far as there is room.
func (b *Box) raise(size int64) (err error) {
	for factor := 4; factor >= 1; factor /= 2 {
		next := mailbox.Limits{
			Messages: min(max(factor*b.now.Messages, b.Usual.Len()+1), b.limits.Messages),
			Bytes:    min(max(int64(factor)*b.now.Bytes, b.Usual.Bytes()+size), b.limits.Bytes),
		}
		if next == b.now {
			return err
		}
		more := BoxBytes(next) - BoxBytes(b.now) - b.beyond()
		if err = b.account.GrowMailbox(max(more, 0)); err == nil {
			b.now, b.calm = next, 0
			b.grown.Store(true)
			b.Usual.SetLimits(next)
			return nil
		}
	}
	return err
}

// beyond is what is on the account beyond the bounds: what the host
// itself has put there, or the actor has put back.
func (b *Box) beyond() int64 {
	return max(0, b.account.Of(account.Mailbox)-(BoxBytes(b.now)-BoxBytes(b.free())))
}

// free are the bounds within which the account is not asked.
func (b *Box) free() mailbox.Limits {
	return mailbox.Limits{Messages: min(b.limits.Messages, freeMessages), Bytes: min(b.limits.Bytes, freeBytes)}
}

// fullError is ErrMailboxFull with the bound that was met.
type fullError struct{ key string }

func (e *fullError) Error() string { return errs.ErrMailboxFull.Error() }

func (e *fullError) Unwrap() error { return errs.ErrMailboxFull }

// ManifestKey is the manifest's key for the bound.
func (e *fullError) ManifestKey() string { return e.key }

var fullOfMessages, fullOfBytes = &fullError{"limits.mailbox"}, &fullError{"limits.mailbox-bytes"}

// WhyFull says which of the mailbox's own bounds is met.
func (b *Box) WhyFull() error {
	if b.Usual.Len() >= b.limits.Messages {
		return fullOfMessages
	}
	return fullOfBytes
}

// Full reports whether a message of a size cannot get in, whatever the account has room for. It is false where Other takes messages in: that
// says so itself when it is given one, so that a recorder hears of it.
func (b *Box) Full(size int) bool {
	return b.Other == nil && (b.Usual.Len() >= b.limits.Messages || b.Usual.Bytes()+int64(size) > b.limits.Bytes) && !b.Usual.Closed()
}

// Crowded says which bound is exceeded twofold; nil if none is. Others can fill a mailbox only up to its
// bounds: the rest is what the actor itself has caused.
func (b *Box) Crowded(size int) error {
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
func (b *Box) overdrawn() {
	if b.apart || b.Usual.Bytes()+int64(b.Usual.Len())*EnvelopeBytes <= freeBytes+freeMessages*EnvelopeBytes {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takeOver()
}

// takeOver brings the account up to what the bounds allow, or to what is in the mailbox if that is
// more.
func (b *Box) takeOver() {
	if b.shut {
		return
	}
	held := max(BoxBytes(b.now), b.Usual.Bytes()+int64(b.Usual.Len())*EnvelopeBytes) - BoxBytes(b.free())
	if more := held - b.account.Of(account.Mailbox); more != 0 {
		b.account.ShrinkMailbox(-more)
	}
	b.grown.Store(b.now != b.free() || held != 0)
}

// CloseAccount closes the account: later messages are refused, and count for no actor.
func (b *Box) CloseAccount() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut = true
	b.account.Close()
}

// The largest bounds that a mailbox keeps after it was full, and for how many spells without
// meeting them.
const (
	calmBytes  = 256 << 10
	CalmSpells = 64
)

// Minimal reports whether there is nothing for giveBack to do, as a rule.
func (b *Box) Minimal() bool { return !b.apart && !b.grown.Load() && b.Usual.Len() == 0 }

// Nothing reports whether the box is certainly empty, without asking another mailbox.
func (b *Box) Nothing() bool { return !b.apart && b.Usual.Empty() }

// Front is Peek of the usual mailbox for a message of the most usual kind, and nil for all others.
func (b *Box) Front() *queue.Envelope {
	if !b.apart {
		if e := b.Usual.Peek(); e != nil && e.Kind == abi.KindMessage {
			return e
		}
	}
	return nil
}

// Drop is Pop of what Peek has just shown.
func (b *Box) Drop(e *queue.Envelope) {
	if b.apart {
		b.Other.Pop()
		return
	}
	b.Usual.Drop(e)
}

// GiveBack gives back what an empty mailbox need not hold, and puts on the account what the mailbox
// holds without having asked. It is called by the consumer, at the end of a spell.
func (b *Box) GiveBack() {
	if b.apart {
		if b.shut { // only the consumer shuts it
			return
		}
		if b.Hosted != nil {
			b.Hosted.EndRun()
			return
		}
		held := b.Other.Bytes() + int64(b.Other.Len())*EnvelopeBytes
		if more := held - b.account.Of(account.Mailbox); more != 0 {
			b.account.ShrinkMailbox(-more)
		}
		return
	}
	free := b.free()
	if !b.grown.Load() && b.Usual.Len() <= free.Messages && b.Usual.Bytes() <= free.Bytes {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut {
		return
	}
	b.takeOver()
	if !b.Usual.Empty() {
		b.calm = 0
		return
	}
	if b.calm++; b.calm < CalmSpells && BoxBytes(b.now) <= calmBytes {
		return
	}
	b.Usual.SetLimits(free)
	b.now, b.calm = free, 0
	b.takeOver() // of what was pushed meanwhile
}

func (b *Box) Force(e *queue.Envelope) bool {
	if b.Other != nil {
		return b.Other.Force(e)
	}
	return b.ForceIn(e)
}

// ForceIn is Force into the usual mailbox, also for what stands before it.
func (b *Box) ForceIn(e *queue.Envelope) bool {
	if !b.Usual.Force(e) {
		return false
	}
	b.overdrawn()
	return true
}

func (b *Box) Pop() *queue.Envelope {
	if b.apart {
		return b.Other.Pop()
	}
	return b.Usual.Pop()
}

func (b *Box) Peek() *queue.Envelope {
	if b.apart {
		return b.Other.Peek()
	}
	return b.Usual.Peek()
}

func (b *Box) PushFront(es ...*queue.Envelope) {
	if b.apart {
		b.Other.PushFront(es...)
		return
	}
	b.Usual.PushFront(es...)
	b.overdrawn()
}

func (b *Box) Close(drain func(*queue.Envelope)) {
	if b.Other != nil {
		b.Other.Close(drain)
		return
	}
	b.Usual.Close(drain)
}

func (b *Box) Len() int {
	if b.apart {
		return b.Other.Len()
	}
	return b.Usual.Len()
}

func (b *Box) Bytes() int64 {
	if b.apart {
		return b.Other.Bytes()
	}
	return b.Usual.Bytes()
}

func (b *Box) Empty() bool {
	if b.apart {
		return b.Other.Empty()
	}
	return b.Usual.Empty()
}

// Host introduces the mailbox, which is one of those, to its actor.
func (b *Box) Host(m queue.Hosted, actor queue.Host) {
	b.Hosted = m
	m.Hosted(actor)
}

// pushOther is Push to a mailbox other than the usual one.
func (b *Box) pushOther(e *queue.Envelope) error {
	if err := b.Other.Push(e); err != nil {
		return b.Which(err)
	}
	return nil
}

// Wait pushes a message into a mailbox in which senders may wait for room, until the mailbox's wait time is over, or ctx
// ends.
func (b *Box) Wait(ctx context.Context, c clock.Clock, w queue.Waiting, e *queue.Envelope) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := c.AfterFunc(w.Wait(), cancel)
	defer timer.Stop()
	err := w.PushWait(ctx, e)
	if err == nil || errors.Is(err, errs.ErrStopped) {
		return err
	}
	return b.Which(err)
}

// Which adds the bound of a mailbox other than the usual one that was met, if the mailbox does not say so itself.
func (b *Box) Which(err error) error {
	switch {
	case !errors.Is(err, errs.ErrMailboxFull) || errs.KeyOf(err, "") != "":
		return err
	case b.Other.Len() >= b.limits.Messages:
		return fullOfMessages
	}
	return fullOfBytes
}
