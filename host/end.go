package host

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// ends tracks waiters for an actor's end. Waiters of one actor share an entry, so a waiter that never gives up costs nothing
// extra.
type ends struct{ shards [outsideShards]endsShard }

type endsShard struct {
	mu sync.Mutex
	of map[abi.Ref]*endWaiter
}

func (e *ends) shard(of abi.Ref) *endsShard { return &e.shards[uint64(of)%outsideShards] }

// endWaiter waits for an actor's end.
type endWaiter struct {
	ends *ends
	of   abi.Ref
	uid  abi.Ref // its own
	c    chan struct{}
	n    int // waiters; guarded by the shard's lock
}

// wait adds a waiter to the actor's entry and returns the entry; fresh: the actor does not know it yet.
func (e *ends) wait(of abi.Ref, uid func() abi.Ref) (w *endWaiter, fresh bool) {
	sh := e.shard(of)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if w = sh.of[of]; w == nil {
		if sh.of == nil {
			sh.of = map[abi.Ref]*endWaiter{}
		}
		w, fresh = &endWaiter{ends: e, of: of, uid: uid(), c: make(chan struct{})}, true
		sh.of[of] = w
	}
	w.n++
	return w, fresh
}

// forget removes one waiter; last: it was the last one.
func (w *endWaiter) forget() (last bool) {
	sh := w.ends.shard(w.of)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if w.n--; w.n > 0 || sh.of[w.of] != w {
		return false
	}
	delete(sh.of, w.of)
	return true
}

func (w *endWaiter) left() []abi.Ref {
	sh := w.ends.shard(w.of)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.of[w.of] == w {
		delete(sh.of, w.of)
	}
	return nil
}

func (w *endWaiter) ended(abi.Ref, string) bool { close(w.c); return true }
func (w *endWaiter) shut() bool                 { close(w.c); return true }
func (w *endWaiter) take(*System, *mailbox.Envelope) (DeadReason, error, bool) {
	return DeadUnknown, ErrUnknown, false
}
func (w *endWaiter) fail(uint64, abi.Ref, error) bool  { return false }
func (w *endWaiter) delegate(uint64, abi.Ref, abi.Ref) {}
func (w *endWaiter) expire(int64) bool                 { return false }

// Ended returns a channel that is closed when the actor has stopped. It fails with ErrUnknown if the actor has stopped
// already or never existed. However often it is called, it costs about 300 bytes until the actor has stopped. To be able to
// stop waiting, use [System.WatchEnd].
func (s *System) Ended(ref Ref) (<-chan struct{}, error) {
	c, _, err := s.WatchEnd(ref)
	return c, err
}

// WatchEnd is Ended with a way to stop waiting: call forget, once or more often. When all waiters of an actor have called
// it, nothing is kept. Waiters may share the channel; forget does not close it.
func (s *System) WatchEnd(ref Ref) (ended <-chan struct{}, forget func(), err error) {
	w, fresh := s.ends.wait(ref.UID(), s.outside.newRef)
	if fresh {
		s.outside.put(w.uid, w)
		if !s.signal(nil, ref.UID(), signal.Signal{Kind: signal.Watch, From: w.uid, Once: true}) {
			return nil, nil, ErrUnknown // other waiters that have joined since have been told
		}
	}
	return w.c, sync.OnceFunc(func() {
		if w.forget() && s.outside.remove(w.uid) {
			s.signal(nil, ref.UID(), signal.Signal{Kind: signal.Unwatch, From: w.uid})
		}
	}), nil
}
