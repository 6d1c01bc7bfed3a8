// Package lives counts the lives of actors with a name of their own. Their refs follow from the path and the number of the life, so
// that other actors, which outlive the process, may keep them.
package lives

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/secret"
)

// most bounds the names whose lives are counted. Actors of further ones get refs that do not follow from the name.
const most = 1 << 16

// Table has the lives of a system. All methods are for any goroutine.
type Table struct {
	secret *secret.Secret

	mu       sync.Mutex
	next     map[string]uint64 // by the paths of actors: their next life
	repeated map[string]uint64 // the life after the last one that a record has named
}

// New is a table without lives. The refs are derived from the secret.
func New(from *secret.Secret) *Table {
	return &Table{secret: from, next: map[string]uint64{}, repeated: map[string]uint64{}}
}

// Next is the ref of the next life of an actor below a guardian; false if it does not follow from the path.
func (t *Table) Next(guardian abi.Ref, path string) (ref abi.Ref, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, known := t.next[path]
	if !known && len(t.next) >= most {
		return 0, false
	}
	t.next[path] = n + 1
	return abi.ChildRef(t.key(guardian, path), guardian.Node(), n), true
}

// First is the ref of the first life of an actor below a guardian, which need not be there.
func (t *Table) First(guardian abi.Ref, path string) abi.Ref {
	return abi.ChildRef(t.key(guardian, path), guardian.Node(), 0)
}

// key is the key of the refs of an actor's lives.
func (t *Table) key(guardian abi.Ref, path string) abi.RefKey {
	sum := sha256.Sum256([]byte(path))
	key := t.secret.Derive(secret.ForNamed, guardian, binary.LittleEndian.Uint64(sum[:]))
	return abi.RefKey(key[:abi.RefKeySize])
}

// Lived notes a recorded life of an actor below a guardian; false if no life has the ref. Records name lives in their order, so
// it looks behind the one before first.
func (t *Table) Lived(guardian abi.Ref, path string, ref abi.Ref) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := t.key(guardian, path)
	from := t.repeated[path]
	for i := range uint64(1 << 20) {
		n := (from + i) % (1 << 20)
		if abi.ChildRef(key, guardian.Node(), n) == ref {
			t.next[path], t.repeated[path] = max(t.next[path], n+1), n+1
			return true
		}
	}
	return false
}

// Save copies all lives; what it returns sorts them by path, later.
func (t *Table) Save() func() []saved.Lives {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := maps.Clone(t.next)
	return func() (all []saved.Lives) {
		for path, n := range next {
			all = append(all, saved.Lives{Path: path, N: n})
		}
		slices.SortFunc(all, func(a, b saved.Lives) int { return strings.Compare(a.Path, b.Path) })
		return all
	}
}

// Load adds saved lives.
func (t *Table) Load(all []saved.Lives) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range all {
		t.next[l.Path] = max(l.N, t.next[l.Path])
	}
}
