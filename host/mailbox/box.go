package mailbox

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// box is a mailbox of any kind: queues for the levels of messages, one for the host's
// own envelopes, and what it does when it is full. One lock guards it.
//
// The host's own envelopes come when everything that was there before them, and is as urgent as
// the least urgent messages, has been taken: the end of a watched actor does not overtake what that
// actor had sent. They are never refused and never dropped.
type box struct {
	limits   host.MailboxLimits
	full     Kind
	wait     time.Duration
	overtake int
	ranker   ranker
	keys     *keys // nil: they are not looked at

	n     atomic.Int64 // what waits; changed under mu
	bytes atomic.Int64

	mu      sync.Mutex
	levels  []level
	own     level     // the host's envelopes
	shown   item      // what Peek has shown; nothing if its e is nil
	last    int64     // the number given at the back
	first   int64     // the one given at the front
	passed  int       // messages in a row that have overtaken the oldest
	waiters []*waiter // senders that wait for room, oldest first
	closed  bool

	host     host.MailboxHost // nil: there is no account
	reserved int64            // on the account
}

var _ host.HostedMailbox = (*box)(nil)

// The cost of an envelope in addition to its bytes, and the bytes that may wait without being charged.
const (
	envelopeBytes = 200
	freeBytes     = 1 << 10
	keptBytes     = 16 << 10 // bytes that an empty mailbox keeps on the account
)

func limitsOf(l host.MailboxLimits) host.MailboxLimits {
	if l.Messages <= 0 {
		l.Messages = host.DefaultMailbox
	}
	if l.Bytes <= 0 {
		l.Bytes = host.DefaultMailboxBytes
	}
	return l
}

// dropped are envelopes that were dropped, until the lock is released.
type dropped struct {
	one  *host.Envelope // nearly always all
	why  host.DeadReason
	more []*host.Envelope // the others
}

func (d *dropped) add(e *host.Envelope, why host.DeadReason) {
	if d.one == nil {
		d.one, d.why = e, why
		return
	}
	d.more = append(d.more, e) // all dropped by one push have the same reason
}

// give passes the dropped envelopes to the host. The lock is not held.
func (b *box) give(d *dropped) {
	if d.one == nil {
		return
	}
	b.drop(d.one, d.why)
	for _, e := range d.more {
		b.drop(e, d.why)
	}
}

func (b *box) drop(e *host.Envelope, why host.DeadReason) {
	if b.host == nil {
		e.Free()
		return
	}
	b.host.Dropped(e, why)
}

// Hosted implements host.HostedMailbox.
func (b *box) Hosted(h host.MailboxHost) { b.host = h }

// Push implements host.Mailbox.
func (b *box) Push(e *host.Envelope) error {
	var gone dropped
	b.mu.Lock()
	err := b.admit(e, &gone)
	b.mu.Unlock()
	b.give(&gone)
	return err
}

// admit takes an envelope in, or drops it or others, or says why not; in that case it still belongs to
// the caller. mu is held.
func (b *box) admit(e *host.Envelope, gone *dropped) error {
	if b.closed {
		return host.ErrStopped
	}
	var k key
	keyed := false
	if b.keys != nil {
		if k, keyed = b.keys.keyOf(e); keyed && b.keys.has(k) {
			gone.add(e, host.DeadDuplicate)
			return nil
		}
	}
	size, at := int64(e.Size()), b.ranker.levelOf(e)
	mail := host.IsMail(e)
	if b.n.Load() >= int64(b.limits.Messages) || b.bytes.Load()+size > b.limits.Bytes {
		switch {
		case mail && b.full == DropNewest || mail && b.full == DropOldest && !b.makeRoom(at, size, gone):
			gone.add(e, host.DeadDropped)
			return nil
		case !mail || b.full != DropOldest:
			return host.ErrMailboxFull
		}
	}
	if err := b.reserve(1, size, false); err != nil && !b.takeFromKeys(size) {
		return fmt.Errorf("%w: %w", host.ErrMailboxFull, err)
	}
	if keyed {
		b.keys.add(k)
	}
	b.last++
	b.put(item{e, b.last}, at, false)
	return nil
}

// takeFromKeys forgets keys until one more message of a size fits, if no messages wait: otherwise keys that fill
// the account would keep everything out for ever. It returns false, and forgets none, if that is not enough.
func (b *box) takeFromKeys(size int64) bool {
	if b.keys == nil || b.n.Load() > 0 {
		return false
	}
	if need := b.held(1, size) - b.keys.bytes() - b.reserved; need > 0 {
		if b.host.Reserve(need, false) != nil {
			return false
		}
		b.reserved += need
	}
	for b.reserve(1, size, false) != nil {
		if !b.keys.shrink() {
			return false
		}
	}
	return true
}

