package stray

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
)

// Recents are recently used refs: at least the last recentRefs of them, with the paths of those
// that were actors, so that a dead letter can state its receiver. Together they take 10 MiB at
// most.
type Recents struct {
	mu       sync.Mutex
	now, old map[abi.Ref]string
}

const (
	MostRecent = 1 << 15
	recentPath = 96 // bytes; longer ones are not kept
)

func (r *Recents) Add(ref abi.Ref, path string) {
	if len(path) > recentPath {
		path = ""
	}
	r.mu.Lock()
	if len(r.now) >= MostRecent {
		r.old, r.now = r.now, nil
	}
	if r.now == nil {
		r.now = map[abi.Ref]string{}
	}
	r.now[ref] = path
	r.mu.Unlock()
}

// Find is the path of a recently used ref, "" if it is not known; false if the ref was not used recently.
func (r *Recents) Find(ref abi.Ref) (path string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if path, ok = r.now[ref]; !ok {
		path, ok = r.old[ref]
	}
	return path, ok
}
