package router

import (
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/fifo"
)

// Balancing keeps all messages in one queue, the router's mailbox, and gives the next one to
// an idle routee. It is for pools; it is a [Make].
func Balancing(uint64) Logic { return &balancing{} }

type balancing struct {
	head *head
	next int
}

// Pick takes an idle routee. There is one, unless somebody else has just sent it a message.
func (b *balancing) Pick(picked []int, _ *host.Message, routees []Routee) ([]int, error) {
	ref, ok := b.head.queue.takeIdle()
	if ok {
		if i := slices.IndexFunc(routees, func(r Routee) bool { return r.Ref.Equal(ref) }); i >= 0 {
			return append(picked, i), nil
		}
	}
	b.next = (b.next + 1) % len(routees)
	return append(picked, b.next), nil
}

// queue is the mailbox of a balancing router. It shows a message only while a routee is idle;
// the host's own envelopes, and messages for the router itself, do not wait.
type queue struct {
	limits host.MailboxLimits

	mu         sync.Mutex
	mail       fifo.Queue // also what must not overtake it, such as poison pills
	first      fifo.Queue // what does not wait
	shown      *fifo.Queue
	closed     bool
	hasRoutees bool // there are routees
	idle       []*workerMailbox
	sys        *host.System
	ref        host.Ref
}

func newQueue(l host.MailboxLimits) *queue { return &queue{limits: l} }

// begin is called at every start of the router.
func (q *queue) begin(sys *host.System, ref host.Ref) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.idle {
		w.idle = false
	}
	q.sys, q.ref, q.idle, q.hasRoutees = sys, ref, nil, false
}

// setHasRoutees sets whether there are routees: without them all messages are shown, and refused.
func (q *queue) setHasRoutees(some bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hasRoutees = some
}

// join adds a routee, which may have run already.
func (q *queue) join(w *workerMailbox, ref host.Ref) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.ref = ref
}

// takeIdle removes the routee that became idle last from the idle ones.
func (q *queue) takeIdle() (host.Ref, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.anyIdle() {
		return host.Ref{}, false
	}
	w := q.idle[len(q.idle)-1]
	q.busy(w)
	return w.ref, true
}

// anyIdle reports whether a routee is idle; it drops those that handle no messages now, which come
// back when they do. mu is held.
func (q *queue) anyIdle() bool {
	for n := len(q.idle); n > 0; n-- {
		w := q.idle[n-1]
		if l, alive := q.sys.Load(w.ref); !w.ref.IsZero() && alive && l.Open {
			return true
		}
		q.busy(w)
	}
	return false
}

// busy removes a routee from the idle ones. mu is held.
func (q *queue) busy(w *workerMailbox) {
	if !w.idle {
		return
	}
	w.idle = false
	if i := slices.Index(q.idle, w); i >= 0 {
		q.idle = slices.Delete(q.idle, i, i+1)
	}
}

// urgent reports whether an envelope waits for no routee.
func urgent(e *host.Envelope) bool {
	switch e.Kind {
	case abi.KindTerminated, abi.KindTimer, abi.KindAskTimeout, abi.KindReceiveTimeout, abi.KindReply, abi.KindReplyError:
		return true
	}
	if len(e.Headers) > 0 && host.IsMail(e) {
		_, ok := abi.FindHeader(e.Headers, Header)
		return ok
	}
	return false
}

func (q *queue) put(e *host.Envelope) {
	if urgent(e) {
		q.first.Push(e)
	} else {
		q.mail.Push(e)
	}
}

// Push implements host.Mailbox.
func (q *queue) Push(e *host.Envelope) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return host.ErrStopped
	case q.mail.Len()+q.first.Len() >= q.limits.Messages, q.mail.Bytes()+q.first.Bytes()+int64(e.Size()) > q.limits.Bytes:
		return host.ErrMailboxFull
	}
	q.put(e)
	return nil
}

// Force implements host.Mailbox.
func (q *queue) Force(e *host.Envelope) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.put(e)
	return true
}

// Peek implements host.Mailbox.
func (q *queue) Peek() *host.Envelope {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.peek()
}

