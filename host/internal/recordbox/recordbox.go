// Package recordbox has the mailbox of a recorded actor. Package host puts it before the actor's own mailbox; it decides nothing but
// the order in which a recorder is told of messages.
package recordbox

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/queue"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/clock"
)

// Told is whom the mailboxes of a system tell of messages. It is fixed when the system begins.
type Told struct {
	Recorder record.Recorder
	Gate     record.Gate   // the same, if it may have no room; else nil
	Direct   record.Direct // the same, if it takes messages directly; else nil
	Time     *clock.Nanos
}

// Owner is the actor whose mailbox it is.
type Owner interface {
	// Flies takes a message over that is sent while the system is rebuilt; false if it is not rebuilt, or not any more. Any goroutine
	// may call it.
	Flies(e *queue.Envelope) bool
	// StillCounts reports whether what waits is handled when its turn comes; only the actor's own run may ask, or nobody runs.
	StillCounts(e *queue.Envelope) bool
}

// Box is the mailbox of a recorded actor. Its lock makes the order of the records that of the mailbox. Before the actor's own
// usual mailbox it stands only where messages come in: the consumer calls that directly, and without the lock, as it hands out a message
// only when the recorder has been told of it. Another mailbox is called through this one. The methods of queue.Mailbox are for those
// whom that says; any goroutine may call the others where nothing else is said.
type Box struct {
	owner Owner
	told  *Told
	own   *box.Box // the actor's
	inner queue.Mailbox
	usual bool // inner is the actor's own usual mailbox

	mu       sync.Mutex
	position uint64
	record   record.Record
	message  record.Message
}

// New is a mailbox before inner, one that the actor with the ref has instead of a usual one.
func New(o Owner, uid abi.Ref, t *Told, own *box.Box, inner queue.Mailbox) *Box {
	b := &Box{owner: o, told: t, own: own, inner: inner}
	b.record = record.Record{Kind: record.Accepted, Actor: uid, Message: &b.message}
	return b
}

// Before has all that comes into the actor's own usual mailbox recorded.
func Before(o Owner, uid abi.Ref, t *Told, own *box.Box) *Box {
	b := New(o, uid, t, own, box.Plain{Mailbox: &own.Usual})
	b.usual = true
	own.Before(b)
	return b
}

// Inner is the mailbox that it stands before.
func (b *Box) Inner() queue.Mailbox { return b.inner }

// Push implements queue.Mailbox.
func (b *Box) Push(e *queue.Envelope) error { return b.pushAt(e, 0) }

// PushAt is Push of what a recorded turn has sent at a time, in ns since 1970. The error says which bound was met, as that of
// the actor's own mailbox does.
func (b *Box) PushAt(e *queue.Envelope, at int64) error {
	if !b.usual {
		return b.own.Push(e)
	}
	if err := b.pushAt(e, at); err != nil {
		return b.own.Which(err)
	}
	return nil
}

// pushAt is PushAt at a time; 0: of anything, now.
func (b *Box) pushAt(e *queue.Envelope, at int64) error {
	b.mu.Lock()
	if b.owner.Flies(e) {
		b.mu.Unlock()
		return nil
	}
	var err error
	if b.usual {
		err = b.enter(e, at)
	} else {
		err = b.pass(e, at)
	}
	b.mu.Unlock()
	return err
}

// enter is pushAt into the actor's own usual mailbox: the recorder is told between the two halves of a push.
func (b *Box) enter(e *queue.Envelope, at int64) error {
	if err := b.own.Reserve(e); err != nil {
		return err
	}
	if err := b.tell(e, at, false); err != nil {
		b.own.Usual.Unreserve(e)
		return err
	}
	return b.own.Usual.Enter(e) // nothing closes it meanwhile: Close takes the lock
}

// pass is pushAt into another mailbox, from which nobody takes before the lock is given up.
func (b *Box) pass(e *queue.Envelope, at int64) error {
	if err := b.admit(e); err != nil {
		return err
	}
	e.Position = b.position + 1
	if err := b.inner.Push(e); err != nil {
		e.Position = 0
		return err
	}
	return b.tell(e, at, true)
}

