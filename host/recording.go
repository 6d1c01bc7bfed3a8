package host

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// What a recorder is told besides turns: the messages that mailboxes accept, the signals and orders that actors
// deal with, and the lives that begin and end.

// WithRecorder has r hear of all that actors take in, and lets no turn take effect before r has answered; see
// [record.Recorder]. The guardians are not recorded but for what they decide. Without it nothing is paid for.
// A recorded actor's mailbox takes a lock for each message, and senders from Go do not wait for room in it
// (host/mailbox.Block answers at once).
func (c Config) WithRecorder(r record.Recorder) Config {
	c.recorder, c.commit = r, r.Turn
	c.gate, _ = r.(record.Gate)
	c.direct, _ = r.(record.Direct)
	return c
}

// tellRecorder notes r, unless the record is one that is being repeated.
func tellRecorder(s *System, r *record.Record) {
	if p := s.repeats.Load(); p == nil || p.over.Load() {
		s.cfg.recorder.Note(r)
	}
}

// noteLife tells the recorder of a change of an actor's life.
func noteLife(a *actor, k record.Kind) {
	if !a.durable || a.parent == nil {
		return
	}
	l := &record.Life{Path: a.path, Type: a.props.typ, Args: a.args, Parent: a.above, Incarnation: a.Incarnation()}
	if k == record.Began && a.props.module != nil {
		l.Code = born(a.behaviour.(*guest))
	}
	if k == record.Began || k == record.Changed {
		l.Limits = &a.rules.Load().limits
	}
	tellRecorder(a.sys, &record.Record{Kind: k, Actor: a.uid, Time: a.sys.time.Now(), Life: l})
}

// uidOfAny is the ref of a child in a system message.
func uidOfAny(child any) abi.Ref { return child.(*actor).uid }

// noteSignal tells the recorder of a system message that the actor is about to handle.
func noteSignal(a *actor, m *sysmail.Msg) {
	switch {
	case m.How.Has(sysmail.Noted), a.parent == nil && m.Kind == sysmail.Start:
		return
	case a.parent == nil && a.sys.durable != nil && !concernsDurable(a, m):
		return
	}
	if s, ok := sysmail.Recorded(m, uidOfAny); ok {
		tellRecorder(a.sys, &record.Record{Kind: record.Took, Actor: a.uid, Time: a.Now().UnixNano(), Signal: &s})
	}
}

// noteControl tells the recorder of a message that the host handles instead of the actor.
func noteControl(a *actor, e *mailbox.Envelope) {
	tellRecorder(a.sys, &record.Record{Kind: record.Took, Actor: a.uid, Time: a.Now().UnixNano(), Signal: &record.Signal{What: "message", Position: e.Position}})
}

// popControl takes the message out of the mailbox.
func popControl(a *actor, e *mailbox.Envelope) {
	if a.box.Pop(); a.durable && (a.parent != nil || a.sys.durable == nil) {
		noteControl(a, e)
	}
}

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

// newRecordedBox is the recorded mailbox of an actor, which notes it.
func newRecordedBox(a *actor, inner Mailbox) *recordedBox {
	b := &recordedBox{a: a, inner: inner}
	b.record = record.Record{Kind: record.Accepted, Actor: a.uid, Message: &b.message}
	if a.sealed == nil {
		a.sealed = newSealed(a)
	}
	a.sealed.box = b
	return b
}

// openBox makes the mailbox of an actor.
func openBox(a *actor, make func(MailboxLimits) Mailbox, l MailboxLimits) {
	through := a.sys.cfg.mailboxes
	recorded := a.durable && a.parent != nil
	if recorded && make == nil && through == nil {
		a.box.Init(nil, l, &a.account)
		b := newRecordedBox(a, box.Plain{Mailbox: &a.box.Usual})
		b.usual = true
		a.box.Before(b)
		return
	}
	if recorded {
		own := make
		make = func(l MailboxLimits) Mailbox {
			if own != nil {
				return newRecordedBox(a, own(l))
			}
			return newRecordedBox(a, box.NewPlain(l))
		}
	}
	if through != nil {
		make = through(a.ref(), make)
	}
	a.box.Init(make, l, &a.account)
	introduce(a)
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
	err := b.admit(e)
	switch {
	case err != nil:
	case b.usual:
		if err = b.a.box.Reserve(e); err == nil {
			b.tell(e, at)
			err = b.a.box.Usual.Enter(e) // nothing closes it meanwhile: Close takes the lock
		}
	default:
		e.Position = b.position + 1
		if err = b.inner.Push(e); err == nil {
			b.tell(e, at)
		} else {
			e.Position = 0
		}
	}
	b.mu.Unlock()
	return err
}

// pushAt pushes what a recorded turn has sent at a time.
func pushAt(a *actor, e *Envelope, at int64) error {
	b := recordedOf(a)
	if b == nil || a.box.Other != b {
		return a.box.Push(e)
	}
	if err := b.pushAt(e, at); err != nil {
		return a.box.Which(err)
	}
	return nil
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
		b.tell(e, 0)
		return b.a.box.ForceIn(e) // see Push
	}
	if e.Position = b.position + 1; !b.inner.Force(e) {
		return false
	}
	b.tell(e, 0)
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

// tell numbers an envelope that nobody takes out before, and tells the recorder of it. at is as for pushAt.
func (b *recordedBox) tell(e *Envelope, at int64) {
	b.position++
	e.Position = b.position
	s := b.a.sys
	if at == 0 {
		at = s.time.Now()
	}
	if s.cfg.direct != nil {
		s.cfg.direct.Accepted(b.a.uid, at, e)
		return
	}
	b.record.Time = at
	b.message.Set(e)
	s.cfg.recorder.Note(&b.record)
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

// systemMessage is a recorded signal as it comes from outside: an operator, an alarm, an actor that is not
// rebuilt. It is nil for what cannot come from there.
func systemMessage(a *actor, s *record.Signal) *sysmail.Msg {
	m := sysmail.FromOutside(s)
	switch {
	case m == nil:
	case m.Kind == sysmail.RestartDue:
		if a.restart != nil {
			a.restart.alarm.Stop()
		}
		m.Due = a.restart
	case m.Kind == sysmail.GraceOver:
		m.Due = a.gate.Grace()
	}
	return m
}
