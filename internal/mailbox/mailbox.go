// Package mailbox holds the messages that wait for an actor.
//
// A [Mailbox] is a bounded queue with many producers and one consumer. Pushing
// never blocks and takes no lock; what one sender pushes is popped in the order
// in which it was pushed. The consumer may put envelopes back at the front
// (unstash, the unread rest of a batch). Envelopes are pooled, so a message
// costs no allocation in the steady state.
package mailbox

import (
	"errors"
	"sync/atomic"
)

// Why a push was refused. The envelope then still belongs to the caller.
var (
	// ErrFull: one of the mailbox's two bounds is reached.
	ErrFull = errors.New("mailbox is full")
	// ErrClosed: the actor is gone; nothing will ever read this mailbox again.
	ErrClosed = errors.New("mailbox is closed")
)

// The load of a mailbox is one word, so that both bounds are checked and kept in
// one atomic step: the count above, the bytes below.
const (
	bytesBits = 38
	bytesMask = 1<<bytesBits - 1

	// HardMessages is the highest bound on the number of messages.
	HardMessages = 1 << 24
	// HardBytes is the highest bound on the bytes of messages: 64 GiB.
	HardBytes = 1 << 36
)

// Limits bound a mailbox. Envelopes that the consumer puts back count, too, but
// are never refused.
type Limits struct {
	// Messages is the most envelopes that wait at a time, 1 to HardMessages; 0
	// (and whatever is out of range) means HardMessages.
	Messages int
	// Bytes is the most that the waiting envelopes' sizes may add up to, 1 to
	// HardBytes; 0 (and whatever is out of range) means HardBytes. An envelope
	// larger than this never gets in.
	Bytes int64
}

// Mailbox is made ready by [Mailbox.Init]. Push, Len, Bytes and Closed are for
// any goroutine; all other methods are for one consumer at a time, and what
// makes the consumers take turns must order their memory accesses (the
// dispatcher does). A Mailbox must not be copied.
type Mailbox struct {
	inbox atomic.Pointer[Envelope] // what was pushed, newest first; closedMark at the end
	load  atomic.Uint64            // count<<bytesBits | bytes
	front *Envelope                // the consumer's: oldest first

	maxMessages atomic.Uint64
	maxBytes    atomic.Uint64
}

// closedMark stands in a closed mailbox's inbox and is never handed out.
var closedMark = new(Envelope)

// Init sets the bounds and opens the mailbox. It is called once, before
// anybody else knows the mailbox.
func (m *Mailbox) Init(l Limits) { m.SetLimits(l) }

// SetLimits changes the bounds. Any goroutine may call it; what waits already stays.
func (m *Mailbox) SetLimits(l Limits) {
	if l.Messages <= 0 || l.Messages > HardMessages {
		l.Messages = HardMessages
	}
	if l.Bytes <= 0 || l.Bytes > HardBytes {
		l.Bytes = HardBytes
	}
	m.maxMessages.Store(uint64(l.Messages))
	m.maxBytes.Store(uint64(l.Bytes))
}

// Push appends e. It never blocks. On success the mailbox owns e; on an error,
// ErrFull or ErrClosed, e is still the caller's.
func (m *Mailbox) Push(e *Envelope) error {
	size := uint64(e.Size())
	maxBytes := m.maxBytes.Load()
	if size > maxBytes {
		if m.Closed() {
			return ErrClosed
		}
		return ErrFull
	}
	weight, load := 1<<bytesBits+size, uint64(0)
	for {
		load = m.load.Load()
		if load>>bytesBits >= m.maxMessages.Load() || load&bytesMask+size > maxBytes {
			if m.Closed() {
				return ErrClosed
			}
			return ErrFull
		}
		if m.load.CompareAndSwap(load, load+weight) {
			break
		}
	}
	if load != 0 && cap(e.Payload)+cap(e.Headers) > spareWaiting { // it will wait
		e.Fit()
	}
	if !m.link(e, weight) {
		return ErrClosed
	}
	return nil
}

