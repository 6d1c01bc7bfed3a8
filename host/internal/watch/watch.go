// Package watch has the death watch of an actor: the actors that it watches, and
// those that watch it.
package watch

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
)

// Set is both sides for one actor. Only the actor's own run may use it. The zero value
// is empty.
type Set struct {
	watching map[abi.Ref]string // paths, as far as they are known
	bytes    int                // of paths
	watchers *watchers          // nil: there were none
}

// watchers are a set of actors, most of one.
type watchers struct {
	one    abi.Ref // 0: none
	others map[abi.Ref]struct{}
}

// Len is the number of actors that are being watched.
func (s *Set) Len() int { return len(s.watching) }

// Bytes is how much the paths of watched actors take.
func (s *Set) Bytes() int { return s.bytes }

// Watching reports whether ref is watched.
func (s *Set) Watching(ref abi.Ref) bool { _, ok := s.watching[ref]; return ok }

// Path is the path of a watched actor, empty if it was not known.
func (s *Set) Path(ref abi.Ref) string { return s.watching[ref] }

// Watch notes a watch of ref; false if there was one already.
func (s *Set) Watch(ref abi.Ref, path string) bool {
	if s.Watching(ref) {
		return false
	}
	if s.watching == nil {
		s.watching = map[abi.Ref]string{}
	}
	s.watching[ref] = path
	s.bytes += len(path)
	return true
}

// Unwatch ends a watch; false if there was none.
func (s *Set) Unwatch(ref abi.Ref) bool {
	path, ok := s.watching[ref]
	s.bytes -= len(path)
	delete(s.watching, ref)
	return ok
}

// Watched is the watched actors, sorted.
func (s *Set) Watched() []abi.Ref {
	return sorted(s.watching)
}

// AddWatcher notes that ref, which is not 0, watches the actor.
func (s *Set) AddWatcher(ref abi.Ref) {
	if s.watchers == nil {
		s.watchers = new(watchers)
	}
	switch w := s.watchers; {
	case w.one == ref:
	case w.one == 0 && len(w.others) == 0:
		w.one = ref
	default:
		if w.others == nil {
			w.others = map[abi.Ref]struct{}{}
		}
		w.others[ref] = struct{}{}
	}
}

// RemoveWatcher undoes AddWatcher.
func (s *Set) RemoveWatcher(ref abi.Ref) {
	switch w := s.watchers; {
	case w == nil:
	case w.one == ref:
		w.one = 0
	default:
		delete(w.others, ref)
	}
}

// Watchers is the actors that watch this one, sorted.
func (s *Set) Watchers() []abi.Ref {
	w := s.watchers
	if w == nil {
		return nil
	}
	all := sorted(w.others)
	if w.one == 0 {
		return all
	}
	at, _ := slices.BinarySearch(all, w.one)
	return slices.Insert(all, at, w.one)
}

// sorted are the keys; most actors have none, and that costs nothing.
func sorted[V any](m map[abi.Ref]V) []abi.Ref {
	if len(m) == 0 {
		return nil
	}
	refs := make([]abi.Ref, 0, len(m))
	for ref := range m {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	return refs
}

// Clear forgets both sides.
func (s *Set) Clear() { s.watching, s.watchers, s.bytes = nil, nil, 0 }
