package outside

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// endsShard tracks waiters for the ends of actors. Waiters of one actor share an entry, so a waiter that never gives up costs
// nothing extra.
type endsShard struct {
	mu sync.Mutex
	of map[abi.Ref]*endWaiter
}

func (t *Table) endsOf(uid abi.Ref) *endsShard { return &t.ends[uint64(uid)%shards] }

// endWaiter waits for an actor's end.
type endWaiter struct {
	Deaf
	sh  *endsShard
	of  abi.Ref
	uid abi.Ref // its own
	c   chan struct{}
	n   int // waiters; guarded by the shard's lock
}

// waiter adds a waiter to the actor's entry and returns the entry; fresh: the actor does not know it yet.
func (t *Table) waiter(of abi.Ref) (w *endWaiter, fresh bool) {
	sh := t.endsOf(of)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if w = sh.of[of]; w == nil {
		if sh.of == nil {
			sh.of = map[abi.Ref]*endWaiter{}
		}
		w, fresh = &endWaiter{sh: sh, of: of, uid: t.NewRef(), c: make(chan struct{})}, true
		sh.of[of] = w
	}
	w.n++
	return w, fresh
}

// forget removes one waiter; last: it was the last one.
func (w *endWaiter) forget() (last bool) {
	w.sh.mu.Lock()
	defer w.sh.mu.Unlock()
	if w.n--; w.n > 0 || w.sh.of[w.of] != w {
		return false
	}
	delete(w.sh.of, w.of)
	return true
}

// Left implements Receiver.
func (w *endWaiter) Left() []abi.Ref {
	w.sh.mu.Lock()
	defer w.sh.mu.Unlock()
	if w.sh.of[w.of] == w {
		delete(w.sh.of, w.of)
	}
	return nil
}

// Ended implements Receiver.
func (w *endWaiter) Ended(abi.Ref, string) bool { close(w.c); return true }

// Shut implements Receiver.
func (w *endWaiter) Shut() bool { close(w.c); return true }

// WatchEnd returns a channel that is closed when the actor has stopped. It fails with ErrUnknown if the actor has stopped
// already or never existed. When all waiters of an actor have called forget, once or more often, nothing is kept.
func (t *Table) WatchEnd(of abi.Ref) (ended <-chan struct{}, forget func(), err error) {
	w, fresh := t.waiter(of)
	if fresh {
		t.Put(w.uid, w)
		if !t.kernel.Signal(of, signal.Signal{Kind: signal.Watch, From: w.uid, Once: true}) {
			return nil, nil, errs.ErrUnknown // other waiters that have joined since have been told
		}
	}
	return w.c, sync.OnceFunc(func() {
		if w.forget() && t.Remove(w.uid) {
			t.kernel.Signal(of, signal.Signal{Kind: signal.Unwatch, From: w.uid})
		}
	}), nil
}

// Ends is how many actors' ends are waited for.
func (t *Table) Ends() (n int) {
	for i := range t.ends {
		t.ends[i].mu.Lock()
		n += len(t.ends[i].of)
		t.ends[i].mu.Unlock()
	}
	return n
}
