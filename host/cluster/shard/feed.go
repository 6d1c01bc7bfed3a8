package shard

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// feed is a shard as those see it that send messages to its keys from here.
type feed struct {
	owner abi.Ref   // who was asked for a token, or has given it
	token uint64    // 0: there is none, and messages wait
	asked time.Time // when
	held  int       // messages that wait, and their bytes
	bytes int64
}

// route passes a message of this node on to where its key is, or has it wait until that is known.
func (r *region) route(ctx *host.Context, m host.Message, name string) {
	s := Of(name, r.shards)
	o, f := &r.own[s], &r.feeds[s]
	switch {
	case o.phase == serving:
		r.pass(ctx, m, name)
	case f.token != 0:
		_ = ctx.Head().ForwardTo(host.Below(r.ref(ctx, f.owner), tag{false, s, f.token, r.self.UID(), name}.String()), "")
	default:
		r.buffer(ctx, m, s)
	}
}

// buffer has a message wait.
func (r *region) buffer(ctx *host.Context, m host.Message, s int) {
	f, share, size := &r.feeds[s], 4, keyed.Size(m)
	if r.shards == 1 {
		share = 1
	}
	most, bytes := max(1, r.Config.buffer/share), r.bytes/int64(share)
	full := f.held >= most || r.waits >= r.Config.buffer || f.held > 0 && f.bytes+size > bytes || r.weight+size > r.bytes
	if full && r.on(guardBuffer) || ctx.Head().StashFor(bufferName(s)) != nil {
		r.Refuse(ctx, m, ErrBuffer)
		return
	}
	f.held++
	f.bytes += size
	r.waits++
	r.weight += size
	r.open[s] = true
	r.tendFeed(ctx, s)
}

// unbuffer has what waits handled, before everything that has come since.
func (r *region) unbuffer(ctx *host.Context, s int) {
	f := &r.feeds[s]
	if f.held == 0 {
		return
	}
	r.waits -= f.held
	r.weight -= f.bytes
	f.held, f.bytes = 0, 0
	ctx.Head().UnstashFor(bufferName(s))
}

// tendFeed asks the owner of a shard for a token, if messages wait for it.
func (r *region) tendFeed(ctx *host.Context, s int) {
	f := &r.feeds[s]
	if r.table == nil || r.wrong != nil {
		return
	}
	p := r.table.places[s]
	if f.token != 0 && f.owner != p.owner && f.owner != p.from {
		f.token = 0
	}
	if f.token != 0 || f.held == 0 || p.owner == 0 || p.owner == r.self.UID() {
		return
	}
	now := ctx.Now()
	if f.owner == p.owner && !f.asked.IsZero() && now.Sub(f.asked) < again {
		return
	}
	f.owner, f.asked = p.owner, now
	r.watch(ctx, p.owner)
	r.tell(ctx, p.owner, order{opOpen, s, p.epoch, 0})
}

// opened is called when the owner of a shard has given a token. The last one counts: answers to questions from before a failure of
// this region, or from before the pair of nodes began anew, may come first.
func (r *region) opened(ctx *host.Context, x order, from host.Ref) {
	f := &r.feeds[x.Shard]
	if f.owner != from.UID() || x.Token == 0 || x.Epoch < r.table.places[x.Shard].epoch && r.on(guardEpoch) {
		return
	}
	f.token = x.Token
	r.unbuffer(ctx, x.Shard)
	r.note(x.Shard)
}

// closed is called when the owner of a shard wants no more messages of it.
func (r *region) closed(ctx *host.Context, x order, from host.Ref) {
	f := &r.feeds[x.Shard]
	if f.owner == from.UID() && f.token == x.Token {
		f.token, f.asked = 0, time.Time{}
	}
	r.tell(ctx, from.UID(), order{opSealed, x.Shard, x.Epoch, x.Token})
}

// stale is called when the owner of a shard does not know the token.
func (r *region) stale(_ *host.Context, x order, from host.Ref) {
	f := &r.feeds[x.Shard]
	if f.owner == from.UID() && f.token == x.Token {
		f.token, f.asked = 0, time.Time{}
	}
}
