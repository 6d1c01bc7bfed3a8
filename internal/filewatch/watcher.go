package filewatch

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// Options say how a watcher works. Zero fields mean the defaults.
type Options struct {
	Clock clock.Clock // default: the machine's
	// Quiet is how long there must be no hint before the files are checked; default 80 ms.
	Quiet time.Duration
	// Most is how long hints may go on before the files are checked anyway; default 1 s.
	Most time.Duration
	// Every is how often the files are checked without a hint; default 2 s.
	Every time.Duration
	// Poll is the same if some folders have no hints; default 300 ms.
	Poll time.Duration
	// Trouble is called, once for each folder, with the reason why it has no hints; may be nil.
	Trouble func(dir string, err error)

	hinter hinter // nil: the system's
}

// Defaults of [Options].
const (
	DefaultQuiet = 80 * time.Millisecond
	DefaultMost  = time.Second
	DefaultEvery = 2 * time.Second
	DefaultPoll  = 300 * time.Millisecond
)

// hinter reports that something has happened in folders.
type hinter interface {
	add(dir string) error
	remove(dir string)
	close()
}

// Watcher reports changes of watched files. It is safe for concurrent use.
type Watcher struct {
	o      Options
	c      chan struct{} // of one: there are changes to take
	looks  sync.Mutex    // one look at a time
	closed bool          // guarded by looks

	mu      sync.Mutex // never held while waiting
	set     Set
	state   state
	pending []string        // changes that were not taken yet
	heard   map[string]bool // folders with hints
	mute    map[string]bool // folders without hints
	first   time.Time       // hint since the last look; zero: none
	due     clock.Timer     // the look after it
	next    clock.Timer     // the look without one
}

// New starts a watcher that watches nothing yet.
func New(o Options) *Watcher {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&o.Quiet, DefaultQuiet)
	set(&o.Most, DefaultMost)
	set(&o.Every, DefaultEvery)
	set(&o.Poll, DefaultPoll)
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Trouble == nil {
		o.Trouble = func(string, error) {}
	}
	w := &Watcher{o: o, c: make(chan struct{}, 1), heard: map[string]bool{}, mute: map[string]bool{}}
	if w.o.hinter == nil {
		w.o.hinter = systemHints(w.Hint, w.gone)
	}
	w.schedule()
	return w
}

// Watch replaces what is watched. Files that were watched before are compared with their last
// check, so that no change in between is lost; new ones with their present state.
func (w *Watcher) Watch(set Set) {
	w.looks.Lock()
	defer w.looks.Unlock()
	if w.closed {
		return
	}
	w.mu.Lock()
	w.set = Set{Files: slices.Clone(set.Files), Dirs: slices.Clone(set.Dirs), Skip: slices.Clone(set.Skip)}
	w.mu.Unlock()
	w.look()
}

// Mark is the state of the files at a check.
type Mark struct{ files map[string]stamp }

// Mark returns the state of the files at the last check. Take one before reading them.
func (w *Watcher) Mark() Mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Mark{w.state.files}
}

// And is a mark with the files of another one that it does not have.
func (m Mark) And(later Mark) Mark {
	all := map[string]stamp{}
	maps.Copy(all, later.files)
	maps.Copy(all, m.files)
	return Mark{all}
}

