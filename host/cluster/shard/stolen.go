package shard

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// A member can write a table that takes shards from an owner that acts. No region follows it: the owner keeps the actors of its keys and
// writes the table again, and who is to have the shard asks those that may have it before it begins. A region that only passes messages
// on cannot tell: what it sends goes to the owner that the table names until it is written again.

// mostDoubts bounds the regions that are asked about one shard.
const mostDoubts = 4

// suspect notes who may still have a shard when the table is replaced. Changes may have been left out in between, so they need not have
// it any more: they are asked.
func (r *region) suspect(before *table, s int) {
	o, me := &r.own[s], r.self.UID()
	if before == nil || len(before.places) != r.shards || !r.on(guardStolen) {
		return
	}
	b, p := before.places[s], r.table.places[s]
	o.trust(p.owner)
	o.trust(p.from)
	o.doubts = slices.DeleteFunc(o.doubts, r.over)
	for _, ref := range []abi.Ref{b.owner, b.from} {
		h, ok := before.host(ref)
		handed := ref == b.from && p.owner == b.owner && p.from == 0 && p.owner != me // as the new owner says
		kept := ref == b.owner && b.from != 0 && p.owner == b.from && p.from == 0     // as the old owner says
		if !ok || handed || kept || ref == me || ref == p.owner || ref == p.from || r.over(h) {
			continue
		}
		if o.doubts = append(o.doubts, h); len(o.doubts) > mostDoubts {
			o.doubts = o.doubts[1:]
		}
	}
}

func (r *region) over(h hosting) bool {
	return r.ended[h.Ref] || r.node.Gone(h.Ref.Node(), h.Born) || r.passedOver(h)
}

// settled reports whether no other region has a shard. One that neither answers nor takes its shard back for a long time does not have
// it: a node that cannot reach the directory is gone by then.
func (r *region) settled(ctx *host.Context, s int) bool {
	o := &r.own[s]
	o.doubts = slices.DeleteFunc(o.doubts, r.over)
	if len(o.doubts) > 0 && ctx.Now().Sub(o.since) >= 3*r.patience {
		o.doubts = nil
	}
	return len(o.doubts) == 0
}

// trust is called when a region does not have the shard, or has it as the table says.
func (o *own) trust(uid abi.Ref) {
	o.doubts = slices.DeleteFunc(o.doubts, func(h hosting) bool { return h.Ref == uid })
}

// believe is called when a region has ended although its node is there.
func (r *region) believe(uid abi.Ref) {
	for s := range r.own {
		r.own[s].trust(uid)
	}
}

// robbed is called when the table gives a shard to others that is here. The node may have been evicted by hand, and not know it yet:
// so the table is written again after a while only.
func (r *region) robbed(ctx *host.Context, s int) {
	if o := &r.own[s]; o.stolen.IsZero() {
		o.stolen = ctx.Now()
		r.st.counts.Stolen++
	}
	r.open[s] = true
}

// mending reports whether a table that takes the shard away is to be written again.
func (o *own) mending(now time.Time) bool { return !o.stolen.IsZero() && now.Sub(o.stolen) >= again }
