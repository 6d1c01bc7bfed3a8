package outside

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Inbox is a ref and a mailbox for code that is not an actor: it sends under its own ref,
// receives whatever it is sent, and watches. All methods may be called concurrently.
type Inbox struct {
	t    *Table
	ref  ref.Ref
	size int

	mu      sync.Mutex
	queue   []message.Message
	asked   map[uint64]*asks.Answerers // who may answer, by correlation
	waiting map[uint64][]abi.Ref       // handles to be told when such an ask is over
	told    []abi.Ref                  // handles that are to be told now
	watched map[abi.Ref]ref.Ref
	ready   chan struct{} // holds a token while the queue is not empty
	closed  bool
	done    chan struct{} // closed with it
}

// DefaultInbox is how many messages an inbox keeps unless it is told otherwise.
const DefaultInbox = 1000

// NewInbox makes an inbox for size messages, DefaultInbox if it is not above 0.
func (t *Table) NewInbox(size int) *Inbox {
	if size <= 0 {
		size = DefaultInbox
	}
	i := &Inbox{t: t, size: size, asked: map[uint64]*asks.Answerers{}, watched: map[abi.Ref]ref.Ref{}, ready: make(chan struct{}, 1), done: make(chan struct{})}
	i.ref = ref.Of(t.NewRef(), t.Path)
	t.Put(i.ref.UID(), (*inboxDoor)(i))
	if t.closed.Load() && t.Remove(i.ref.UID()) {
		(*inboxDoor)(i).Shut()
	}
	return i
}

// Ref is the inbox's ref.
func (i *Inbox) Ref() ref.Ref { return i.ref }

// Tell sends a message from the inbox.
func (i *Inbox) Tell(to ref.Ref, v any) error { return i.Ask(to, v, 0) }

// Ask is Tell with a correlation, which the answer will have; see [System.Ask] for how
// an ask can end. There is no timeout. It fails with ErrLimit while
// DefaultInbox asks wait, or as many as the inbox holds messages if those are more.
func (i *Inbox) Ask(to ref.Ref, v any, correlation uint64) error {
	e, err := message.Envelope(v)
	if err != nil {
		return err
	}
	if correlation != 0 && !i.expect(correlation, to.UID()) {
		e.Free()
		return errs.ErrLimit
	}
	e.Sender, e.Correlation, e.SenderPath = i.ref.UID(), correlation, i.ref.URI()
	s := i.t.kernel.Begin(context.Background(), span.Send, to, e)
	err = i.t.kernel.Deliver(to.UID(), e)
	i.t.kernel.Sent(s, err)
	return err
}

// expect lets ref answer; false if too many asks wait.
func (i *Inbox) expect(correlation uint64, ref abi.Ref) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.asked == nil {
		return true // closed: it will be told elsewhere
	}
	a := i.asked[correlation]
	if a == nil {
		if len(i.asked) >= max(i.size, DefaultInbox) {
			return false
		}
		a = &asks.Answerers{}
		i.asked[correlation] = a
	}
	return a.Add(ref)
}

// Forget gives up waiting for the answers with a correlation.
func (i *Inbox) Forget(correlation uint64) {
	i.mu.Lock()
	i.answered(correlation)
	i.mu.Unlock()
	i.t.abandoned((*inboxDoor)(i).over())
}

// answered ends an ask. The caller holds mu, and calls tell after releasing it.
func (i *Inbox) answered(correlation uint64) {
	delete(i.asked, correlation)
	i.told = append(i.told, i.waiting[correlation]...)
	delete(i.waiting, correlation)
}

// Receive takes the next message, and waits for one if there is none. The error is
// the context's, wrapped in ErrTimeout, or ErrClosed when the inbox was closed or the system has ended.
func (i *Inbox) Receive(ctx context.Context) (message.Message, error) {
	for {
		if m, ok := i.TryReceive(); ok {
			return m, nil
		}
		select {
		case <-i.ready:
		case <-i.done: // what has come before is received still
			if m, ok := i.TryReceive(); ok {
				return m, nil
			}
			return message.Message{}, errs.ErrClosed
		case <-ctx.Done():
			return message.Message{}, fmt.Errorf("%w: %w", errs.ErrTimeout, ctx.Err())
		}
	}
}

