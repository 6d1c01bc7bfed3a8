package host

import (
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/runtime/mailbox"
)

// promises are the asks from Go that wait for an answer, by the refs that stand
// for them.
type promises struct {
	key    uint64
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
}

// add makes a promise and the ref that answers go to.
func (p *promises) add() (abi.Ref, *promise) {
	uid := abi.ChildRef(p.key, p.count.Add(1))
	pr := &promise{c: make(chan Message, 1), closed: make(chan struct{})}
	sh := &p.shards[uint64(uid)%promiseShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.open == nil {
		sh.open = map[abi.Ref]*promise{}
	}
	sh.open[uid] = pr
	return uid, pr
}

func (p *promises) remove(uid abi.Ref) *promise {
	sh := &p.shards[uint64(uid)%promiseShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	pr := sh.open[uid]
	delete(sh.open, uid)
	return pr
}

// resolve gives an envelope to the ask that waits for it; false if none does.
func (p *promises) resolve(s *System, uid abi.Ref, e *mailbox.Envelope) bool {
	if uid == 0 {
		return false
	}
	pr := p.remove(uid)
	if pr == nil {
		return false
	}
	m := Message{Kind: e.Kind, Sender: s.refOf(e.Sender), Correlation: e.Correlation, Payload: append([]byte(nil), e.Payload...)}
	if len(e.Headers) > 0 {
		m.Headers = append([]byte(nil), e.Headers...)
	}
	pr.c <- m
	return true
}

// end closes a promise that waits for an actor's end.
func (p *promises) end(uid abi.Ref) {
	if pr := p.remove(uid); pr != nil {
		close(pr.closed)
	}
}
