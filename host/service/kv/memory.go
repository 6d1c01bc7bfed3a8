package kv

import (
	"bytes"
	"sync"

	"github.com/tidwall/btree"
)

// memory is an engine in memory: for tests, and for runs without a state folder.
type memory struct {
	mu    sync.Mutex // of writers, and of those that take a snapshot
	tree  *btree.BTreeG[write]
	bytes int64
}

func newMemory() *memory {
	return &memory{tree: btree.NewBTreeGOptions(func(a, b write) bool { return bytes.Compare(a.key, b.key) < 0 }, btree.Options{NoLocks: true})}
}

func (m *memory) get(key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, found := m.tree.Get(write{key: key})
	return bytes.Clone(w.value), found, nil
}

func (m *memory) scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error {
	m.mu.Lock()
	tree := m.tree.Copy() // shares what is not written meanwhile
	m.mu.Unlock()
	if reverse {
		tree.Descend(write{key: to}, func(w write) bool {
			switch {
			case bytes.Equal(w.key, to):
				return true
			case bytes.Compare(w.key, from) < 0:
				return false
			}
			return f(w.key, w.value)
		})
		return nil
	}
	tree.Ascend(write{key: from}, func(w write) bool { return bytes.Compare(w.key, to) < 0 && f(w.key, w.value) })
	return nil
}

func (m *memory) apply(w *writes, _ Durability) (func() error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range w.list {
		var was write
		var had bool
		if x.value == nil {
			was, had = m.tree.Delete(x)
		} else {
			was, had = m.tree.Set(x)
			m.bytes += int64(len(x.key) + len(x.value))
		}
		if had {
			m.bytes -= int64(len(was.key) + len(was.value))
		}
	}
	return done, nil
}

func (m *memory) trouble() (<-chan struct{}, error) { return nil, nil }

func (m *memory) size() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

func (m *memory) close() error { return nil }
