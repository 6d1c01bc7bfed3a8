// Package outside has the receivers that have a ref and are no actors: asks from Go, inboxes, reply handles, functions that are
// asked, and those that wait for an actor's end. What they need of the system is a [Kernel].
package outside

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/stray"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Kernel is the system as those outside see it. Any goroutine may call it, without a lock.
type Kernel interface {
	// Deliver sends an envelope, which the caller gives up in any case.
	Deliver(to abi.Ref, e *mailbox.Envelope) error
	// Question is Deliver for an ask. It notes how many turns the actor had until then. If room is not nil, it may wait for
	// room in the mailbox until room ends.
	Question(to abi.Ref, e *mailbox.Envelope, room context.Context, turns *uint64) error
	// Signal reports false if the ref has no receiver.
	Signal(to abi.Ref, m signal.Signal) bool
	// Identify asks all actors at a path who they are, unless expect is false for one. nobody: there is none at a path
	// without patterns.
	Identify(path string, by abi.Ref, correlation uint64, expect func(abi.Ref) bool) (asked int, nobody bool)
	// RefOf is the full ref of a living actor; any other has the path of those outside.
	RefOf(uid abi.Ref) ref.Ref
	// Look says what an actor of this node is doing; false if there is none.
	Look(uid abi.Ref) (Doing, bool)
	// Incarnation is the present one of an actor of this node.
	Incarnation(uid abi.Ref) (n uint64, ok bool)
	// Attached is the attachment of the messages of an actor of this node.
	Attached(uid abi.Ref) *mailbox.Attached
	// Letter makes a dead letter of a message for an actor of this node.
	Letter(reason event.DeadReason, to abi.Ref, e *mailbox.Envelope)
	// Begin puts a message into the trace of ctx; nil: no span of it is recorded. Sent ends the span.
	Begin(ctx context.Context, kind span.Kind, to ref.Ref, e *mailbox.Envelope) span.Span
	Sent(s span.Span, err error)
	// In is a context within the trace that the headers name.
	In(parent context.Context, headers []byte) context.Context
	// Values is the attachment with the values of a context that asks carry.
	Values(ctx context.Context) *mailbox.Attached
	// Clock is the system's clock.
	Clock() clock.Clock
	// Random are bytes that follow from the system's secret, an actor and a number.
	Random(uid abi.Ref, n uint64) []byte
}

// Doing is what an actor is doing.
type Doing struct {
	Info    view.Info
	Since   int64 // of the present spell, ns since 1970; 0: not known
	Running bool
	Turns   uint64
}

// Config is what does not change while the system lives.
type Config struct {
	Key     abi.RefKey // of the refs
	Node    uint16
	Path    string        // of all of them
	Timeout time.Duration // of asks without a deadline
	Traced  bool          // there is a tracer
	Carries bool          // asks carry values of their contexts
	Time    *clock.Nanos
	Recent  *stray.Recents  // refs that were given up
	Done    <-chan struct{} // closed at the end of the system
}

// Table has those of a system.
type Table struct {
	Config
	kernel   Kernel
	count    atomic.Uint64
	retried  atomic.Uint64 // questions that may be asked again
	shards   [shards]shard
	ends     [shards]endsShard
	sweep    sweeper
	closed   atomic.Bool // the system has ended: nobody answers any more
	promises sync.Pool
}

// DefaultTimeout is how long an ask waits if its context has no deadline.
const DefaultTimeout = time.Minute

const shards = 16

type shard struct {
	mu   sync.Mutex
	open map[abi.Ref]Receiver
	_    [48]byte // shards do not share a cache line
}

