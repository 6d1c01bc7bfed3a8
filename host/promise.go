package host

import (
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// promises are the asks from Go that wait for an answer, by the refs that stand
// for them.
type promises struct {
	key    abi.RefKey
	count  atomic.Uint64
	shards [promiseShards]promiseShard
}

const promiseShards = 16

type promiseShard struct {
	mu   sync.Mutex
	open map[abi.Ref]*promise
	_    [48]byte // shards do not share a cache line
}

type promise struct {
	c      chan Message  // one answer
	closed chan struct{} // for Ended
	inbox  *Inbox        // which takes all that comes
}

// add makes a promise and the ref that answers go to.
func (p *promises) add() (abi.Ref, *promise) {
	pr := &promise{c: make(chan Message, 1), closed: make(chan struct{})}
	return p.put(pr), pr
}

func (p *promises) put(pr *promise) abi.Ref {
	uid := abi.ChildRef(p.key, 0, p.count.Add(1))
	sh := &p.shards[uint64(uid)%promiseShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.open == nil {
		sh.open = map[abi.Ref]*promise{}
	}
	sh.open[uid] = pr
	return uid
}

// take is remove, except that an inbox stays.
func (p *promises) take(uid abi.Ref) *promise {
	sh := &p.shards[uint64(uid)%promiseShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	pr := sh.open[uid]
	if pr != nil && pr.inbox == nil {
		delete(sh.open, uid)
	}
	return pr
}

func (p *promises) remove(uid abi.Ref) *promise {
	sh := &p.shards[uint64(uid)%promiseShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	pr := sh.open[uid]
	delete(sh.open, uid)
	return pr
}

// resolve gives an envelope to the ask or the inbox that has the ref, if there is one.
// An inbox may be full.
func (p *promises) resolve(s *System, uid abi.Ref, e *mailbox.Envelope) (found bool, err error) {
	if uid == 0 {
		return false, nil
	}
	pr := p.take(uid)
	if pr == nil {
		return false, nil
	}
	m := Message{Kind: e.Kind, Sender: s.refOf(e.Sender), Correlation: e.Correlation, Payload: append([]byte(nil), e.Payload...)}
	if len(e.Headers) > 0 {
		m.Headers = append([]byte(nil), e.Headers...)
	}
	if pr.inbox != nil {
		return true, pr.inbox.put(m)
	}
	pr.c <- m
	return true, nil
}

// end tells who waits for an actor's end of it.
func (p *promises) end(watcher, uid abi.Ref, reason string) {
	switch pr := p.take(watcher); {
	case pr == nil:
	case pr.inbox != nil:
		pr.inbox.ended(uid, reason)
	default:
		close(pr.closed)
	}
}
