package kv

import (
	"strings"

	"github.com/tidwall/btree"

	"github.com/wasmactors/wasmactors/host/service"
)

// held is what a cluster keeps, as far as a node knows: entries, and for a while what was removed or has ended. It belongs to a
// shared, whose lock is held.
type held struct {
	of    map[string]holding
	ends  *btree.BTreeG[ending]
	bytes map[string]int64 // of the namespaces of this bundle
	total int64            // of all bundles

	seen  uint64 // the latest revision of which the node was told
	under []*growth
}

// holding is what the cluster keeps under a key.
type holding struct {
	ns    string // "": of another bundle, or of no node
	size  int64
	until int64 // when the cluster forgets it, ns since 1970; 0: never
}

type ending struct {
	until int64
	key   string
}

// growth is by how much a write that is under way makes a namespace grow.
type growth struct {
	ns    string
	keys  int64
	bytes int64
	at    uint64 // its revision, once it is known: until the node was told of it
}

const (
	// mostGrowths bounds what is noted of writes that were carried out and of which the node was not told yet.
	mostGrowths = 1024
	// forgetAtOnce bounds how many keys are forgotten at once.
	forgetAtOnce = 10_000
)

func newHeld() held {
	return held{of: map[string]holding{}, bytes: map[string]int64{}, ends: btree.NewBTreeGOptions(func(a, b ending) bool {
		return a.until < b.until || a.until == b.until && a.key < b.key
	}, btree.Options{NoLocks: true})}
}

// sharedSize is what the cluster needs for an entry, in bytes.
func sharedSize(key string, value []byte) int64 {
	return int64(len(key)+len(value)) + service.SharedOverhead
}

// set notes what is kept under a key from now on.
func (h *held) set(key string, x holding) {
	h.forget(key)
	key = strings.Clone(key) // which may be a part of a larger text
	h.of[key] = x
	h.total += x.size
	if x.ns != "" {
		h.bytes[x.ns] += x.size
	}
	if x.until != 0 {
		h.ends.Set(ending{x.until, key})
	}
}

func (h *held) forget(key string) {
	x, ok := h.of[key]
	if !ok {
		return
	}
	delete(h.of, key)
	h.total -= x.size
	if x.ns != "" {
		if h.bytes[x.ns] -= x.size; h.bytes[x.ns] <= 0 {
			delete(h.bytes, x.ns)
		}
	}
	if x.until != 0 {
		h.ends.Delete(ending{x.until, key})
	}
}

// pass forgets what the cluster has forgotten, and reports whether there is more to forget, now or later.
func (h *held) pass(now int64) bool {
	for range forgetAtOnce {
		e, ok := h.ends.Min()
		if !ok || e.until > now {
			return ok
		}
		h.forget(e.key)
	}
	return h.ends.Len() > 0
}

// told notes that the node was told of all changes up to a revision.
func (h *held) told(revision uint64) {
	h.seen = max(h.seen, revision)
	kept := h.under[:0]
	for _, g := range h.under {
		if g.at == 0 || g.at > h.seen {
			kept = append(kept, g)
		}
	}
	clear(h.under[len(kept):])
	h.under = kept
}

// underWay is by how much writes that are under way will make a namespace grow, and all of them the store.
func (h *held) underWay(ns string) (of Usage, total int64) {
	for _, g := range h.under {
		total += g.bytes
		if g.ns == ns {
			of.Keys += g.keys
			of.Bytes += g.bytes
		}
	}
	return of, total
}

// begin notes a write that is under way.
func (h *held) begin(g *growth) {
	if len(h.under) >= mostGrowths {
		for i, x := range h.under {
			if x.at != 0 { // the node is told late: it counts less exactly
				h.under = append(h.under[:i], h.under[i+1:]...)
				break
			}
		}
	}
	h.under = append(h.under, g)
}

// end notes that a write has ended: at is its revision, 0 if it was not carried out or nothing is known.
func (h *held) end(g *growth, at uint64) {
	if at > h.seen {
		g.at = at
		return
	}
	for i, x := range h.under {
		if x == g {
			h.under = append(h.under[:i], h.under[i+1:]...)
			return
		}
	}
}