// Receiver is one of them. Its methods are called under the lock of its shard, so they
// must be short and must not call back.
type Receiver interface {
	// Take takes an envelope, or says why not; over: the receiver is done with.
	Take(t *Table, e *mailbox.Envelope) (reason event.DeadReason, err error, over bool)
	// Fail says that there will be no answer to an ask that was sent to target.
	Fail(correlation uint64, target abi.Ref, err error) (over bool)
	// Delegate adds to as an answerer of what from was asked.
	Delegate(correlation uint64, from, to abi.Ref)
	// Observe registers a reply handle to be told when the ask is over; false if it is over already.
	Observe(correlation uint64, handle abi.Ref) bool
	// Ended says that an actor has ended, or (0) that the ask of a reply handle is over.
	Ended(of abi.Ref, reason string) (over bool)
	// Expire says what time it is. swept: it waits until a sweep finds that its time is over.
	Expire(now int64) (over, swept bool)
	// Shut says that the system has ended.
	Shut() (over bool)
	// Left is called when it has been removed, once and without the lock. It may be reused afterwards. It returns the
	// handles to be notified that it is over.
	Left() []abi.Ref
}

// Deaf is a receiver that takes nothing: what others embed.
type Deaf struct{}

func (Deaf) Take(*Table, *mailbox.Envelope) (event.DeadReason, error, bool) {
	return event.DeadUnknown, errs.ErrUnknown, false
}
func (Deaf) Fail(uint64, abi.Ref, error) bool  { return false }
func (Deaf) Delegate(uint64, abi.Ref, abi.Ref) {}
func (Deaf) Observe(uint64, abi.Ref) bool      { return false }
func (Deaf) Ended(abi.Ref, string) bool        { return false }
func (Deaf) Expire(int64) (over, swept bool)   { return false, false }
func (Deaf) Shut() bool                        { return false }
func (Deaf) Left() []abi.Ref                   { return nil }

// Init prepares an empty table.
func (t *Table) Init(k Kernel, c Config) { t.kernel, t.Config = k, c }

func (t *Table) shard(uid abi.Ref) *shard { return &t.shards[uint64(uid)%shards] }

// NewRef is a ref for a receiver.
func (t *Table) NewRef() abi.Ref { return abi.ChildRef(t.Key, t.Node, t.count.Add(1)) }

// Put adds a receiver.
func (t *Table) Put(uid abi.Ref, x Receiver) {
	sh := t.shard(uid)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.open == nil {
		sh.open = map[abi.Ref]Receiver{}
	}
	sh.open[uid] = x
}

// Remove removes a receiver; false if it had gone.
func (t *Table) Remove(uid abi.Ref) bool {
	sh := t.shard(uid)
	sh.mu.Lock()
	x := sh.open[uid]
	delete(sh.open, uid)
	sh.mu.Unlock()
	if x == nil {
		return false
	}
	t.abandoned(x.Left())
	return true
}

// giveUp is Remove for an ask that is given up: an answer that comes later is no guess.
func (t *Table) giveUp(uid abi.Ref) bool {
	if !t.Remove(uid) {
		return false
	}
	t.Recent.Add(uid, "")
	return true
}

// abandoned tells handles that their ask is over.
func (t *Table) abandoned(handles []abi.Ref) {
	for _, w := range handles {
		t.kernel.Signal(w, signal.Signal{Kind: signal.Abandoned})
	}
}

// with calls f for a receiver under its lock, and removes it if f says that it is
// over; false if there is none.
func (t *Table) with(uid abi.Ref, f func(Receiver) (over bool)) bool {
	if uid == 0 {
		return false
	}
	sh := t.shard(uid)
	sh.mu.Lock()
	x := sh.open[uid]
	over := x != nil && f(x)
	if over {
		delete(sh.open, uid)
	}
	sh.mu.Unlock()
	if over {
		t.abandoned(x.Left())
	} else if i, ok := x.(*inboxDoor); ok {
		t.abandoned(i.over())
	}
	return x != nil
}

// Has reports whether a receiver has a ref.
func (t *Table) Has(uid abi.Ref) bool {
	return t.with(uid, func(Receiver) (over bool) { return false })
}

// GaveUp reports whether the asker of a question has given up, or has meant another incarnation of its receiver than this
// one. An ask from Go is looked up: it may have been given up early.
func (t *Table) GaveUp(e *mailbox.Envelope, incarnation uint64) bool {
	if e.Flags&mark.Due != 0 && t.Time.Now() >= e.Due || e.Flags&mark.Incarnation != 0 && uint64(e.Due) != incarnation {
		return true
	}
	return e.Flags&mark.Promised != 0 && !t.Has(e.Sender)
}

