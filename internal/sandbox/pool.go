package sandbox

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	// poolShards is a power of two. Workers that take and put instances at the same time
	// mostly use different shards; a shard's lock is held for a push or a pop.
	poolShards = 16
	// pooledBase estimates the resident memory of an instance apart from its pages: wazero's module
	// instance, and ours.
	pooledBase = 6 << 10
	// pooledPages estimates the pages that a mapped instance keeps after a reset.
	pooledPages = 128 << 10
)

// pool keeps instances that were reset.
type pool struct{ shards [poolShards]poolShard }

type poolShard struct {
	mu    sync.Mutex
	count atomic.Int32 // len(items), so that an empty shard is skipped without its lock
	items []*Instance
	_     [64]byte // a cache line between neighbours
}

// shard chooses a shard by the address of the goroutine's stack: mostly the same one for the
// same goroutine.
func shard() int {
	var local byte
	at := uint64(uintptr(unsafe.Pointer(&local))) >> 11
	return int(at * 0x9e3779b97f4a7c15 >> 60 % poolShards)
}

// take pops an instance, from a neighbour's shard if need be; nil if there is
// none.
func (p *pool) take() *Instance {
	first := shard()
	for k := range poolShards {
		s := &p.shards[(first+k)%poolShards]
		if s.count.Load() == 0 {
			continue
		}
		s.mu.Lock()
		if n := len(s.items); n > 0 {
			x := s.items[n-1]
			s.items[n-1] = nil
			s.items = s.items[:n-1]
			s.count.Store(int32(n - 1))
			s.mu.Unlock()
			return x
		}
		s.mu.Unlock()
	}
	return nil
}

// empty reports whether there is none to take.
func (p *pool) empty() bool {
	for k := range p.shards {
		if p.shards[k].count.Load() > 0 {
			return false
		}
	}
	return true
}

func (p *pool) giveBack(x *Instance) {
	s := &p.shards[shard()]
	s.mu.Lock()
	s.items = append(s.items, x)
	s.count.Store(int32(len(s.items)))
	s.mu.Unlock()
}

// drain empties the pool.
func (p *pool) drain() []*Instance {
	var all []*Instance
	for k := range p.shards {
		s := &p.shards[k]
		s.mu.Lock()
		all = append(all, s.items...)
		s.items = nil
		s.count.Store(0)
		s.mu.Unlock()
	}
	return all
}
