// Package fifo is a queue of envelopes for mailboxes that are written in Go.
package fifo

import "github.com/wasmactors/wasmactors/internal/mailbox"

// Queue returns envelopes in the order in which they came. The zero value is empty. It does not lock.
type Queue struct {
	ring  []*mailbox.Envelope
	at, n int
	bytes int64
}

// Len is the number of envelopes.
func (f *Queue) Len() int { return f.n }

// Bytes is what they take.
func (f *Queue) Bytes() int64 { return f.bytes }

// Push takes an envelope in, behind all others.
func (f *Queue) Push(e *mailbox.Envelope) {
	f.grow()
	f.ring[(f.at+f.n)%len(f.ring)] = e
	f.n++
	f.bytes += int64(e.Size())
}

// PushFront takes an envelope in, before all others.
func (f *Queue) PushFront(e *mailbox.Envelope) {
	f.grow()
	f.at = (f.at + len(f.ring) - 1) % len(f.ring)
	f.ring[f.at] = e
	f.n++
	f.bytes += int64(e.Size())
}

func (f *Queue) grow() {
	if f.n < len(f.ring) {
		return
	}
	larger := make([]*mailbox.Envelope, max(8, 2*len(f.ring)))
	for i := range f.n {
		larger[i] = f.ring[(f.at+i)%len(f.ring)]
	}
	f.ring, f.at = larger, 0
}

// Front is the first envelope, nil if there is none.
func (f *Queue) Front() *mailbox.Envelope {
	if f.n == 0 {
		return nil
	}
	return f.ring[f.at]
}

// Pop is Front, and takes it out.
func (f *Queue) Pop() *mailbox.Envelope {
	if f.n == 0 {
		return nil
	}
	e := f.ring[f.at]
	f.ring[f.at] = nil
	f.at = (f.at + 1) % len(f.ring)
	f.bytes -= int64(e.Size())
	if f.n--; f.n == 0 && len(f.ring) > 1024 {
		f.ring, f.at = nil, 0 // release a long ring
	}
	return e
}

// Room reports whether one more fits within limits.
func (f *Queue) Room(e *mailbox.Envelope, l mailbox.Limits) bool {
	return f.n < l.Messages && f.bytes+int64(e.Size()) <= l.Bytes
}
