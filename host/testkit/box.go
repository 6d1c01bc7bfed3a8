package testkit

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
)

// probeBox is the mailbox of a probe. The test's orders come through it as messages, so that
// they are carried out in turns; it keeps a copy of each message, so that the test can answer it later.
type probeBox struct {
	host.HostedMailbox

	mu     sync.Mutex
	orders map[*host.Envelope]func(*host.Context)
	copied *host.Envelope // of the message whose turn runs
	now    func(*host.Context)
}

func (p *Probe) mailbox(l host.MailboxLimits) host.Mailbox {
	p.box = &probeBox{HostedMailbox: usual(l), orders: map[*host.Envelope]func(*host.Context){}}
	return p.box
}

// usual is a mailbox like that of other actors, of a kind that other mailboxes can wrap.
func usual(l host.MailboxLimits) host.HostedMailbox {
	return mailbox.New(mailbox.Bounded).Make(l).(host.HostedMailbox)
}

// Pop implements host.Mailbox.
func (b *probeBox) Pop() *host.Envelope {
	e := b.HostedMailbox.Pop()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.copied, b.now = nil, nil
	if e == nil {
		return nil
	}
	if b.now = b.orders[e]; b.now != nil {
		delete(b.orders, e)
	} else if e.Kind == abi.KindMessage {
		b.copied = copyOf(e)
	}
	return e
}

// taken is what the running turn is about: a message, with a copy of it, or an order.
func (b *probeBox) taken() (e *host.Envelope, order func(*host.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.copied, b.now
}

// order enters an order, as a message e.
func (b *probeBox) order(e *host.Envelope, f func(*host.Context)) error {
	if e == nil {
		e = &host.Envelope{Kind: abi.KindMessage}
		e.SetPayload([]byte{0xf6})
	}
	b.mu.Lock()
	b.orders[e] = f
	b.mu.Unlock()
	err := b.Push(e)
	if err != nil {
		b.mu.Lock()
		delete(b.orders, e)
		b.mu.Unlock()
	}
	return err
}

// copyOf is a copy of a message.
func copyOf(e *host.Envelope) *host.Envelope {
	c := &host.Envelope{Kind: e.Kind, Due: e.Due, Sender: e.Sender, SenderPath: e.SenderPath, Correlation: e.Correlation, Attached: e.Attached}
	c.SetPayload(e.Payload)
	if len(e.Headers) > 0 {
		c.SetHeaders(e.Headers)
	}
	return c
}
