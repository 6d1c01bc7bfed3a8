package host

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// watching is an actor as one that watches others, on the worker that runs it; scr is nil outside workers.
type watching struct {
	*actor
	scr *scratch
}

// addRef watches an actor, which may have ended already. path is
// the target's as far as the watcher knows it.
func (a watching) addRef(uid abi.Ref, path string) error {
	if uid == a.uid {
		return nil
	}
	if entered, err := a.work.AddWatch(a, uid, path); !entered {
		return err
	}
	if !a.sys.signal(a.scr, uid, signal.Signal{Kind: signal.Watch, From: a.uid}) {
		a.strayed(a.scr, uid)
	}
	return nil
}

// dropRef ends a watch; a notification in the mailbox is dropped when its turn
// comes.
func (a watching) dropRef(uid abi.Ref) {
	if !a.work.DropWatch(a, uid) {
		return
	}
	a.sys.signal(a.scr, uid, signal.Signal{Kind: signal.Unwatch, From: a.uid})
}

// born watches an actor that was started.
func (a watching) born(b *sysmail.Birth) {
	x := b.To.(*lookout)
	if !a.sys.lookouts.Has(x) {
		return
	}
	a.found(x, b.Ref, b.Path, a.sys.elementsOf(b.Path))
	if x.Missed() {
		a.around(x)
	}
}

// around watches all actors that a lookout would have been told of.
func (a watching) around(x *lookout) {
	for _, t := range a.visible(place{Elements: x.At, Child: x.Child}) {
		if t != a.actor {
			a.found(x, t.uid, t.path, t.elements)
		}
	}
}

// found watches an actor that a lookout was told of, if the watcher may.
func (a watching) found(x *lookout, uid abi.Ref, path string, elements []string) {
	if !x.Child && !a.may(elements) {
		return
	}
	if err := a.addRef(uid, path); err != nil && !x.Told {
		x.Told = true
		a.sys.logf(a.actor, abi.LogWarn, "watching %s: there are more actors than may be watched (%v)", x.Text, err)
	}
}

// visible is the actors that a path with patterns matches, as far as the actor may watch them; actors in Go
// may watch all.
func (a watching) visible(p place) []*actor {
	if g, ok := a.behaviour.(*guest); ok {
		found, _ := a.sys.nodes.Reachable(p, a.rules.Load().compiled.send, g.pace.Walks(a.scr.w))
		return found
	}
	found, _ := a.sys.selected(p, "")
	return found
}

// may reports whether an actor's capabilities reach a path; actors in Go need none.
func (a watching) may(elements []string) bool {
	if _, guest := a.behaviour.(*guest); !guest {
		return true
	}
	return glob.MatchAnyPath(a.rules.Load().compiled.send, elements)
}

// addPath watches all that a path with patterns matches, and with PresentAndFuture those that will; n are newly watched.
func (a watching) addPath(p place, path string, scope Scope) (n int, err error) {
	if scope == PresentAndFuture { // before it is looked who is there, so that nobody is missed
		if err := a.sys.lookouts.Add(newLookout(a.actor, p, path)); err != nil {
			return 0, err
		}
	}
	found := 0
	for _, t := range a.visible(p) {
		found++
		if t == a.actor || a.work.Watch.Watching(t.uid) {
			continue
		}
		if err = a.addRef(t.uid, t.path); err != nil {
			return n, err
		}
		n++
	}
	if found == 0 && scope == Present {
		return 0, fmt.Errorf("%w: %s", ErrUnknown, path)
	}
	return n, nil
}

// dropPath ends the watches of all that a path with patterns matches, and of those that will.
func (a watching) dropPath(p place, path string) {
	a.sys.lookouts.Drop(a.actor, path)
	pattern := glob.SelectPath(p.Elements)
	for _, uid := range a.work.Watch.Watched() {
		elements := []string(nil)
		if path := a.work.Watch.Path(uid); path != "" {
			elements = a.sys.elementsOf(path)
		} else if t := a.sys.here(uid); t != nil {
			elements = t.elements
		}
		if elements != nil && pattern.Match(elements) {
			a.dropRef(uid)
		}
	}
}
