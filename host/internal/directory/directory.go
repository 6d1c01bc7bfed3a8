// Package directory finds actors by their refs.
package directory

import (
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
)

// Table is a hash table of open addressing over keys that are random already. Get takes
// no lock; Put and Remove take one. The zero value is empty; all methods are for any
// goroutine.
type Table[T any] struct {
	slots atomic.Pointer[[]slot[T]]
	miss  atomic.Pointer[func(abi.Ref) bool]
	mu    sync.Mutex
	live  int
	used  int // keys ever put since the last growth, live or not
}

type slot[T any] struct {
	key   atomic.Uint64
	value atomic.Pointer[T]
}

const smallest = 64

// Missing has f called with refs that Get does not find. If it is true f has entered what has the ref, and Get finds that.
func (t *Table[T]) Missing(f func(abi.Ref) bool) { t.miss.Store(&f) }

// Get is the entry of a ref, or nil.
func (t *Table[T]) Get(ref abi.Ref) *T {
	p := t.slots.Load()
	if p == nil || ref == 0 {
		return t.missed(ref)
	}
	slots := *p
	mask := uint64(len(slots) - 1)
	for i := uint64(ref) & mask; ; i = (i + 1) & mask {
		switch slots[i].key.Load() {
		case uint64(ref):
			if v := slots[i].value.Load(); v != nil {
				return v
			}
			return t.missed(ref)
		case 0:
			return t.missed(ref)
		}
	}
}

// missed is Get of a ref that has no entry.
func (t *Table[T]) missed(ref abi.Ref) *T {
	if f := t.miss.Load(); f != nil && ref != 0 && (*f)(ref) {
		return t.Peek(ref)
	}
	return nil
}

// Peek is Get without what Missing was given.
func (t *Table[T]) Peek(ref abi.Ref) *T {
	if s := t.slot(ref); s != nil {
		return s.value.Load()
	}
	return nil
}

// slot is where the ref is or was; nil: it never was.
func (t *Table[T]) slot(ref abi.Ref) *slot[T] {
	p := t.slots.Load()
	if p == nil || ref == 0 {
		return nil
	}
	slots := *p
	mask := uint64(len(slots) - 1)
	for i := uint64(ref) & mask; ; i = (i + 1) & mask {
		switch slots[i].key.Load() {
		case uint64(ref):
			return &slots[i]
		case 0:
			return nil
		}
	}
}

// Put enters v; false if something else has the ref.
func (t *Table[T]) Put(ref abi.Ref, v *T) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.slots.Load()
	if p == nil || (t.used+1)*2 > len(*p) {
		t.grow()
		p = t.slots.Load()
	}
	slots := *p
	mask := uint64(len(slots) - 1)
	for i := uint64(ref) & mask; ; i = (i + 1) & mask {
		s := &slots[i]
		switch s.key.Load() {
		case uint64(ref):
			if s.value.Load() != nil {
				return false
			}
			s.value.Store(v)
			t.live++
			return true
		case 0:
			s.value.Store(v)
			s.key.Store(uint64(ref)) // after the value: readers find it whole
			t.live++
			t.used++
			return true
		}
	}
}

// Remove removes the entry of a ref and returns it, or nil.
func (t *Table[T]) Remove(ref abi.Ref) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(ref)
	if s == nil {
		return nil
	}
	v := s.value.Swap(nil)
	if v != nil {
		t.live--
	}
	return v
}

// grow copies what lives into a table with room for as much again. t.mu is held.
func (t *Table[T]) grow() {
	size := smallest
	for size < (t.live+1)*4 {
		size *= 2
	}
	fresh := make([]slot[T], size)
	mask := uint64(size - 1)
	if old := t.slots.Load(); old != nil {
		for i := range *old {
			s := &(*old)[i]
			v := s.value.Load()
			if v == nil {
				continue
			}
			key := s.key.Load()
			j := key & mask
			for fresh[j].key.Load() != 0 {
				j = (j + 1) & mask
			}
			fresh[j].value.Store(v)
			fresh[j].key.Store(key)
		}
	}
	t.used = t.live
	t.slots.Store(&fresh)
}

// Len is the number of entries.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// Each calls f for every entry, in no particular order. Entries that come and go meanwhile
// may be left out.
func (t *Table[T]) Each(f func(*T)) {
	p := t.slots.Load()
	if p == nil {
		return
	}
	for i := range *p {
		if v := (*p)[i].value.Load(); v != nil {
			f(v)
		}
	}
}
