package testkit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// door stands between an actor and the senders to it.
type door struct {
	host.HostedMailbox
	f   *faults
	ref host.Ref
	to  place

	mu     sync.Mutex
	host   host.MailboxHost
	late   []*host.Envelope // delayed
	passed []*host.Envelope // to be overtaken by the next one
	closed bool
}

// waitingDoor is a door before a mailbox in which senders may wait. A waiting message has met its faults before.
type waitingDoor struct {
	*door
	inner host.WaitingMailbox
}

// PushWait implements host.WaitingMailbox.
func (d *waitingDoor) PushWait(ctx context.Context, e *host.Envelope) error {
	return d.inner.PushWait(ctx, e)
}

// Wait implements host.WaitingMailbox.
func (d *waitingDoor) Wait() time.Duration { return d.inner.Wait() }

// mailbox makes the mailbox of an actor, or a door before it.
func (f *faults) mailbox(ref host.Ref, next func(host.MailboxLimits) host.Mailbox) func(host.MailboxLimits) host.Mailbox {
	return func(l host.MailboxLimits) host.Mailbox {
		var inner host.Mailbox
		if next == nil {
			inner = usual(l)
		} else {
			inner = next(l)
		}
		switch m := inner.(type) {
		case *probeBox:
			return inner
		case host.HostedMailbox:
			d := &door{HostedMailbox: m, f: f, ref: ref, to: place{ref.UID(), elementsOf(ref.Path())}}
			f.mu.Lock()
			f.doors = append(f.doors, d)
			f.mu.Unlock()
			if w, ok := inner.(host.WaitingMailbox); ok {
				return &waitingDoor{d, w}
			}
			return d
		}
		return inner
	}
}

// Hosted implements host.HostedMailbox.
func (d *door) Hosted(h host.MailboxHost) {
	d.host = h
	d.HostedMailbox.Hosted(h)
}

// Push implements host.Mailbox.
func (d *door) Push(e *host.Envelope) error {
	if !host.IsMail(e) {
		return d.HostedMailbox.Push(e)
	}
	hit := d.f.of(false, d.to, pathOf(e.SenderPath), host.Message{Kind: e.Kind, Correlation: e.Correlation, Headers: e.Headers, Payload: e.Payload})
	if hit == nil {
		err := d.HostedMailbox.Push(e)
		if err == nil {
			d.letPassed()
		}
		return err
	}
	if d.isClosed() {
		return host.ErrStopped
	}
	switch hit.act {
	case drop:
		e.Free()
	case delay:
		d.keep(&d.late, e, hit.delay)
	case reorder:
		wait := time.Duration(0)
		if d.f.k.virtual == nil {
			wait = 10 * time.Millisecond
		}
		d.keep(&d.passed, e, wait)
	case duplicate:
		twin := copyOf(e)
		if err := d.HostedMailbox.Push(e); err != nil {
			return err
		}
		d.push(twin)
		d.letPassed()
	}
	return nil
}

// keep holds a message back, for a time or (0) until it is released.
func (d *door) keep(list *[]*host.Envelope, e *host.Envelope, wait time.Duration) {
	d.mu.Lock()
	*list = append(*list, e)
	d.mu.Unlock()
	if wait <= 0 && list == &d.passed {
		return
	}
	d.f.k.clock.AfterFunc(wait, func() {
		d.mu.Lock()
		i := slices.Index(*list, e)
		if i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
		d.mu.Unlock()
		if i >= 0 {
			d.push(e)
		}
	})
}

// letPassed delivers what was overtaken, and reports whether there was anything.
func (d *door) letPassed() bool {
	d.mu.Lock()
	es := d.passed
	d.passed = nil
	d.mu.Unlock()
	for _, e := range es {
		d.push(e)
	}
	return len(es) > 0
}

// push delivers a message that was held back, or the second copy of a duplicated one.
func (d *door) push(e *host.Envelope) {
	if d.HostedMailbox.Push(e) != nil {
		d.host.Dropped(e, host.DeadDropped)
		return
	}
	d.f.k.sys.Wake(d.ref)
}

func (d *door) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// Close implements host.Mailbox.
func (d *door) Close(drain func(*host.Envelope)) {
	d.mu.Lock()
	d.closed = true
	es := append(d.passed, d.late...)
	d.passed, d.late = nil, nil
	d.mu.Unlock()
	d.HostedMailbox.Close(drain)
	for _, e := range es {
		drain(e)
	}
	d.f.mu.Lock()
	d.f.doors = slices.DeleteFunc(slices.Clone(d.f.doors), func(x *door) bool { return x == d })
	d.f.mu.Unlock()
}

// pathOf is the path of a ref's text, without scheme and system.
func pathOf(text string) string {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return rest
}