// Force implements queue.Mailbox.
func (b *Box) Force(e *queue.Envelope) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owner.Flies(e) {
		return true
	}
	if b.usual {
		if b.own.Usual.Closed() {
			return false
		}
		_ = b.tell(e, 0, true)
		return b.own.ForceIn(e) // see enter
	}
	if e.Position = b.position + 1; !b.inner.Force(e) {
		return false
	}
	_ = b.tell(e, 0, true)
	return true
}

// Limit sets the limits of a usual mailbox, of an actor that nobody sends to.
func (b *Box) Limit(l queue.Limits) {
	if b.usual {
		b.own.Limit(l)
	} else if m, ok := b.inner.(box.Plain); ok {
		m.SetLimits(l)
	}
}

// Position is that of the last message that was accepted; 0: none was.
func (b *Box) Position() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.position
}

// Begin has the mailbox of an actor that is being rebuilt go on behind a position.
func (b *Box) Begin(position uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.position = position
}

// PutBack puts in what the mailbox had when it was saved: nobody is told of it. false: the mailbox is closed, and the envelope
// stays the caller's.
func (b *Box) PutBack(e *queue.Envelope) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inner.Force(e)
}

// Repeat is PutBack of a message at the position that it had in the records.
func (b *Box) Repeat(e *queue.Envelope, position uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.Position, b.position = position, position
	return b.inner.Force(e)
}

// Counting calls f for what waits and still counts, in its order, and returns the position of the last message. The rest is dropped when
// its turn comes. f must not call the mailbox. It is for the actor's own run, or when nobody runs.
func (b *Box) Counting(f func(*queue.Envelope)) (position uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var es []*queue.Envelope
	for e := b.inner.Pop(); e != nil; e = b.inner.Pop() {
		if es = append(es, e); e.Kind == abi.KindMessage || b.owner.StillCounts(e) {
			f(e)
		}
	}
	b.inner.PushFront(es...)
	return b.position
}

// admit asks the recorder whether it has room for a message.
func (b *Box) admit(e *queue.Envelope) error {
	if g := b.told.Gate; g != nil {
		if err := g.Admit(len(e.Payload) + len(e.Headers)); err != nil {
			return errs.NotAdmitted{Err: err}
		}
	}
	return nil
}

// tell numbers an envelope that nobody takes out before, and tells the recorder of it, which may have no room for it; must says that the
// mailbox has it in any case, and then there is no error. at is as for pushAt.
func (b *Box) tell(e *queue.Envelope, at int64, must bool) (err error) {
	if at == 0 {
		at = b.told.Time.Now()
	}
	e.Position = b.position + 1
	if d := b.told.Direct; d != nil {
		if err = d.Accept(b.record.Actor, at, e, must); err != nil {
			err = errs.NotAdmitted{Err: err}
		}
	} else {
		if !must {
			err = b.admit(e)
		}
		if err == nil {
			b.record.Time = at
			b.message.Set(e)
			b.told.Recorder.Note(&b.record)
		}
	}
	if err != nil {
		e.Position = 0
		return err
	}
	b.position++
	return nil
}

// Pop implements queue.Mailbox.
func (b *Box) Pop() *queue.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inner.Pop()
}

// Peek implements queue.Mailbox.
func (b *Box) Peek() *queue.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inner.Peek()
}

// PushFront implements queue.Mailbox.
func (b *Box) PushFront(es ...*queue.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inner.PushFront(es...)
}

// Close implements queue.Mailbox. What is drained may lead to messages for the actor itself, so it happens without the lock.
func (b *Box) Close(drain func(*queue.Envelope)) {
	var left []*queue.Envelope
	b.mu.Lock()
	b.inner.Close(func(e *queue.Envelope) { left = append(left, e) })
	b.mu.Unlock()
	for _, e := range left {
		drain(e)
	}
}

// Len implements queue.Mailbox.
func (b *Box) Len() int { return b.inner.Len() }

// Bytes implements queue.Mailbox.
func (b *Box) Bytes() int64 { return b.inner.Bytes() }

// Empty implements queue.Mailbox.
func (b *Box) Empty() bool { return b.inner.Empty() }