func (q *queue) peek() *host.Envelope {
	if q.shown != nil {
		return q.shown.Front()
	}
	if q.first.Len() > 0 {
		q.shown = &q.first
	} else if e := q.mail.Front(); e != nil && (!host.IsMail(e) || !q.hasRoutees || q.anyIdle()) {
		q.shown = &q.mail
	} else {
		return nil
	}
	return q.shown.Front()
}

// Pop implements host.Mailbox.
func (q *queue) Pop() *host.Envelope {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.peek() == nil {
		return nil
	}
	e := q.shown.Pop()
	q.shown = nil
	return e
}

// PushFront implements host.Mailbox.
func (q *queue) PushFront(es ...*host.Envelope) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range slices.Backward(es) {
		if urgent(e) {
			q.first.PushFront(e)
		} else {
			q.mail.PushFront(e)
		}
	}
	q.shown = nil
}

// Close implements host.Mailbox.
func (q *queue) Close(drain func(*host.Envelope)) {
	q.mu.Lock()
	var left []*host.Envelope
	q.closed, q.shown = true, nil
	for _, f := range []*fifo.Queue{&q.first, &q.mail} {
		for e := f.Pop(); e != nil; e = f.Pop() {
			left = append(left, e)
		}
	}
	q.mu.Unlock()
	for _, e := range left {
		drain(e)
	}
}

// Len implements host.Mailbox.
func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mail.Len() + q.first.Len()
}

// Bytes implements host.Mailbox.
func (q *queue) Bytes() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mail.Bytes() + q.first.Bytes()
}

// Empty implements host.Mailbox: nothing would be shown.
func (q *queue) Empty() bool { return q.Peek() == nil }

// workerMailbox is the mailbox of a routee. At the end of a routee's spell of work the host asks
// whether more is to be done: if not, the routee is idle.
type workerMailbox struct {
	queue  *queue
	limits host.MailboxLimits
	ref    host.Ref // queue.mu
	idle   bool     // likewise

	mu     sync.Mutex // after queue.mu
	own    fifo.Queue
	closed bool
}

// Push implements host.Mailbox.
func (w *workerMailbox) Push(e *host.Envelope) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return host.ErrStopped
	case !w.own.Room(e, w.limits):
		return host.ErrMailboxFull
	}
	w.own.Push(e)
	return nil
}

// Force implements host.Mailbox.
func (w *workerMailbox) Force(e *host.Envelope) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.own.Push(e)
	return true
}

// Pop implements host.Mailbox.
func (w *workerMailbox) Pop() *host.Envelope {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own.Pop()
}

// Peek implements host.Mailbox.
func (w *workerMailbox) Peek() *host.Envelope {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own.Front()
}

// PushFront implements host.Mailbox.
func (w *workerMailbox) PushFront(es ...*host.Envelope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range slices.Backward(es) {
		w.own.PushFront(e)
	}
}

// Close implements host.Mailbox.
func (w *workerMailbox) Close(drain func(*host.Envelope)) {
	w.queue.mu.Lock()
	w.queue.busy(w)
	w.queue.mu.Unlock()
	w.mu.Lock()
	w.closed = true
	var left []*host.Envelope
	for e := w.own.Pop(); e != nil; e = w.own.Pop() {
		left = append(left, e)
	}
	w.mu.Unlock()
	for _, e := range left {
		drain(e)
	}
}

// Len implements host.Mailbox.
func (w *workerMailbox) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own.Len()
}

// Bytes implements host.Mailbox.
func (w *workerMailbox) Bytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own.Bytes()
}

// Empty implements host.Mailbox.
func (w *workerMailbox) Empty() bool {
	q := w.queue
	q.mu.Lock()
	w.mu.Lock()
	empty, closed := w.own.Len() == 0, w.closed
	w.mu.Unlock()
	wake := false
	switch {
	case !empty || closed:
		q.busy(w)
	case !w.idle:
		w.idle = true
		q.idle = append(q.idle, w)
		wake = q.mail.Len() > 0
	}
	sys, ref := q.sys, q.ref
	q.mu.Unlock()
	if wake {
		sys.Wake(ref)
	}
	return empty
}