// TryReceive takes the next message if there is one.
func (i *Inbox) TryReceive() (message.Message, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queue) == 0 {
		return message.Message{}, false
	}
	m := i.queue[0]
	i.queue[0] = message.Message{}
	i.queue = i.queue[1:]
	if len(i.queue) > 0 {
		i.wake() // for another receiver
	}
	return m, true
}

// Watch makes the end of an actor known by a Message of KindTerminated whose
// Sender is that actor, after everything that it has sent. It may have ended already.
func (i *Inbox) Watch(to ref.Ref) {
	i.mu.Lock()
	if i.watched == nil {
		i.mu.Unlock()
		return // closed
	}
	i.watched[to.UID()] = to
	i.mu.Unlock()
	if !i.t.kernel.Signal(to.UID(), signal.Signal{Kind: signal.Watch, From: i.ref.UID()}) {
		i.ended(to.UID(), "unknown") // if the end of the system has taken it out already
	}
}

// Unwatch ends a watch, even if its message waits already.
func (i *Inbox) Unwatch(to ref.Ref) {
	i.forgetEnd(to.UID())
	i.t.kernel.Signal(to.UID(), signal.Signal{Kind: signal.Unwatch, From: i.ref.UID()})
}

// forgetEnd drops a watch, and its message.
func (i *Inbox) forgetEnd(uid abi.Ref) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.watched, uid)
	for k, m := range i.queue {
		if m.Kind == abi.KindTerminated && m.Sender.UID() == uid {
			i.queue = append(i.queue[:k:k], i.queue[k+1:]...)
			break
		}
	}
}

// Close ends the inbox: later messages to it are dead letters, messages that wait
// are dropped, and Receive fails.
func (i *Inbox) Close() {
	i.t.Remove(i.ref.UID())
	i.mu.Lock()
	watched := slices.Sorted(maps.Keys(i.watched))
	i.queue, i.watched = nil, nil
	i.close()
	i.mu.Unlock()
	for _, uid := range watched {
		i.t.kernel.Signal(uid, signal.Signal{Kind: signal.Unwatch, From: i.ref.UID()})
	}
}

// close has nothing more come in. mu is held.
func (i *Inbox) close() {
	i.asked = nil
	if !i.closed {
		i.closed = true
		close(i.done)
	}
}

// put takes a message in. mu is held.
func (i *Inbox) put(m message.Message) error {
	if i.closed || len(i.queue) >= i.size {
		return errs.ErrMailboxFull
	}
	i.queue = append(i.queue, m)
	i.wake()
	return nil
}

// ended takes the news of an actor's end in, if it is (still) watched.
func (i *Inbox) ended(uid abi.Ref, reason string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.news(uid, reason)
}

// news is ended. mu is held.
func (i *Inbox) news(uid abi.Ref, reason string) {
	ref, ok := i.watched[uid]
	if !ok {
		return
	}
	delete(i.watched, uid)
	i.queue = append(i.queue, message.Message{Kind: abi.KindTerminated, Sender: ref, Payload: message.AppendText(nil, reason)})
	i.wake()
}

// inboxDoor is the inbox as a Receiver.
type inboxDoor Inbox

func (d *inboxDoor) Take(t *Table, e *mailbox.Envelope) (event.DeadReason, error, bool) {
	i := (*Inbox)(d)
	i.mu.Lock()
	defer i.mu.Unlock()
	if answer := e.Kind == abi.KindReply || e.Kind == abi.KindReplyError; answer && e.Correlation != 0 {
		a := i.asked[e.Correlation]
		if a == nil {
			return event.DeadLate, errs.ErrUnknown, false
		}
		if e.Flags&mark.Ours == 0 && !a.Has(e.Sender) {
			return event.DeadForged, errs.ErrDenied, false
		}
		if a.Remove(e.Sender) {
			i.answered(e.Correlation)
		}
	}
	if err := i.put(t.message(e)); err != nil {
		return event.DeadMailboxFull, err, false
	}
	return 0, nil, false
}

