package host

import (
	"strings"

	"github.com/wasmactors/wasmactors/host/internal/lookouts"
)

// Watching by a pattern: actors that match now are watched as if by ref and, if that is wanted,
// so are actors that are started later.

// Scope says which actors a pattern of [Selection.Watch] covers.
type Scope uint8

const (
	// Present are those that match now.
	Present Scope = iota
	// PresentAndFuture are those that match now, and those that are started later.
	PresentAndFuture
)

// lookout is the pattern of an actor's watch.
type lookout = lookouts.Pattern[*actor]

func newLookout(a *actor, p place, text string) *lookout {
	return &lookout{Watcher: a, Tree: a.tree, Text: text, At: p.Elements, Child: p.Child}
}

// elementsOf are the elements of a path with scheme and system.
func (s *System) elementsOf(path string) []string {
	return strings.Split(strings.TrimPrefix(path, s.root+"/"), "/")
}
