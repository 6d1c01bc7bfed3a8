// Package lookouts has the patterns of watches that also cover actors that are started later: each start is compared with
// them.
package lookouts

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Bounds of the patterns that wait for actors to be started: each start is compared with them.
const (
	Most           = 8   // of a watcher
	MostOfTree     = 64  // of an actor below /user and all below it
	mostOfAll      = 256 // of the system
	MostBehindStar = 16  // bytes after the first '*' of an element: a comparison takes their product with the length of the name
)

// Pattern is what a watcher looks out for. W is who watches.
type Pattern[W comparable] struct {
	Watcher W
	Tree    any // of the watcher: what bounds and prices are shared by
	Text    string
	At      []string // the elements of the pattern
	Child   bool     // it was written as "./name"
	Told    bool     // it was told that there are more than may be watched; for the watcher's run alone

	missed atomic.Bool // some starts were not told one by one
}

// Miss implements sysmail.Missing: starts were not told one by one.
func (x *Pattern[W]) Miss() { x.missed.Store(true) }

// Missed reports whether starts were not told, and forgets it.
func (x *Pattern[W]) Missed() bool { return x.missed.Swap(false) }

// Table has the patterns of a system. The zero value is empty. Any goroutine may use it.
type Table[W comparable] struct {
	n    atomic.Int32
	mu   sync.Mutex
	list []*Pattern[W]
}

// None reports whether the table is empty. It takes no lock.
func (l *Table[W]) None() bool { return l.n.Load() == 0 }

// Len is how many patterns there are.
func (l *Table[W]) Len() int { return int(l.n.Load()) }

// Add enters a pattern, unless its watcher has an equal one; the error says which bound it would exceed.
func (l *Table[W]) Add(x *Pattern[W]) error {
	for _, e := range x.At {
		if behindStar(e) > MostBehindStar {
			return fmt.Errorf("%w: a pattern that also watches future actors may have at most %d bytes after the first * of an element", errs.ErrLimit, MostBehindStar)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own, tree := 0, 0
	for _, y := range l.list {
		if y.Watcher == x.Watcher {
			if own++; y.Text == x.Text {
				return nil
			}
		}
		if y.Tree == x.Tree {
			tree++
		}
	}
	if own >= Most || tree >= MostOfTree || len(l.list) >= mostOfAll {
		return fmt.Errorf("%w: too many patterns that also watch future actors: an actor may have %d, its tree %d, the system %d", errs.ErrLimit, Most, MostOfTree, mostOfAll)
	}
	l.list = append(l.list, x)
	l.n.Store(int32(len(l.list)))
	return nil
}

// Drop removes the patterns of a watcher with a text, or all if the text is empty.
func (l *Table[W]) Drop(a W, text string) {
	if l.n.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(x *Pattern[W]) bool { return x.Watcher == a && (text == "" || x.Text == text) })
	l.n.Store(int32(len(l.list)))
}

// Of returns the texts of a watcher's patterns, sorted.
func (l *Table[W]) Of(a W) (texts []string) {
	if l.n.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		if x.Watcher == a {
			texts = append(texts, x.Text)
		}
	}
	slices.Sort(texts)
	return texts
}

// Has reports whether a pattern is still there.
func (l *Table[W]) Has(x *Pattern[W]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.list, x)
}

// Born returns the patterns that match the path of an actor that was started, except its own.
func (l *Table[W]) Born(a W, elements []string) (at []*Pattern[W]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		if x.Watcher != a && glob.SelectPath(x.At).Match(elements) {
			at = append(at, x)
		}
	}
	return at
}

// behindStar is the length of what follows the first '*' of an element.
func behindStar(element string) int {
	_, rest, _ := strings.Cut(element, "*")
	return len(rest)
}

// Cost is the price, in fuel, of comparing a new actor with the patterns: those of the tree that it belongs to, and all
// others. Its parent must not learn how many others there are. above are the elements of the parent's path.
func (l *Table[W]) Cost(tree any, above []string, name string) (own, others uint64) {
	if l.n.Load() == 0 {
		return 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		if units := x.cost(above, name); x.Tree == tree {
			own += units
		} else {
			others += units
		}
	}
	return own, others
}

// cost is what comparing takes.
func (x *Pattern[W]) cost(above []string, name string) (units uint64) {
	units = sandbox.CostNode
	if len(x.At) != len(above)+1 {
		return units
	}
	for i, e := range x.At {
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
