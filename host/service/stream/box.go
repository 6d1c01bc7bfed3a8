package stream

import (
	"sync"

	"github.com/wasmactors/wasmactors/host"
)

// box is the mailbox of a stream's actor: a bounded queue that says when it has refused
// something. A part that was lost there would be a gap.
type box struct {
	limits  host.MailboxLimits
	refused func()

	mu     sync.Mutex
	queue  []*host.Envelope
	bytes  int64
	closed bool
}

var _ host.Mailbox = (*box)(nil)

func (b *box) Push(e *host.Envelope) error {
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

func (b *box) add(e *host.Envelope) {
	b.queue = append(b.queue, e)
	b.bytes += int64(e.Size())
}

func (b *box) Force(e *host.Envelope) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.add(e)
	}
	return !b.closed
}

func (b *box) Pop() *host.Envelope {
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

func (b *box) Peek() *host.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	return b.queue[0]
}

func (b *box) PushFront(es ...*host.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(append(make([]*host.Envelope, 0, len(es)+len(b.queue)), es...), b.queue...)
	for _, e := range es {
		b.bytes += int64(e.Size())
	}
}

func (b *box) Close(drain func(*host.Envelope)) {
	b.mu.Lock()
	left := b.queue
	b.queue, b.bytes, b.closed = nil, 0, true
	b.mu.Unlock()
	for _, e := range left {
		drain(e)
	}
}

func (b *box) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

func (b *box) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

func (b *box) Empty() bool { return b.Len() == 0 }
