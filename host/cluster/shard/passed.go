package shard

import "github.com/wasmactors/wasmactors/host"

// Two nodes may agree to take what is fenced from a third one before its lease is over (see cluster.Node.Passed): shards of a kind with a
// journal. To the regions of such a kind the one there is over, unless it has begun to take shards since. It has lost what it had, whatever the
// table says: it ends its actors, and takes part again under the new count.

// count is how often the node was passed, of a kind to which that matters.
func (r *region) count() uint64 {
	if r.journal == nil {
		return 0
	}
	return r.node.Passed(r.self.UID().Node(), r.born)
}

// passedOver reports whether a region has lost its shards although its node is there.
func (r *region) passedOver(h hosting) bool {
	return r.journal != nil && r.node.Passed(h.Ref.Node(), h.Born) > h.Passed
}

// forfeit gives up what the region had when its node was passed.
func (r *region) forfeit(ctx *host.Context) {
	n := r.count()
	if n <= r.st.passed {
		return
	}
	r.st.passed, r.me.Passed = n, n
	r.gone(r.Leave(ctx, func(string) bool { return true }, true)) // also after a failure of the region, which knows of no shards then
	for s := range r.own {
		r.yield(ctx, s, false)
		r.own[s] = own{}
		r.note(s)
	}
}

// forfeited reports whether the table is one of before that: what it gives to this region is lost.
func (r *region) forfeited() bool {
	h, ok := r.table.host(r.self.UID())
	return ok && h.Passed < r.me.Passed
}
