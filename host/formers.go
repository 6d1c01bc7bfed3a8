package host

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
)

// formers is where actors were that have stopped lately: at least the last formerMost of them,
// those with long paths aside. So a dead letter says for whom it was.
type formers struct {
	mu       sync.Mutex
	now, old map[abi.Ref]string
}

const (
	formerMost = 1 << 13
	formerPath = 96 // bytes: with all they take 2 MiB
)

func (e *formers) add(ref abi.Ref, path string) {
	if len(path) > formerPath {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.now) >= formerMost {
		e.old, e.now = e.now, nil
	}
	if e.now == nil {
		e.now = map[abi.Ref]string{}
	}
	e.now[ref] = path
}

// path is where the actor was that had the ref, "" if that is not known (any more).
func (e *formers) path(ref abi.Ref) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if path, ok := e.now[ref]; ok {
		return path
	}
	return e.old[ref]
}