// Rewritten returns the files whose contents are those of a mark, and that were written since,
// sorted: a reader may have seen other contents in between. Files with other contents are reported as
// usual.
func (w *Watcher) Rewritten(since Mark) (paths []string) {
	w.looks.Lock()
	defer w.looks.Unlock()
	if w.closed {
		return nil
	}
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, now := range w.state.files {
		if before, ok := since.files[path]; ok && before.rewritten(now) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// C has a value when there are changes to take.
func (w *Watcher) C() <-chan struct{} { return w.c }

// Take returns the paths that have changed since the last Take, sorted.
func (w *Watcher) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.pending
	w.pending = nil
	return taken
}

// Close ends the watcher.
func (w *Watcher) Close() {
	w.looks.Lock()
	defer w.looks.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	w.mu.Lock()
	for _, t := range []clock.Timer{w.due, w.next} {
		if t != nil {
			t.Stop()
		}
	}
	w.mu.Unlock()
	w.o.hinter.close()
}

// Hint says that something has happened to a path: it is looked at when there were no more
// hints for a while.
func (w *Watcher) Hint(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.concerns(path) {
		return
	}
	now := w.o.Clock.Now()
	if w.first.IsZero() {
		w.first = now
	}
	if w.due != nil {
		w.due.Stop()
	}
	wait := min(w.o.Quiet, max(0, w.first.Add(w.o.Most).Sub(now)))
	w.due = w.o.Clock.AfterFunc(wait, w.rung)
}

// concerns reports whether a path may be one that is watched, or lie above one.
func (w *Watcher) concerns(path string) bool {
	if w.set.skips(path) {
		return false
	}
	if _, ok := w.state.files[path]; ok {
		return true
	}
	above := func(p string) bool { return within(p, path) }
	if slices.ContainsFunc(w.set.Files, above) {
		return true
	}
	for _, d := range w.set.Dirs {
		if above(d.Path) {
			return true
		}
		if !within(path, d.Path) || !d.Deep && filepath.Dir(path) != d.Path {
			continue
		}
		if d.Name == nil || d.Name(filepath.Base(path)) || d.Deep && isDir(path) {
			return true
		}
	}
	return false
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// rung is the end of the hints.
func (w *Watcher) rung() {
	w.looks.Lock()
	defer w.looks.Unlock()
	if !w.closed {
		w.look()
	}
}

// look compares, and reports differences. The caller must hold looks.
func (w *Watcher) look() {
	w.mu.Lock()
	set, before := w.set, w.state
	w.first = time.Time{}
	w.mu.Unlock()
	now, folders := lookAt(set, before, w.o.Clock.Now())
	for range mostAgain { // what has changed before there were hints of a folder
		if !w.listen(folders) {
			break
		}
		before = before.with(now)
		now, folders = lookAt(set, now, w.o.Clock.Now())
	}
	found := changes(before, now)
	w.mu.Lock()
	w.state = now
	for _, path := range found {
		if !slices.Contains(w.pending, path) {
			w.pending = append(w.pending, path)
		}
	}
	slices.Sort(w.pending)
	w.mu.Unlock()
	if len(found) > 0 {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

// mostAgain bounds how often new folders are looked at again in one look.
const mostAgain = 3

// listen asks for hints of exactly these folders; more reports whether some are new.
func (w *Watcher) listen(dirs []string) (more bool) {
	w.mu.Lock()
	var drop, add []string
	for dir := range w.heard {
		if !slices.Contains(dirs, dir) {
			drop = append(drop, dir)
			delete(w.heard, dir)
		}
	}
	maps.DeleteFunc(w.mute, func(dir string, _ bool) bool { return !slices.Contains(dirs, dir) })
	for _, dir := range dirs {
		if !w.heard[dir] {
			add = append(add, dir)
			w.heard[dir] = true
		}
	}
	w.mu.Unlock()
	for _, dir := range drop {
		w.o.hinter.remove(dir)
	}
	for _, dir := range add {
		err := w.o.hinter.add(dir)
		w.mu.Lock()
		known := w.mute[dir]
		if err == nil {
			more = true
			delete(w.mute, dir)
		} else {
			w.mute[dir] = true
			delete(w.heard, dir)
		}
		w.mu.Unlock()
		if err != nil && !known {
			w.o.Trouble(dir, err)
		}
	}
	return more
}

// gone notes that there are no hints of a folder any more: it was removed, or renamed.
func (w *Watcher) gone(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.heard, dir)
}

// schedule sets the next look without a hint.
func (w *Watcher) schedule() {
	w.mu.Lock()
	defer w.mu.Unlock()
	every := w.o.Every
	if len(w.mute) > 0 {
		every = w.o.Poll
	}
	w.next = w.o.Clock.AfterFunc(every, func() {
		w.looks.Lock()
		defer w.looks.Unlock()
		if !w.closed {
			w.look()
			w.schedule()
		}
	})
}
