package host

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
)

// recordedBox is the mailbox of a recorded actor. Its lock makes the order of the records that of the mailbox. Before the actor's own
// usual mailbox it stands only where messages come in: the consumer calls that directly, and without the lock, as it hands out a message
// only when the recorder has been told of it. Another mailbox is called through this one.
type recordedBox struct {
	a     *actor
	inner Mailbox
	usual bool // inner is the actor's own usual mailbox

	mu       sync.Mutex
	position uint64
	record   record.Record
	message  record.Message
}

// recordedOf is the recorded mailbox of an actor; nil: it has none.
func recordedOf(a *actor) (b *recordedBox) {
	if a.sealed != nil {
		b, _ = a.sealed.box.(*recordedBox)
	}
	return b
}

// Push implements Mailbox.
func (b *recordedBox) Push(e *Envelope) error { return b.pushAt(e, 0) }

// pushAt is Push of what a recorded turn has sent, at a time; 0: of anything, now.
func (b *recordedBox) pushAt(e *Envelope, at int64) error {
	b.mu.Lock()
	if p := b.a.sys.repeats.Load(); p != nil && p.fly(b.a, e) {
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
func (b *recordedBox) enter(e *Envelope, at int64) error {
	m := &b.a.box
	if err := m.Reserve(e); err != nil {
		return err
	}
	if err := b.tell(e, at, false); err != nil {
		m.Usual.Unreserve(e)
		return err
	}
	return m.Usual.Enter(e) // nothing closes it meanwhile: Close takes the lock
}

// pass is pushAt into another mailbox, from which nobody takes before the lock is given up.
func (b *recordedBox) pass(e *Envelope, at int64) error {
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

// pushAt pushes what a recorded turn has sent at a time.
func pushAt(a *actor, e *Envelope, at int64) error {
	b := recordedOf(a)
	if b == nil || !b.usual {
		return a.box.Push(e)
	}
	if err := b.pushAt(e, at); err != nil {
		return a.box.Which(err)
	}
	return nil
}

// fly takes a message over that is sent while p rebuilds the system; false if it does not, or not any more.
func (p *repeats) fly(to *actor, e *Envelope) bool {
	if p == nil {
		return false
	}
	by := p.actor.Load()
	switch e.Kind {
	case abi.KindTimer, abi.KindReceiveTimeout, abi.KindAskTimeout:
		by = nil // an alarm that was due while the process was away, and not something that is sent in a turn
	}
	return p.flights.Begin(rebuild.Flight[*actor]{To: to, By: by, E: e})
}

// Force implements Mailbox.
func (b *recordedBox) Force(e *Envelope) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.a.sys.repeats.Load().fly(b.a, e) {
		return true
	}
	if b.usual {
		if b.a.box.Usual.Closed() {
			return false
		}
		_ = b.tell(e, 0, true)
		return b.a.box.ForceIn(e) // see enter
	}
	if e.Position = b.position + 1; !b.inner.Force(e) {
		return false
	}
	_ = b.tell(e, 0, true)
	return true
}

// limit sets the limits of a usual mailbox.
func (b *recordedBox) limit(l MailboxLimits) {
	if b.usual {
		b.a.box.Limit(l)
	} else if m, ok := b.inner.(box.Plain); ok {
		m.SetLimits(l)
	}
}

// admit asks the recorder whether it has room for a message.
func (b *recordedBox) admit(e *Envelope) error {
	if g := b.a.sys.cfg.gate; g != nil {
		if err := g.Admit(len(e.Payload) + len(e.Headers)); err != nil {
			return errs.NotAdmitted{Err: err}
		}
	}
	return nil
}

// tell numbers an envelope that nobody takes out before, and tells the recorder of it, which may have no room for it; must says that the
// mailbox has it in any case, and then there is no error. at is as for pushAt.
func (b *recordedBox) tell(e *Envelope, at int64, must bool) (err error) {
	s := b.a.sys
	if at == 0 {
		at = s.time.Now()
	}
	e.Position = b.position + 1
	if d := s.cfg.direct; d != nil {
		if err = d.Accept(b.a.uid, at, e, must); err != nil {
			err = errs.NotAdmitted{Err: err}
		}
	} else {
		if !must {
			err = b.admit(e)
		}
		if err == nil {
			b.record.Time = at
			b.message.Set(e)
			s.cfg.recorder.Note(&b.record)
		}
	}
	if err != nil {
		e.Position = 0
		return err
	}
	b.position++
	return nil
}

// Pop implements Mailbox.
func (b *recordedBox) Pop() *Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inner.Pop()
}

// Peek implements Mailbox.
func (b *recordedBox) Peek() *Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inner.Peek()
}

// PushFront implements Mailbox.
func (b *recordedBox) PushFront(es ...*Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inner.PushFront(es...)
}

// Close implements Mailbox. What is drained may lead to messages for the actor itself, so it happens without the lock.
func (b *recordedBox) Close(drain func(*Envelope)) {
	var left []*Envelope
	b.mu.Lock()
	b.inner.Close(func(e *Envelope) { left = append(left, e) })
	b.mu.Unlock()
	for _, e := range left {
		drain(e)
	}
}

// Len implements Mailbox.
func (b *recordedBox) Len() int { return b.inner.Len() }

// Bytes implements Mailbox.
func (b *recordedBox) Bytes() int64 { return b.inner.Bytes() }

// Empty implements Mailbox.
func (b *recordedBox) Empty() bool { return b.inner.Empty() }
