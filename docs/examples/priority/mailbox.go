// Package priority is a mailbox whose urgent messages overtake the others.
package priority

import (
	"sync"

	"github.com/wasmactors/wasmactors/host"
)

// Mailbox hands out the most urgent message first, and what is equally urgent in the order
// in which it came. It is bounded in messages and in bytes.
type Mailbox struct {
	rank   func(*host.Envelope) int
	limits host.MailboxLimits

	mu     sync.Mutex
	front  []*host.Envelope   // put back, or looked at: before all others
	queues [][]*host.Envelope // by rank, 0 is the most urgent
	n      int
	bytes  int64
	closed bool
}

// New makes mailboxes with ranks from 0, the most urgent, to ranks-1. What is said about a
// message by rank is cut to that range; it must be pure and quick, and change nothing.
//
//	host.Native(newBank).WithMailbox(priority.New(3, rank))
func New(ranks int, rank func(*host.Envelope) int) func(host.MailboxLimits) host.Mailbox {
	return func(l host.MailboxLimits) host.Mailbox {
		return &Mailbox{rank: rank, limits: l, queues: make([][]*host.Envelope, max(ranks, 1))}
	}
}

// Push implements host.Mailbox.
func (m *Mailbox) Push(e *host.Envelope) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return host.ErrStopped
	case m.n >= m.limits.Messages || m.bytes+int64(e.Size()) > m.limits.Bytes:
		return host.ErrMailboxFull
	}
	m.put(e)
	return nil
}

// Force implements host.Mailbox.
func (m *Mailbox) Force(e *host.Envelope) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.put(e)
	return true
}

// put enters an envelope. What is the host's comes last: the end of a watched actor must
// not overtake what that one had sent before.
func (m *Mailbox) put(e *host.Envelope) {
	last := len(m.queues) - 1
	r := last
	if host.IsMail(e) {
		r = min(max(m.rank(e), 0), last)
	}
	m.queues[r] = append(m.queues[r], e)
	m.count(e, 1)
}

func (m *Mailbox) count(e *host.Envelope, sign int) {
	m.n += sign
	m.bytes += int64(sign * e.Size())
}

// Peek implements host.Mailbox. What it has shown stays first, whatever comes before the
// next Pop.
func (m *Mailbox) Peek() *host.Envelope {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first()
}

func (m *Mailbox) first() *host.Envelope {
	if len(m.front) > 0 {
		return m.front[0]
	}
	for r, q := range m.queues {
		if len(q) == 0 {
			continue
		}
		e := q[0]
		q[0] = nil
		m.queues[r] = q[1:]
		m.front = append(m.front[:0], e)
		return e
	}
	return nil
}

// Pop implements host.Mailbox.
func (m *Mailbox) Pop() *host.Envelope {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.first()
	if e != nil {
		m.front[0] = nil
		m.front = m.front[1:]
		m.count(e, -1)
	}
	return e
}

// PushFront implements host.Mailbox. It may exceed the bounds: these messages had been
// accepted before.
func (m *Mailbox) PushFront(es ...*host.Envelope) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range es {
		m.count(e, 1)
	}
	m.front = append(append(make([]*host.Envelope, 0, len(es)+len(m.front)), es...), m.front...)
}

// Close implements host.Mailbox.
func (m *Mailbox) Close(drain func(*host.Envelope)) {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	for e := m.Pop(); e != nil; e = m.Pop() {
		drain(e)
	}
}

// Len implements host.Mailbox.
func (m *Mailbox) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// Bytes implements host.Mailbox.
func (m *Mailbox) Bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// Empty implements host.Mailbox.
func (m *Mailbox) Empty() bool { return m.Len() == 0 }
