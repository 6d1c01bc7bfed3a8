package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// outsiders are the receivers that have a ref and are no actors: asks from Go, inboxes, reply
// handles, and those that wait for an actor's end.
type outsiders struct {
	sys      *System
	key      abi.RefKey
	count    atomic.Uint64
	retried  atomic.Uint64 // questions that may be asked again
	shards   [outsideShards]outsideShard
	sweep    sweeper
	closed   atomic.Bool // the system has ended: nobody answers any more
	promises sync.Pool
}

const outsideShards = 16

type outsideShard struct {
	mu   sync.Mutex
	open map[abi.Ref]outsider
	_    [48]byte // shards do not share a cache line
}

// outsider is one of them. Its methods are called under the lock of its shard, so they
// must be short and must not call back.
type outsider interface {
	// take takes an envelope, or says why not; over: the outsider is done with. leave
	// allows answers of the host itself.
	take(s *System, e *mailbox.Envelope) (reason DeadReason, err error, over bool)
	// fail says that there will be no answer to an ask that was sent to target.
	fail(correlation uint64, target abi.Ref, err error) (over bool)
	// delegate adds to as an answerer of what from was asked.
	delegate(correlation uint64, from, to abi.Ref)
	// ended says that an actor has ended, or (0) that the ask of a reply handle is over.
	ended(of abi.Ref, reason string) (over bool)
	// expire says what time it is.
	expire(now int64) (over bool)
	// shut says that the system has ended.
	shut() (over bool)
	// left is called when it has been removed, once and without the lock. It may be reused afterwards. It returns the
	// handles to be notified that it is over.
	left() []abi.Ref
}

func (o *outsiders) shard(uid abi.Ref) *outsideShard { return &o.shards[uint64(uid)%outsideShards] }

// newRef is a ref for an outsider.
func (o *outsiders) newRef() abi.Ref { return abi.ChildRef(o.key, o.sys.cfg.node, o.count.Add(1)) }

// put adds an outsider.
func (o *outsiders) put(uid abi.Ref, x outsider) {
	sh := o.shard(uid)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.open == nil {
		sh.open = map[abi.Ref]outsider{}
	}
	sh.open[uid] = x
}

// remove removes an outsider; false if it had gone.
func (o *outsiders) remove(uid abi.Ref) bool {
	sh := o.shard(uid)
	sh.mu.Lock()
	x := sh.open[uid]
	delete(sh.open, uid)
	sh.mu.Unlock()
	if x == nil {
		return false
	}
	o.tell(x)
	return true
}

// tell tells the handles of an outsider that was removed.
func (o *outsiders) tell(x outsider) {
	for _, w := range x.left() {
		o.sys.abandoned(nil, w)
	}
}

// with calls f for an outsider under its lock, and removes it if f says that it is
// over; false if there is none.
func (o *outsiders) with(uid abi.Ref, f func(outsider) (over bool)) bool {
	if uid == 0 {
		return false
	}
	sh := o.shard(uid)
	sh.mu.Lock()
	x := sh.open[uid]
	over := x != nil && f(x)
	if over {
		delete(sh.open, uid)
	}
	sh.mu.Unlock()
	switch i, inbox := x.(*inboxDoor); {
	case over:
		o.tell(x)
	case inbox:
		i.tell()
	}
	return x != nil
}

// has reports whether an outsider has a ref.
func (o *outsiders) has(uid abi.Ref) bool {
	return o.with(uid, func(outsider) (over bool) { return false })
}

// resolve gives an envelope to the outsider that has the ref, if there is one.
func (o *outsiders) resolve(s *System, uid abi.Ref, e *mailbox.Envelope) (found bool, reason DeadReason, err error) {
	found = o.with(uid, func(x outsider) (over bool) {
		reason, err, over = x.take(s, e)
		return over
	})
	return found, reason, err
}

// observe registers a reply handle to be told when the ask of an outsider is over; false if it is over already.
func (o *outsiders) observe(uid abi.Ref, correlation uint64, handle abi.Ref) bool {
	ok := false
	o.with(uid, func(x outsider) bool {
		switch x := x.(type) {
		case *promise:
			if len(x.observers) < asks.MaxAnswerers {
				x.observers = append(x.observers, handle)
				ok = true
			}
		case *inboxDoor:
			ok = x.observe(correlation, handle)
		}
		return false
	})
	return ok
}

// message is what an envelope brings to somebody outside.
func (s *System) message(e *mailbox.Envelope) Message {
	m := Message{Kind: e.Kind, Sender: s.sender(e), Correlation: e.Correlation, Payload: append([]byte(nil), e.Payload...)}
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
func (o *outsiders) arm(s *System) {
	w := &o.sweep
	if w.armed.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed.Store(true)
	if w.timer == nil && !w.ended {
		w.timer = s.cfg.clock.AfterFunc(s.cfg.askTimeout/4, func() { o.expire(s) })
	}
}

// expire ends the asks that have waited for too long.
func (o *outsiders) expire(s *System) {
	now := s.time.Now()
	waiting := false
	o.sweep.mu.Lock()
	o.sweep.timer = nil
	o.sweep.armed.Store(false) // before the look: an ask that comes meanwhile is seen, or arms
	o.sweep.mu.Unlock()
	for i := range o.shards {
		sh := &o.shards[i]
		var gone []outsider
		sh.mu.Lock()
		for uid, x := range sh.open {
			if x.expire(now) {
				delete(sh.open, uid)
				gone = append(gone, x)
			} else if p, ok := x.(*promise); ok && p.patience.swept {
				waiting = true
			}
		}
		sh.mu.Unlock()
		for _, x := range gone {
			o.tell(x)
		}
	}
	if waiting {
		o.arm(s)
	}
}

// close ends all that wait: nobody is left to answer or to ask, and nobody looks at their time any more. Who
// is entered meanwhile is seen here, or sees that it is too late.
func (o *outsiders) close() {
	o.closed.Store(true)
	w := &o.sweep
	w.mu.Lock()
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	for i := range o.shards {
		sh := &o.shards[i]
		var gone []outsider
		sh.mu.Lock()
		for uid, x := range sh.open {
			if x.shut() {
				delete(sh.open, uid)
				gone = append(gone, x)
			}
		}
		sh.mu.Unlock()
		for _, x := range gone {
			o.tell(x)
		}
	}
}

// DefaultAskTimeout is how long an ask waits if its context has no deadline.
const DefaultAskTimeout = time.Minute