// Resolve gives an envelope to the receiver that has the ref, if there is one.
func (t *Table) Resolve(uid abi.Ref, e *mailbox.Envelope) (found bool, reason event.DeadReason, err error) {
	found = t.with(uid, func(x Receiver) (over bool) {
		reason, err, over = x.Take(t, e)
		return over
	})
	return found, reason, err
}

// Signal hands a signal to a receiver; false if there is none.
func (t *Table) Signal(to abi.Ref, m *signal.Signal) (found bool) {
	switch m.Kind {
	case signal.Terminated:
		return t.with(to, func(x Receiver) bool { return x.Ended(m.From, m.Reason) })
	case signal.Abandoned:
		return t.with(to, func(x Receiver) bool { return x.Ended(0, "") })
	case signal.Unanswered:
		return t.with(to, func(x Receiver) bool { return x.Fail(m.Correlation, m.From, m.Err) })
	case signal.Delegate:
		return t.with(to, func(x Receiver) bool { x.Delegate(m.Correlation, m.From, m.Other); return false })
	case signal.Observe:
		t.with(to, func(x Receiver) bool { found = x.Observe(m.Correlation, m.From); return false })
	}
	return found
}

// message is what an envelope brings to a receiver.
func (t *Table) message(e *mailbox.Envelope) message.Message {
	m := message.Message{Kind: e.Kind, Correlation: e.Correlation, Payload: append([]byte(nil), e.Payload...)}
	if e.SenderPath != "" {
		m.Sender = ref.Of(e.Sender, e.SenderPath)
	} else {
		m.Sender = t.kernel.RefOf(e.Sender)
	}
	if len(e.Headers) > 0 {
		m.Headers = append([]byte(nil), e.Headers...)
	}
	return m
}

// sweeper ends asks without a deadline of their own, so that none waits for ever.
type sweeper struct {
	armed atomic.Bool // a sweep that sees asks entered now is due, or the system ends
	mu    sync.Mutex
	timer clock.Timer
	ended bool
}

// arm schedules a sweep of the asks, if none is scheduled. It is called when an ask
// was entered.
func (t *Table) arm() {
	w := &t.sweep
	if w.armed.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed.Store(true)
	if w.timer == nil && !w.ended {
		w.timer = t.kernel.Clock().AfterFunc(t.Timeout/4, t.expire)
	}
}

// expire ends the asks that have waited for too long.
func (t *Table) expire() {
	now := t.Time.Now()
	waiting := false
	t.sweep.mu.Lock()
	t.sweep.timer = nil
	t.sweep.armed.Store(false) // before the look: an ask that comes meanwhile is seen, or arms
	t.sweep.mu.Unlock()
	t.each(func(x Receiver) bool {
		over, swept := x.Expire(now)
		waiting = waiting || swept
		return over
	})
	if waiting {
		t.arm()
	}
}

// Close ends all that wait: nobody is left to answer or to ask, and nobody looks at their time any more. Who
// is entered meanwhile is seen here, or sees that it is too late.
func (t *Table) Close() {
	t.closed.Store(true)
	w := &t.sweep
	w.mu.Lock()
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	t.each(Receiver.Shut)
}

// each calls f for all receivers, and removes those of which it says that they are over.
func (t *Table) each(f func(Receiver) (over bool)) {
	for i := range t.shards {
		sh := &t.shards[i]
		var gone []Receiver
		sh.mu.Lock()
		for uid, x := range sh.open {
			if f(x) {
				delete(sh.open, uid)
				gone = append(gone, x)
			}
		}
		sh.mu.Unlock()
		for _, x := range gone {
			t.abandoned(x.Left())
		}
	}
}

// Open are all receivers.
func (t *Table) Open() (open []Receiver) {
	t.each(func(x Receiver) bool { open = append(open, x); return false })
	return open
}
