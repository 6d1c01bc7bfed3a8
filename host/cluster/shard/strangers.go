package shard

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
)

// Members of other bundles can write the table, as all entries of the directory. What it says of regions on their nodes counts for nothing:
// they get no shard, and no message is passed on to them.

// knowing is a node that knows which members have no right to the bundle, see cluster.Trusted.
type knowing interface {
	Stranger(number uint16) bool
}

// stranger reports whether a member has no right to the bundle.
func (r *region) stranger(number uint16) bool {
	k, ok := r.node.(knowing)
	return ok && k.Stranger(number)
}

// without drops the regions of some nodes, and reports whether there were any.
func (t *table) without(stranger func(number uint16) bool) (some bool) {
	return t.drop(func(h hosting) bool { return stranger(h.Ref.Node()) })
}

// drop drops some regions, and reports whether there were any. A shard goes back to who was to hand it over, or has no owner.
func (t *table) drop(which func(hosting) bool) (some bool) {
	out := map[abi.Ref]bool{}
	t.hosts = slices.DeleteFunc(t.hosts, func(h hosting) bool {
		if which(h) {
			out[h.Ref] = true
		}
		return out[h.Ref]
	})
	for i := range t.places {
		p := &t.places[i]
		if out[p.from] {
			p.from = 0
		}
		if out[p.owner] {
			p.owner, p.from = p.from, 0
			p.epoch++
		}
	}
	return len(out) > 0
}
