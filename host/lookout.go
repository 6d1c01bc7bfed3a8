package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/sandbox"
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

// futureSign begins the path of a guest's watch that is PresentAndFuture.
const futureSign = "+"

// Bounds of the patterns that wait for actors to be started: each start is compared with them.
const (
	mostLookouts       = 8   // of an actor
	mostLookoutsOfTree = 64  // of an actor below /user and all below it
	mostLookoutsOfAll  = 256 // of the system
	mostBehindStar     = 16  // bytes after the first '*' of an element: a comparison takes their product with the length of the name
)

// Miss implements sysmail.Missing.
func (x *lookout) Miss() { x.missed.Store(true) }

// add enters a lookout; the error says which bound it would exceed.
func (l *lookouts) add(x *lookout) error {
	for _, e := range x.at {
		if behindStar(e) > mostBehindStar {
			return fmt.Errorf("%w: a pattern that also watches future actors may have at most %d bytes after the first * of an element", ErrLimit, mostBehindStar)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own, tree := 0, 0
	for _, y := range l.list {
		if y.watcher == x.watcher {
			if own++; y.text == x.text {
				return nil
			}
		}
		if y.watcher.tree == x.watcher.tree {
			tree++
		}
	}
	if own >= mostLookouts || tree >= mostLookoutsOfTree || len(l.list) >= mostLookoutsOfAll {
		return fmt.Errorf("%w: too many patterns that also watch future actors: an actor may have %d, its tree %d, the system %d", ErrLimit, mostLookouts, mostLookoutsOfTree, mostLookoutsOfAll)
	}
	l.list = append(l.list, x)
	l.n.Store(int32(len(l.list)))
	return nil
}

// drop removes the lookouts of an actor with a text, or all if the text is empty.
func (l *lookouts) drop(a *actor, text string) {
	if l.n.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(x *lookout) bool { return x.watcher == a && (text == "" || x.text == text) })
	l.n.Store(int32(len(l.list)))
}

// of returns the texts of an actor's lookouts, sorted.
func (l *lookouts) of(a *actor) (texts []string) {
	if l.n.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		if x.watcher == a {
			texts = append(texts, x.text)
		}
	}
	slices.Sort(texts)
	return texts
}

// has reports whether a lookout is still there.
func (l *lookouts) has(x *lookout) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.list, x)
}

// born tells the actors that look out for a new actor. Any goroutine may call it.
func (l *lookouts) born(scr *scratch, a *actor) {
	l.mu.Lock()
	var at []*lookout
	for _, x := range l.list {
		if x.watcher != a && glob.SelectPath(x.at).Match(a.elements) {
			at = append(at, x)
		}
	}
	l.mu.Unlock()
	for _, x := range at {
		x.watcher.post(scr, sysmail.Msg{Kind: sysmail.Born, Own: sysmail.Own{Born: &sysmail.Birth{To: x, Ref: a.uid, Path: a.path}}})
	}
}

// behindStar is the length of what follows the first '*' of an element.
func behindStar(element string) int {
	_, rest, _ := strings.Cut(element, "*")
	return len(rest)
}

// cost is what it takes to tell of an actor with a name that another one starts, in fuel: of that which actors of
// its own tree look out for, and of the rest, of which it must not learn how much it is.
func (l *lookouts) cost(parent *actor, name string) (own, others uint64) {
	if l.n.Load() == 0 {
		return 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		if units := x.cost(parent.elements, name); x.watcher.tree == parent.tree {
			own += units
		} else {
			others += units
		}
	}
	return own, others
}

// cost is what comparing takes.
func (x *lookout) cost(above []string, name string) (units uint64) {
	units = sandbox.CostNode
	if len(x.at) != len(above)+1 {
		return units
	}
	for i, e := range x.at {
		s := name
		if i < len(above) {
			s = above[i]
		}
		if glob.HasMeta(e) {
			units += costCompared * uint64(len(s)*(1+behindStar(e)))
		} else if e != s {
			break
		}
	}
	return units
}

// costCompared is what a byte of a name costs for each byte of a pattern that it is compared with.
const costCompared = 4

// sawBorn watches an actor that was started.
func (a *actor) sawBorn(scr *scratch, b *sysmail.Birth) {
	x := b.To.(*lookout)
	if !a.sys.lookouts.has(x) {
		return
	}
	a.watchFound(scr, x, b.Ref, b.Path, a.sys.elementsOf(b.Path))
	if x.missed.Swap(false) {
		a.lookAround(scr, x)
	}
}

// lookAround watches all actors that a lookout would have been told of.
func (a *actor) lookAround(scr *scratch, x *lookout) {
	for _, t := range a.visible(scr, place{elements: x.at, child: x.child}) {
		if t != a {
			a.watchFound(scr, x, t.uid, t.path, t.elements)
		}
	}
}

// watchFound watches an actor that a lookout was told of, if the watcher may.
func (a *actor) watchFound(scr *scratch, x *lookout, uid abi.Ref, path string, elements []string) {
	if !x.child && !a.mayWatch(elements) {
		return
	}
	if err := a.watchRef(scr, uid, path); err != nil && !x.told {
		x.told = true
		a.sys.logf(a, abi.LogWarn, "watching %s: there are more actors than may be watched (%v)", x.text, err)
	}
}

// visible is the actors that a path with patterns matches, as far as the actor may watch them; actors in Go
// may watch all.
func (a *actor) visible(scr *scratch, p place) []*actor {
	if g, ok := a.behaviour.(*guest); ok {
		found, _ := a.reachable(p, g.walks(scr))
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
		x := &lookout{watcher: a, text: path, at: p.elements, child: p.child}
		if err := a.sys.lookouts.add(x); err != nil {
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
	a.sys.lookouts.drop(a, path)
	pattern := glob.SelectPath(p.elements)
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

// isMany reports whether a guest's watch is for watchMany.
func isMany(cmd *abi.Command) bool {
	return cmd.ToPath != nil && (cmd.ToPath[0] == futureSign[0] || glob.HasMeta(string(cmd.ToPath)))
}
