package throttle

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/fifo"
)

// gate is the mailbox of a throttler: the queue itself, so what waits is bounded, on the actor's account
// and a dead letter at the end as in every mailbox. While it is shut it shows no message that somebody
// has sent, except orders to the throttler; the host's own envelopes do not wait.
type gate struct {
	limits host.MailboxLimits
	state  // of the actor, in its turns

	mu     sync.Mutex
	mail   fifo.Queue
	first  fifo.Queue // what does not wait
	shown  *fifo.Queue
	shut   bool
	closed bool
}

// state is what a throttler keeps over its restarts.
type state struct {
	target host.Ref
	meter  Meter
	paused bool
}

// set shuts or opens the gate. The actor calls it within its turns.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
}

// waiting is how many messages wait for vouchers.
func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mail.Len()
}

// urgent reports whether an envelope needs no voucher.
func urgent(e *host.Envelope) bool {
	switch e.Kind {
	case abi.KindMessage:
		_, order := abi.FindHeader(e.Headers, Header)
		return order && host.IsMail(e)
	case abi.KindTimer, abi.KindTerminated, abi.KindReceiveTimeout:
		return true
	}
	return false
}

func (g *gate) put(e *host.Envelope) {
	if urgent(e) {
		g.first.Push(e)
	} else {
		g.mail.Push(e)
	}
}

// Push implements host.Mailbox.
func (g *gate) Push(e *host.Envelope) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return host.ErrStopped
	case g.mail.Len()+g.first.Len() >= g.limits.Messages, g.mail.Bytes()+g.first.Bytes()+int64(e.Size()) > g.limits.Bytes:
		return host.ErrMailboxFull
	}
	g.put(e)
	return nil
}

// Force implements host.Mailbox.
func (g *gate) Force(e *host.Envelope) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.put(e)
	}
	return !g.closed
}

// Peek implements host.Mailbox.
func (g *gate) Peek() *host.Envelope {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.peek()
}

func (g *gate) peek() *host.Envelope {
	if g.shown == nil {
		if e := g.mail.Front(); g.first.Len() > 0 {
			g.shown = &g.first
		} else if e != nil && (!g.shut || !host.IsMail(e)) {
			g.shown = &g.mail
		} else {
			return nil
		}
	}
	return g.shown.Front()
}

// Pop implements host.Mailbox.
func (g *gate) Pop() *host.Envelope {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peek() == nil {
		return nil
	}
	e := g.shown.Pop()
	g.shown = nil
	return e
}

// PushFront implements host.Mailbox.
func (g *gate) PushFront(es ...*host.Envelope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := len(es) - 1; i >= 0; i-- {
		if urgent(es[i]) {
			g.first.PushFront(es[i])
		} else {
			g.mail.PushFront(es[i])
		}
	}
	g.shown = nil
}

// Close implements host.Mailbox.
func (g *gate) Close(drain func(*host.Envelope)) {
	g.mu.Lock()
	var left []*host.Envelope
	g.closed, g.shown = true, nil
	for _, f := range []*fifo.Queue{&g.first, &g.mail} {
		for e := f.Pop(); e != nil; e = f.Pop() {
			left = append(left, e)
		}
	}
	g.mu.Unlock()
	for _, e := range left {
		drain(e)
	}
}

// Len implements host.Mailbox.
func (g *gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mail.Len() + g.first.Len()
}

// Bytes implements host.Mailbox.
func (g *gate) Bytes() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mail.Bytes() + g.first.Bytes()
}

// Empty implements host.Mailbox: nothing would be shown.
func (g *gate) Empty() bool { return g.Peek() == nil }