// link appends an envelope whose weight is counted already; false: the mailbox is closed.
func (m *Mailbox) link(e *Envelope, weight uint64) bool {
	for {
		head := m.inbox.Load()
		if head == closedMark {
			m.load.Add(-weight)
			return false
		}
		e.next = head
		if m.inbox.CompareAndSwap(head, e) {
			return true
		}
	}
}

// Pop takes the oldest envelope out; nil means that none is waiting.
func (m *Mailbox) Pop() *Envelope {
	e := m.Peek()
	if e != nil {
		m.Drop(e)
	}
	return e
}

// Drop is Pop of e, which Peek has just shown.
func (m *Mailbox) Drop(e *Envelope) {
	m.front = e.next
	e.next = nil
	m.load.Add(-weightOf(e))
}

// Peek is the envelope that the next Pop takes, or nil. It stays in the mailbox.
func (m *Mailbox) Peek() *Envelope {
	if e := m.front; e != nil {
		return e
	}
	return m.refill()
}

// refill makes what was pushed the front, which is empty. Inlined it would keep Peek from
// being so.
//
//go:noinline
func (m *Mailbox) refill() *Envelope {
	if m.inbox.Load() == nil { // most looks find nothing
		return nil
	}
	m.front = m.take(nil)
	return m.front
}

// PushFront puts envelopes before all others, the first one given first. It is
// the consumer's way to give back what it has popped and is never refused, even
// if that exceeds the bounds; senders are refused until there is room again.
func (m *Mailbox) PushFront(es ...*Envelope) {
	for i := len(es) - 1; i >= 0; i-- {
		e := es[i]
		e.next = m.front
		m.front = e
		m.load.Add(weightOf(e))
	}
}

// Close refuses every later Push and hands each envelope that is still waiting
// to drain, oldest first; drain owns it and may push to other mailboxes. Every
// envelope whose Push succeeded is so either popped or drained, exactly once.
// Closing again drains only what was put back by PushFront in between.
func (m *Mailbox) Close(drain func(*Envelope)) {
	// What waits in the inbox comes after the front.
	rest := m.take(closedMark)
	for e := m.front; e != nil || rest != nil; e = m.front {
		if e == nil {
			m.front, rest = rest, nil
			continue
		}
		m.front = e.next
		e.next = nil
		m.load.Add(-weightOf(e))
		drain(e)
	}
}

// Len is the number of envelopes waiting. Seen from a goroutine that is not the
// consumer it may be out of date at once, and it counts pushes under way.
func (m *Mailbox) Len() int { return int(m.load.Load() >> bytesBits) }

// Bytes is the sum of the sizes of the envelopes waiting, with Len's caveat.
func (m *Mailbox) Bytes() int64 { return int64(m.load.Load() & bytesMask) }

// Empty reports whether a Pop would return nil now. Unlike Len it does not count
// a push that has not happened yet.
func (m *Mailbox) Empty() bool {
	if m.front != nil {
		return false
	}
	head := m.inbox.Load()
	return head == nil || head == closedMark
}

// Closed reports whether Close has been called.
func (m *Mailbox) Closed() bool { return m.inbox.Load() == closedMark }

// take empties the inbox, leaving mark in it, and returns its envelopes oldest
// first.
func (m *Mailbox) take(mark *Envelope) *Envelope {
	head := m.inbox.Load()
	if head == closedMark || head == nil && mark == nil {
		return nil
	}
	head = m.inbox.Swap(mark)
	if head != nil && head.next == nil {
		return head
	}
	var oldest *Envelope
	for head != nil {
		next := head.next
		head.next = oldest
		oldest, head = head, next
	}
	return oldest
}

func weightOf(e *Envelope) uint64 { return 1<<bytesBits + uint64(e.Size()) }
