package host

import (
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
)

// uidTable finds actors by their refs: open addressing over keys that are random
// already. Looking up takes no lock; changing takes one.
type uidTable struct {
	slots atomic.Pointer[[]uidSlot]
	mu    sync.Mutex
	live  int
	used  int // keys ever put since the last growth, live or not
}

type uidSlot struct {
	key atomic.Uint64
	val atomic.Pointer[cell]
}

const uidTableMin = 64

// get returns the actor, or nil.
func (t *uidTable) get(uid abi.Ref) *cell {
	p := t.slots.Load()
	if p == nil || uid == 0 {
		return nil
	}
	slots := *p
	mask := uint64(len(slots) - 1)
	for i := uint64(uid) & mask; ; i = (i + 1) & mask {
		switch slots[i].key.Load() {
		case uint64(uid):
			return slots[i].val.Load()
		case 0:
			return nil
		}
	}
}

// put adds an actor; false if the uid is taken by one that lives.
func (t *uidTable) put(uid abi.Ref, c *cell) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.slots.Load()
	if p == nil || (t.used+1)*2 > len(*p) {
		t.grow()
		p = t.slots.Load()
	}
	slots := *p
	mask := uint64(len(slots) - 1)
	for i := uint64(uid) & mask; ; i = (i + 1) & mask {
		s := &slots[i]
		switch s.key.Load() {
		case uint64(uid):
			if s.val.Load() != nil {
				return false
			}
			s.val.Store(c)
			t.live++
			return true
		case 0:
			s.val.Store(c)
			s.key.Store(uint64(uid)) // after the value: readers find it whole
			t.live++
			t.used++
			return true
		}
	}
}

// remove takes an actor out.
func (t *uidTable) remove(uid abi.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.slots.Load()
	if p == nil {
		return
	}
	slots := *p
	mask := uint64(len(slots) - 1)
	for i := uint64(uid) & mask; ; i = (i + 1) & mask {
		s := &slots[i]
		switch s.key.Load() {
		case uint64(uid):
			if s.val.Swap(nil) != nil {
				t.live--
			}
			return
		case 0:
			return
		}
	}
}

// grow copies what lives into a table with room for as much again. t.mu is held.
func (t *uidTable) grow() {
	size := uidTableMin
	for size < (t.live+1)*4 {
		size *= 2
	}
	fresh := make([]uidSlot, size)
	mask := uint64(size - 1)
	if old := t.slots.Load(); old != nil {
		for i := range *old {
			s := &(*old)[i]
			c := s.val.Load()
			if c == nil {
				continue
			}
			key := s.key.Load()
			j := key & mask
			for fresh[j].key.Load() != 0 {
				j = (j + 1) & mask
			}
			fresh[j].val.Store(c)
			fresh[j].key.Store(key)
		}
	}
	t.used = t.live
	t.slots.Store(&fresh)
}

// len is the number of live actors.
func (t *uidTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}