func (d *inboxDoor) Fail(correlation uint64, target abi.Ref, err error) bool {
	i := (*Inbox)(d)
	i.mu.Lock()
	defer i.mu.Unlock()
	a := i.asked[correlation]
	if a == nil || !a.Has(target) {
		return false
	}
	if a.Remove(target) {
		i.answered(correlation)
	}
	_ = i.put(message.Unanswered(message.Message{Kind: abi.KindReplyError, Sender: i.t.kernel.RefOf(target), Correlation: correlation, Payload: message.AppendText(nil, err.Error())}, err))
	return false
}

func (d *inboxDoor) Delegate(correlation uint64, from, to abi.Ref) {
	i := (*Inbox)(d)
	i.mu.Lock()
	defer i.mu.Unlock()
	if a := i.asked[correlation]; a != nil {
		a.Delegate(from, to)
	}
}

func (d *inboxDoor) Ended(of abi.Ref, reason string) bool {
	(*Inbox)(d).ended(of, reason)
	return false
}

// Expire implements Receiver.
func (d *inboxDoor) Expire(int64) (over, swept bool) { return false, false }

// Shut implements Receiver: asks that are open end as others do, and who is watched has ended. The last actors may
// tell of their ends only when the guardians have gone.
func (d *inboxDoor) Shut() bool {
	i := (*Inbox)(d)
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range slices.Sorted(maps.Keys(i.asked)) {
		_ = i.put(message.Unanswered(message.Message{Kind: abi.KindReplyError, Correlation: c, Payload: message.AppendText(nil, errs.ErrStopped.Error())}, errs.ErrStopped))
	}
	for _, uid := range slices.Sorted(maps.Keys(i.watched)) {
		i.news(uid, "the system has ended")
	}
	i.close()
	return true
}

// Left implements Receiver: it returns all handles: the inbox is closed.
func (d *inboxDoor) Left() []abi.Ref {
	i := (*Inbox)(d)
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.told
	for _, c := range slices.Sorted(maps.Keys(i.waiting)) {
		all = append(all, i.waiting[c]...)
	}
	i.waiting, i.told = nil, nil
	return all
}

// Observe registers a handle to be told when an ask is over; false if it is over already.
func (d *inboxDoor) Observe(correlation uint64, handle abi.Ref) bool {
	i := (*Inbox)(d)
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.closed:
		return false
	case correlation == 0:
		return true // a message that may be answered, although nobody waits for an answer
	case i.asked[correlation] == nil || len(i.waiting[correlation]) >= asks.MaxAnswerers:
		return false
	}
	if i.waiting == nil {
		i.waiting = map[uint64][]abi.Ref{}
	}
	i.waiting[correlation] = append(i.waiting[correlation], handle)
	return true
}

// over takes the handles of asks that are over. The caller holds no lock.
func (d *inboxDoor) over() []abi.Ref {
	i := (*Inbox)(d)
	i.mu.Lock()
	defer i.mu.Unlock()
	told := i.told
	i.told = nil
	return told
}

// wake wakes one receiver. mu is held.
func (i *Inbox) wake() {
	select {
	case i.ready <- struct{}{}:
	default:
	}
}

// Identify asks every actor that a path with patterns names who it is, and returns how many it has
// asked. Each of them answers with a Message of KindReply. A path without patterns and without an
// actor is answered with KindReplyError.
func (i *Inbox) Identify(path string, correlation uint64) int {
	n, nobody := i.t.kernel.Identify(path, i.ref.UID(), correlation, func(uid abi.Ref) bool {
		return correlation == 0 || i.expect(correlation, uid)
	})
	if nobody {
		i.mu.Lock()
		_ = i.put(message.Message{Kind: abi.KindReplyError, Correlation: correlation, Payload: message.AppendText(nil, abi.NoSuchActor)})
		i.mu.Unlock()
	}
	return n
}
