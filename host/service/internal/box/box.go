// Package box is a mailbox for actors of services that must know when they have missed
// something.
package box

import (
	"sync"

	"github.com/wasmactors/wasmactors/host"
)

// Box is a bounded queue that says when it has refused something: a part of a stream that was
// lost there would be a gap.
type Box struct {
	limits  host.MailboxLimits
	refused func()

	mu     sync.Mutex
	queue  []*host.Envelope
	bytes  int64
	closed bool
}

var _ host.Mailbox = (*Box)(nil)

// New returns an empty box. The sender's goroutine calls refused, with no lock held, when a message is refused, but not for
// messages after the end.
func New(l host.MailboxLimits, refused func()) *Box { return &Box{limits: l, refused: refused} }

// Push implements host.Mailbox.
func (b *Box) Push(e *host.Envelope) error {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return host.ErrStopped
	case len(b.queue) >= b.limits.Messages || b.bytes+int64(e.Size()) > b.limits.Bytes && len(b.queue) > 0:
		b.mu.Unlock()
		b.refused()
		return host.ErrMailboxFull
	}
	b.add(e)
	b.mu.Unlock()
	return nil
}

func (b *Box) add(e *host.Envelope) {
	b.queue = append(b.queue, e)
	b.bytes += int64(e.Size())
}

// Force implements host.Mailbox.
func (b *Box) Force(e *host.Envelope) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.add(e)
	}
	return !b.closed
}

// Pop implements host.Mailbox.
func (b *Box) Pop() *host.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	e := b.queue[0]
	b.queue[0] = nil
	b.bytes -= int64(e.Size())
	if b.queue = b.queue[1:]; len(b.queue) == 0 {
		b.queue = nil
	}
	return e
}

// Peek implements host.Mailbox.
func (b *Box) Peek() *host.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	return b.queue[0]
}

// PushFront implements host.Mailbox.
func (b *Box) PushFront(es ...*host.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(append(make([]*host.Envelope, 0, len(es)+len(b.queue)), es...), b.queue...)
	for _, e := range es {
		b.bytes += int64(e.Size())
	}
}

// Close implements host.Mailbox.
func (b *Box) Close(drain func(*host.Envelope)) {
	b.mu.Lock()
	left := b.queue
	b.queue, b.bytes, b.closed = nil, 0, true
	b.mu.Unlock()
	for _, e := range left {
		drain(e)
	}
}

// Len implements host.Mailbox.
func (b *Box) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Bytes implements host.Mailbox.
func (b *Box) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// Empty implements host.Mailbox.
func (b *Box) Empty() bool { return b.Len() == 0 }
