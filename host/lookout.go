package host

import (
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/glob"
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

// sawBorn watches an actor that was started.
func (a *actor) sawBorn(scr *scratch, b *sysmail.Birth) {
	x := b.To.(*lookout)
	if !a.sys.lookouts.Has(x) {
		return
	}
	a.watchFound(scr, x, b.Ref, b.Path, a.sys.elementsOf(b.Path))
	if x.Missed() {
		a.lookAround(scr, x)
	}
}

// lookAround watches all actors that a lookout would have been told of.
func (a *actor) lookAround(scr *scratch, x *lookout) {
	for _, t := range a.visible(scr, place{Elements: x.At, Child: x.Child}) {
		if t != a {
			a.watchFound(scr, x, t.uid, t.path, t.elements)
		}
	}
}

// watchFound watches an actor that a lookout was told of, if the watcher may.
func (a *actor) watchFound(scr *scratch, x *lookout, uid abi.Ref, path string, elements []string) {
	if !x.Child && !a.mayWatch(elements) {
		return
	}
	if err := a.watchRef(scr, uid, path); err != nil && !x.Told {
		x.Told = true
		a.sys.logf(a, abi.LogWarn, "watching %s: there are more actors than may be watched (%v)", x.Text, err)
	}
}

// visible is the actors that a path with patterns matches, as far as the actor may watch them; actors in Go
// may watch all.
func (a *actor) visible(scr *scratch, p place) []*actor {
	if g, ok := a.behaviour.(*guest); ok {
		found, _ := a.sys.nodes.Reachable(p, a.caps.send, g.pace.Walks(scr.w))
		return found
	}
	found, _ := a.sys.selected(p, "")
	return found
}

// mayWatch reports whether an actor's capabilities reach a path; actors in Go need none.
func (a *actor) mayWatch(elements []string) bool {
	if _, guest := a.behaviour.(*guest); !guest {
		return true
	}
	return glob.MatchAnyPath(a.caps.send, elements)
}

// elementsOf are the elements of a path with scheme and system.
func (s *System) elementsOf(path string) []string {
	return strings.Split(strings.TrimPrefix(path, s.root+"/"), "/")
}

func (a *actor) watchPath(scr *scratch, p place, path string, scope Scope) (n int, err error) {
	if scope == PresentAndFuture { // before it is looked who is there, so that nobody is missed
		if err := a.sys.lookouts.Add(newLookout(a, p, path)); err != nil {
			return 0, err
		}
	}
	found := 0
	for _, t := range a.visible(scr, p) {
		found++
		if t == a || a.work.Watch.Watching(t.uid) {
			continue
		}
		if err = a.watchRef(scr, t.uid, t.path); err != nil {
			return n, err
		}
		n++
	}
	if found == 0 && scope == Present {
		return 0, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return n, nil
}

func (a *actor) unwatchPath(scr *scratch, p place, path string) {
	a.sys.lookouts.Drop(a, path)
	pattern := glob.SelectPath(p.Elements)
	for _, uid := range a.work.Watch.Watched() {
		elements := []string(nil)
		if path := a.work.Watch.Path(uid); path != "" {
			elements = a.sys.elementsOf(path)
		} else if t := a.sys.here(uid); t != nil {
			elements = t.elements
		}
		if elements != nil && pattern.Match(elements) {
			a.unwatchRef(scr, uid)
		}
	}
}
