package host

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// ends are those who wait for the ends of actors: one outsider for each actor, whatever the number of
// those who wait, so that who never gives it up costs no more than the actor.
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
	n    int // who waits; of the shard
}

// wait is the one who waits for an actor's end, now for one more; fresh: it is not known to the actor yet.
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

// forget is for one of those who wait; last: nobody does any more.
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

// Ended returns a channel that is closed when the actor has stopped. It fails
// with ErrUnknown if it has stopped already, or never was. However often it is called, it costs
// about 300 bytes until the actor has stopped; who may want to know it no longer takes [System.WatchEnd].
func (s *System) Ended(ref Ref) (<-chan struct{}, error) {
	c, _, err := s.WatchEnd(ref)
	return c, err
}

// WatchEnd is Ended for who may want to know it no longer, and calls forget then, more than once if need
// be: when nobody waits any more for the end of an actor nothing is kept for that. The channel may be that of others,
// too; it is not closed by forget.
func (s *System) WatchEnd(ref Ref) (ended <-chan struct{}, forget func(), err error) {
	a := s.table.Get(ref.uid)
	if a == nil {
		return nil, nil, ErrUnknown
	}
	w, fresh := s.ends.wait(a.uid, s.outside.newRef)
	if fresh {
		s.outside.put(w.uid, w)
		if !a.post(nil, sysMsg{kind: sysWatch, ref: w.uid, once: true}) {
			if s.outside.remove(w.uid) {
				close(w.c) // of others, who have come meanwhile
			}
			return nil, nil, ErrUnknown
		}
	}
	return w.c, sync.OnceFunc(func() {
		if w.forget() && s.outside.remove(w.uid) {
			a.post(nil, sysMsg{kind: sysUnwatch, ref: w.uid})
		}
	}), nil
}
