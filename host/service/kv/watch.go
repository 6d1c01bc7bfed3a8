package kv

import (
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host/service"
)

// ChangeKind is what has happened to an entry.
type ChangeKind uint8

// The kinds of changes.
const (
	Put ChangeKind = iota
	Deleted
)

// Change is the change of an entry, as watchers see it.
type Change struct {
	Key     string
	Kind    ChangeKind
	Expired bool   // Deleted: because it expired
	Version uint64 // of the write
	Entry   *Entry // Put, for watchers of values
	Omitted bool   // Put: the value is larger than WatchValue, and left out

	ns    string
	entry *record
}

// Bounds of what one watch holds for a slow watcher.
const (
	WatchChanges = 1024
	WatchBytes   = 128 << 10
	WatchValue   = 32 << 10 // larger values are left out, see [Change.Omitted]
)

// maxWatches bounds the watches of a store.
const maxWatches = 4096

// hub tells the watchers. It is safe for concurrent use.
type hub struct {
	mu      sync.Mutex
	watches []*watch // in the order in which they began
	closed  bool
	latest  uint64 // version that was published
}

// watch is a queue of changes below a prefix, bounded: what does not fit is a gap. It is
// safe for concurrent use.
type watch struct {
	hub        *hub
	ns, prefix string
	values     bool

	mu     sync.Mutex
	queue  []Change
	bytes  int
	missed bool
	ended  bool
	signal func() // called when there is something new, or it has ended
}

// watch begins to watch. since is the version after which changes are reported. signal is called
// by any goroutine, and must not wait.
func (h *hub) watch(ns, prefix string, values bool, signal func()) (w *watch, since uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, 0, unavailable(errClosed, "nothing is watched")
	case len(h.watches) >= maxWatches:
		return nil, 0, service.Errorf(service.Busy, "%d watches are open, which is the limit", maxWatches)
	}
	w = &watch{hub: h, ns: ns, prefix: prefix, values: values, signal: signal}
	h.watches = append(h.watches, w)
	return w, h.latest, nil
}

// publish queues the changes of a write for the watches.
func (h *hub) publish(version uint64, changes []Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = max(h.latest, version)
	for _, w := range h.watches {
		w.add(version, changes)
	}
}

// gap tells all watches that changes may have been missed.
func (h *hub) gap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.watches {
		w.miss()
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	list := h.watches
	h.watches = nil
	h.mu.Unlock()
	for _, w := range list {
		w.end()
	}
}

// close ends the watch.
func (w *watch) close() {
	h := w.hub
	h.mu.Lock()
	for i, x := range h.watches {
		if x == w {
			h.watches = append(h.watches[:i], h.watches[i+1:]...)
			break
		}
	}
	h.mu.Unlock()
	w.end()
}

func (w *watch) end() {
	w.mu.Lock()
	w.ended, w.queue = true, nil
	w.mu.Unlock()
	w.signal()
}

func (w *watch) add(version uint64, changes []Change) {
	w.mu.Lock()
	was := len(w.queue)
	for i := range changes {
		c := &changes[i]
		if c.ns != w.ns || !strings.HasPrefix(c.Key, w.prefix) || w.ended {
			continue
		}
		n := Change{Key: c.Key, Kind: c.Kind, Expired: c.Expired, Version: version}
		size := changeBytes + len(n.Key)
		switch {
		case !w.values || c.entry == nil:
		case len(c.entry.value) > WatchValue:
			n.Omitted = true
		default:
			n.Entry = c.entry.entry(c.Key)
			size += len(n.Entry.Value)
		}
		if len(w.queue) >= WatchChanges || w.bytes+size > WatchBytes {
			w.queue, w.bytes, w.missed, was = nil, 0, true, 0
			break
		}
		w.queue = append(w.queue, n)
		w.bytes += size
	}
	news := len(w.queue) > was || w.missed
	w.mu.Unlock()
	if news {
		w.signal()
	}
}

// changeBytes is the memory of a change in addition to its key and value.
const changeBytes = 128

func (w *watch) miss() {
	w.mu.Lock()
	w.queue, w.bytes, w.missed = nil, 0, true
	w.mu.Unlock()
	w.signal()
}

// take returns queued changes, up to the limits: gap says that changes before these were missed,
// ended that there will be no more.
func (w *watch) take(changes, bytes int) (list []Change, gap, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < len(w.queue) && n < changes {
		size += w.queue[n].size()
		if n > 0 && size > bytes {
			break
		}
		n++
	}
	list = append([]Change(nil), w.queue[:n]...)
	for i := range list {
		w.bytes -= list[i].size()
	}
	w.queue = w.queue[n:]
	if len(w.queue) == 0 {
		w.queue = nil
	}
	gap, w.missed = w.missed, false
	return list, gap, w.ended
}

func (c *Change) size() int {
	n := changeBytes + len(c.Key)
	if c.Entry != nil {
		n += len(c.Entry.Value)
	}
	return n
}
