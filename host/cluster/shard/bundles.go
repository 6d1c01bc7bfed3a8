package shard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
)

// The table of a bundle's kind has the bundle in its key. Nodes of the release before have one table for all bundles, and share it with regions
// of this one while they are there. When all nodes understand it a region closes that table: it writes what is the last one of it, in such a
// form that nobody goes on with it, by compare-and-set as any other. The bundle's own table begins with what the closed one says, and is written
// only if there is none. So the tables that a region may know are in one order, whatever it has missed.
//
// A closed table has one more region, which cannot end, and one more shard, which that one has. To a region of the release before, which may come
// later, the kind lives with another number of shards: it refuses messages, and changes nothing.

// immortal is the life of a node that no node can have, and that is never gone.
const immortal = math.MaxUint64

// mark is the region of a closed table that says which bundle goes on with it.
func (c *Config) mark() abi.Ref {
	return abi.Ref(abi.MaxNode)<<(64-abi.NodeBits) | abi.Ref(cluster.Hash(c.bundle))>>abi.NodeBits | 1
}

// ofBundle reports whether a key is that of a bundle's table.
func ofBundle(key string) bool { return strings.Count(key, ".") == 2 }

// closed is the table as one with which only the bundle of the mark goes on. One with so many shards that no further one fits keeps only its
// last epoch.
func (t *table) closed(mark abi.Ref) *table {
	n := t.clone()
	if len(n.places) == MaxShards {
		n.hosts, n.places = nil, []place{}
		for range MaxShards - 2 {
			n.places = append(n.places, place{epoch: t.last()})
		}
	}
	n.hosts = append(n.hosts, hosting{Ref: mark, Born: immortal, Weight: 1})
	slices.SortFunc(n.hosts, func(a, b hosting) int { return cmp.Compare(a.Ref, b.Ref) })
	n.places = append(n.places, place{owner: mark, epoch: t.last()})
	return n
}

// last is the highest epoch of a table.
func (t *table) last() (last uint64) {
	for _, p := range t.places {
		last = max(last, p.epoch)
	}
	return last
}

// mark is that of a closed table, 0 of any other.
func (t *table) mark() abi.Ref {
	for _, h := range t.hosts {
		if h.Born == immortal {
			return h.Ref
		}
	}
	return 0
}

// source is the entry that counts: that of the kind's own table, or while there is none that of the table of all bundles; and what has become of
// changes.
func (r *region) source() (e cluster.Entry, over uint64) {
	r.st.mu.Lock()
	defer r.st.mu.Unlock()
	e = r.st.entry
	if r.common = r.bundle != "" && e.Revision == 0; r.common {
		e = r.st.common
	}
	return e, r.st.over
}

// target is where the next table goes, and which one is before it.
func (r *region) target() (key string, before *table) {
	switch {
	case !r.common:
		return r.key(), r.table
	case r.begins != nil:
		return r.key(), r.begins
	}
	return Key(r.kind), r.table
}

// close is called when the table of all bundles is closed. What it says is where the bundle of its mark begins; others begin anew, with higher
// epochs.
func (r *region) close(t *table) {
	if r.bundle == "" {
		r.wrong = ErrBundles
		return
	}
	n := t.clone()
	n.drop(func(h hosting) bool { return h.Born == immortal || r.stranger(h.Ref.Node()) })
	if n.places = n.places[:len(n.places)-1]; len(n.places) == 0 || t.mark() != r.mark() || !r.on(guardFrom) {
		n.hosts, n.places = nil, []place{{epoch: t.last()}}
	}
	n.revision = 0 // of the bundle's own table, which is not there
	r.begins, r.unknown, r.wrong = n, false, nil
	if t.mark() != r.mark() && !r.hosts() {
		r.forget()
	}
}

// forget has a region that takes no shards know no table: the one that it knew is of another bundle.
func (r *region) forget() {
	r.table = nil
	for s := range r.feeds {
		r.feeds[s].token, r.feeds[s].owner, r.feeds[s].asked = 0, 0, time.Time{}
	}
}

// closes reports whether the next table is to be the last one of all bundles.
func (r *region) closes(v *view, next *table) bool {
	if !r.common || r.begins != nil || !v.hosts || r.table != nil && !v.plans || len(next.hosts) >= maxHosts {
		return false
	}
	if len(next.places) == MaxShards && (len(next.hosts) > 1 || r.table != nil && r.table.index(r.me.Ref) >= 0) {
		return false // where its shards are does not fit into a closed one
	}
	if !r.on(guardAllNew) {
		return true
	}
	if r.node.Common() < cluster.NamesBundles {
		return false
	}
	for _, h := range next.hosts {
		if _, knows := r.knows(h); h.Ref != r.me.Ref && !knows {
			return false
		}
	}
	return true
}

// knows reports whether the node of a region is there, and of a release that knows tables of bundles.
func (r *region) knows(h hosting) (there, knows bool) {
	for _, m := range r.node.Members() {
		if m.Number == h.Ref.Node() && m.Born == h.Born {
			return true, m.Newest >= cluster.NamesBundles
		}
	}
	return false, false
}

// allOurs reports whether all regions in the table of all bundles are of this bundle, as far as that can be found out: those of the release
// before cannot say it, and are taken for such.
func (r *region) allOurs(ctx *host.Context, t *table) bool {
	now, all := ctx.Now(), true
	ask := now.Sub(r.whoseAt) >= again
	for _, h := range t.hosts {
		there, knows := r.knows(h)
		if h.Ref == r.me.Ref || r.over(h) || there && !knows || r.ours[h.Ref] || !r.on(guardWhose) {
			continue
		}
		if all = false; ask && knows {
			r.whoseAt = now
			r.tell(ctx, h.Ref, order{Op: opWhose, Token: uint64(r.mark())})
		}
	}
	return all
}

// whose handles what regions ask each other about their bundles.
func (r *region) whose(ctx *host.Context, o order, from host.Ref) {
	ours := r.bundle != "" && o.Token == uint64(r.mark())
	switch {
	case o.Op == opWhose && ours:
		r.tell(ctx, from.UID(), order{Op: opOurs, Token: o.Token})
	case o.Op == opWhose:
		r.tell(ctx, from.UID(), order{Op: opOther, Token: o.Token})
	case !ours || !r.unknown:
	case o.Op == opOurs:
		if len(r.ours) >= 4*maxHosts {
			clear(r.ours)
		}
		r.ours[from.UID()] = true
		r.st.dirty.Store(true)
	case r.table == nil || r.table.index(r.me.Ref) < 0:
		r.wrong = fmt.Errorf("%w: node %d", ErrOther, from.UID().Node())
	}
}