// put adds an envelope. mu is held.
func (b *box) put(i item, at int, front bool) {
	q := &b.own
	if host.IsMail(i.e) {
		q = &b.levels[at]
	}
	if front {
		q.pushFront(i)
	} else {
		q.pushBack(i)
	}
	b.n.Add(1)
	b.bytes.Add(int64(i.e.Size()))
}

// makeRoom drops what has waited longest among the least urgent messages, so that one of a
// level and a size fits; false, and nothing is dropped, if those that are not more urgent
// are too few. If more wait than the bound allows, because some were put back, it drops
// only as much as the new message takes. mu is held.
func (b *box) makeRoom(at int, size int64, gone *dropped) bool {
	if size > b.limits.Bytes {
		return false
	}
	messages := int(b.n.Load() + 1 - max(int64(b.limits.Messages), b.n.Load()))
	bytes := b.bytes.Load() + size - max(b.limits.Bytes, b.bytes.Load())
	droppable, droppableBytes := 0, int64(0)
	for i := at; i < len(b.levels); i++ {
		droppable += b.levels[i].n
		droppableBytes += b.levels[i].bytes
	}
	if droppable < messages || droppableBytes < bytes {
		return false
	}
	for i := len(b.levels) - 1; messages > 0 || bytes > 0; {
		if b.levels[i].n == 0 {
			i--
			continue
		}
		bytes -= b.giveUp(i, host.DeadDropped, gone)
		messages--
	}
	return true
}

// Order implements host.HostedMailbox. Messages that were put back count as the oldest.
func (b *box) Order() (before, came uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest := b.last + 1
	for i := range b.levels {
		if q := &b.levels[i]; q.n > 0 {
			oldest = min(oldest, q.front().at)
		}
	}
	if b.own.n > 0 {
		oldest = min(oldest, b.own.front().at)
	}
	if b.shown.e != nil {
		oldest = min(oldest, b.shown.at)
	}
	return uint64(max(oldest-1, 0)), uint64(b.last)
}

// Trim implements host.HostedMailbox.
func (b *box) Trim(most int) {
	for {
		var gone dropped
		b.mu.Lock()
		mail, last := 0, -1
		for i := range b.levels {
			if mail += b.levels[i].n; b.levels[i].n > 0 {
				last = i
			}
		}
		if b.shown.e != nil && host.IsMail(b.shown.e) {
			mail++
		}
		if mail > most && last >= 0 {
			b.giveUp(last, host.DeadEvicted, &gone)
		}
		b.mu.Unlock()
		if gone.one == nil {
			return
		}
		b.give(&gone)
	}
}

// giveUp drops the oldest message of a level. mu is held.
func (b *box) giveUp(at int, why host.DeadReason, gone *dropped) int64 {
	old := b.levels[at].popFront()
	size := int64(old.e.Size())
	b.n.Add(-1)
	b.bytes.Add(-size)
	if b.keys != nil {
		b.forget(old.e)
	}
	gone.add(old.e, why)
	return size
}

// Force implements host.Mailbox.
func (b *box) Force(e *host.Envelope) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	_ = b.reserve(1, int64(e.Size()), true)
	b.last++
	b.put(item{e, b.last}, b.ranker.levelOf(e), false)
	return true
}

// Peek implements host.Mailbox. The envelope it returns stays the next one until Pop, even if more urgent ones arrive.
func (b *box) Peek() *host.Envelope {
	if b.n.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peek()
}

func (b *box) peek() *host.Envelope {
	if b.shown.e == nil {
		if q := b.choose(); q != nil {
			b.shown = q.popFront()
		}
	}
	return b.shown.e
}

// choose finds the queue whose first envelope is next, nil if all are empty. mu is held.
func (b *box) choose() *level {
	var next, oldest *level
	for i := range b.levels {
		q := &b.levels[i]
		if q.n == 0 {
			continue
		}
		if next == nil {
			next = q
		}
		if oldest == nil || q.front().at < oldest.front().at {
			oldest = q
		}
	}
	if b.own.n > 0 {
		if oldest == nil || b.own.front().at < oldest.front().at {
			oldest = &b.own
		}
		// It is as urgent as the least urgent messages.
		if next == nil || next == &b.levels[len(b.levels)-1] && b.own.front().at < next.front().at {
			next = &b.own
		}
	}
	if next == oldest {
		b.passed = 0
		return next
	}
	if b.passed++; b.overtake > 0 && b.passed > b.overtake {
		b.passed = 0
		return oldest
	}
	return next
}

// Pop implements host.Mailbox.
func (b *box) Pop() *host.Envelope {
	if b.n.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	e := b.peek()
	if e == nil {
		b.mu.Unlock()
		return nil
	}
	b.shown = item{}
	b.n.Add(-1)
	b.bytes.Add(-int64(e.Size()))
	if len(b.waiters) == 0 || b.closed {
		b.mu.Unlock()
		return e
	}
	var gone dropped
	b.letIn(&gone)
	b.mu.Unlock()
	b.give(&gone)
	return e
}

// PushFront implements host.Mailbox: each goes before all that are as urgent as it is. It may exceed
// the bounds, because these messages were accepted before; then others are refused, or dropped.
func (b *box) PushFront(es ...*host.Envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.shown; i.e != nil { // what is put back goes before it
		b.shown = item{}
		b.n.Add(-1)
		b.bytes.Add(-int64(i.e.Size()))
		b.put(i, b.ranker.levelOf(i.e), true)
	}
	for k := len(es) - 1; k >= 0; k-- {
		e := es[k]
		if !b.closed {
			_ = b.reserve(1, int64(e.Size()), true)
		}
		b.first--
		b.put(item{e, b.first}, b.ranker.levelOf(e), true)
		if b.keys != nil {
			b.remember(e)
		}
	}
}

// Close implements host.Mailbox.
func (b *box) Close(drain func(*host.Envelope)) {
	b.mu.Lock()
	b.closed = true
	waiters := b.waiters
	b.waiters = nil
	b.mu.Unlock()
	for _, w := range waiters {
		w.done <- host.ErrStopped
	}
	for e := b.Pop(); e != nil; e = b.Pop() {
		drain(e)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keys != nil {
		b.keys = newKeys(b.keys.most, b.keys.header)
	}
	b.giveBack(0)
}

// Len implements host.Mailbox.
func (b *box) Len() int { return int(b.n.Load()) }

// Bytes implements host.Mailbox.
func (b *box) Bytes() int64 { return b.bytes.Load() }

// Empty implements host.Mailbox.
func (b *box) Empty() bool { return b.n.Load() == 0 }

// Failed implements host.HostedMailbox: the sender may try again with the same key.
func (b *box) Failed(e *host.Envelope) {
	if b.keys == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(e)
}

// remember makes the key of a message that waits again known.
func (b *box) remember(e *host.Envelope) {
	if k, ok := b.keys.keyOf(e); ok && !b.keys.has(k) {
		b.keys.add(k)
	}
}

func (b *box) forget(e *host.Envelope) {
	if k, ok := b.keys.keyOf(e); ok {
		b.keys.forget(k)
	}
}

// held is what the mailbox would hold with so much more.
func (b *box) held(messages int, size int64) int64 {
	n := b.bytes.Load() + size + (b.n.Load()+int64(messages))*envelopeBytes - freeBytes
	if b.keys != nil {
		n += b.keys.bytes()
	}
	return max(n, 0)
}

// reserve makes the account hold what waits and so much more: more than needed, if
// there is room, so that the account is rarely asked. With must it is charged in any case. mu is held.
func (b *box) reserve(messages int, size int64, must bool) error {
	need := b.held(messages, size) - b.reserved
	if need <= 0 || b.host == nil {
		return nil
	}
	for _, more := range []int64{max(need, min(b.reserved, 1<<20), 4<<10), need} {
		err := b.host.Reserve(more, must)
		if err == nil {
			b.reserved += more
			return nil
		}
		if more == need {
			return err
		}
	}
	return nil
}

// giveBack returns to the account what is reserved beyond what waits and keep bytes. mu is held.
func (b *box) giveBack(keep int64) {
	if b.host == nil {
		return
	}
	if more := b.reserved - b.held(0, 0) - keep; more > 0 {
		_ = b.host.Reserve(-more, true)
		b.reserved -= more
	}
}

// EndRun implements host.HostedMailbox.
func (b *box) EndRun() {
	if b.n.Load() != 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && b.n.Load() == 0 && b.reserved > keptBytes {
		b.giveBack(0)
	}
}
