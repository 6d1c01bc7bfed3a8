package shard

import (
	"maps"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// phase is what the region is to a shard as its owner.
type phase uint8

const (
	none    phase = iota
	waiting       // it gets the shard from another region
	serving       // its keys act here
	closing       // it is to hand the shard over
	handing       // its keys have ended, and what waits for them goes to the next owner
	handed        // that is done; the next owner is told so as often as it asks
)

// own is a shard as its owner knows it.
type own struct {
	phase    phase
	epoch    uint64
	asking   map[abi.Ref]bool    // regions that have messages for it
	feeders  map[abi.Ref]*feeder // regions that may send messages of it
	token    uint64              // waiting: of what is handed over to this region
	since    time.Time           // in this phase
	asked    time.Time           // waiting, closing: when others were last asked
	shut     bool                // closing: all feeders have sealed
	names    map[string]bool     // closing: keys for which something may wait
	left     map[string]bool     // closing: keys that act still
	rested   bool                // closing: none does
	taker    abi.Ref             // who asks to take it, and with which token
	takes    uint64
	early    taking // who asks to take it by a table that is not here yet
	givingUp bool
	doubts   []hosting // others that may have it, see suspect
	released bool      // waiting: who hands it over has done so
	stolen   time.Time // serving, closing: since when a table says that others have it
	gaveUpAt uint64    // the revision of the table at which that was tried last
	restart  time.Time
}

// taking is what the next owner asks for.
type taking struct {
	by           abi.Ref
	epoch, token uint64
}

// feeder is a region that sends messages of a shard.
type feeder struct {
	token  uint64
	sealed bool
}

// place is called when the table has changed for a shard.
func (r *region) place(ctx *host.Context, s int, p place) {
	o, me := &r.own[s], r.self.UID()
	if r.forfeited() && (p.owner == me || p.from == me) {
		p = place{epoch: p.epoch}
	}
	switch {
	case p.owner == me && p.from == 0 && (o.phase == none || o.phase == waiting) && len(o.doubts) > 0:
		*o = own{phase: waiting, epoch: p.epoch, token: r.token(ctx), since: ctx.Now(), asking: o.asking, doubts: o.doubts}
		r.tend(ctx, s)
	case p.owner == me && p.from == 0:
		if o.phase != serving {
			r.serve(ctx, s, p)
		}
		o.epoch, o.stolen = p.epoch, time.Time{}
	case p.owner == me && o.phase == serving && o.epoch != p.epoch && r.on(guardStolen) && r.node.Acting():
		r.robbed(ctx, s)
	case p.owner == me && (o.phase != serving || o.epoch != p.epoch):
		if o.phase == serving { // it was taken away, and comes back
			r.leave(ctx, s, true)
		}
		r.yield(ctx, s, false)
		asking := o.asking
		*o = own{phase: waiting, epoch: p.epoch, token: r.token(ctx), since: ctx.Now(), asking: asking, doubts: o.doubts}
		if !r.on(guardBegin) {
			r.serve(ctx, s, p)
			break
		}
		r.tend(ctx, s)
	case p.owner == me:
	case p.from == me:
		if o.phase == serving || o.phase == none || o.phase == waiting {
			o.phase, o.shut, o.rested, o.names, o.left = closing, false, false, map[string]bool{}, nil
		}
		o.epoch, o.since, o.asked, o.taker, o.givingUp, o.gaveUpAt, o.stolen = p.epoch, ctx.Now(), time.Time{}, 0, false, 0, time.Time{}
		if o.early.by == p.owner && o.early.epoch == p.epoch {
			o.taker, o.takes = o.early.by, o.early.token
		}
		o.early = taking{}
		r.advance(ctx, s)
		r.tend(ctx, s)
	case (o.phase == serving || o.phase == closing && !o.rested) && r.on(guardStolen) && r.node.Acting():
		r.robbed(ctx, s)
	case o.phase != none:
		if o.phase == serving || o.phase == closing { // the node must not act, or what was to be handed over has another owner
			r.leave(ctx, s, true)
		}
		r.yield(ctx, s, false)
		*o = own{doubts: o.doubts}
	}
	r.note(s)
	r.tendFeed(ctx, s)
}

// note says whether something is under way for a shard, so that it is looked at again.
func (r *region) note(s int) {
	r.tellJournal(s)
	o, f := &r.own[s], &r.feeds[s]
	moving := o.phase == waiting || o.phase == closing || o.phase == handing ||
		!o.stolen.IsZero() || o.phase == serving && (r.table.places[s].from != 0 || r.single != "" && !o.restart.IsZero())
	if moving || f.held > 0 && o.phase != serving {
		r.open[s] = true
	} else {
		delete(r.open, s)
	}
}

// in says whether a key belongs to a shard.
func (r *region) in(s int) func(string) bool {
	return func(name string) bool { return Of(name, r.shards) == s }
}

// serve begins a shard, or goes on with one that was not handed over.
func (r *region) serve(ctx *host.Context, s int, p place) {
	o := &r.own[s]
	names := slices.Sorted(maps.Keys(o.names))
	if o.phase == none || o.phase == waiting {
		r.st.counts.In++
	}
	o.phase, o.epoch, o.since, o.names, o.left, o.token, o.taker, o.givingUp, o.doubts, o.stolen = serving, p.epoch, ctx.Now(), nil, nil, 0, 0, false, nil, time.Time{}
	maps.DeleteFunc(o.feeders, func(_ abi.Ref, f *feeder) bool { return f.sealed })
	r.tellJournal(s)
	r.unbuffer(ctx, s)
	for _, name := range slices.Backward(names) { // each goes to the front of the mailbox
		r.Again(ctx, name)
	}
	for _, uid := range slices.Sorted(maps.Keys(o.asking)) {
		r.admit(ctx, s, uid)
	}
	o.asking = nil
	if r.single != "" {
		_ = r.Begin(ctx, r.single)
	}
	r.recall(ctx, s)
	r.note(s)
}

// asked is called when another region has messages for a shard.
func (r *region) asked(ctx *host.Context, x order, from host.Ref) {
	o := &r.own[x.Shard]
	if o.phase == serving {
		r.admit(ctx, x.Shard, from.UID())
		return
	}
	if o.asking == nil {
		o.asking = map[abi.Ref]bool{}
	}
	if len(o.asking) < maxHosts {
		o.asking[from.UID()] = true
	}
}

// admit gives another region a token.
func (r *region) admit(ctx *host.Context, s int, uid abi.Ref) {
	o := &r.own[s]
	if o.feeders == nil {
		o.feeders = map[abi.Ref]*feeder{}
	}
	if len(o.feeders) >= maxHosts && o.feeders[uid] == nil {
		return
	}
	r.watch(ctx, uid)
	f := o.feeders[uid]
	if f == nil || f.sealed { // else it has asked twice, or begun anew: what it has sent before is here
		f = &feeder{token: r.token(ctx)}
		o.feeders[uid] = f
	}
	r.tell(ctx, uid, order{opOpened, s, o.epoch, f.token})
}

// fed handles a message that another region has passed on.
func (r *region) fed(ctx *host.Context, m host.Message, below string) {
	t, ok := parseTag(below)
	if !ok || t.shard >= r.shards || Of(t.name, r.shards) != t.shard {
		ctx.Head().Unhandled()
		return
	}
	o := &r.own[t.shard]
	f := o.feeders[t.via]
	switch {
	case t.handed && o.phase == waiting && o.token == t.token && len(o.doubts) == 0:
	case !t.handed && (o.phase == serving || o.phase == closing) && f != nil && f.token == t.token && !f.sealed:
	case !r.on(guardToken) && (o.phase == serving || o.phase == closing):
	default:
		r.Refuse(ctx, m, ErrMoved)
		if ref := r.ref(ctx, t.via); !t.handed && t.via.Node() != 0 && t.via.Node() != r.self.UID().Node() {
			_ = ctx.Tell(ref, order{opStale, t.shard, o.epoch, t.token}.message())
		}
		return
	}
	r.accepted(ctx, m, t.name)
}

// accepted handles a message that was taken: its key's actor is here, or what waits for it goes to the next owner.
func (r *region) accepted(ctx *host.Context, m host.Message, name string) {
	s := Of(name, r.shards)
	switch o := &r.own[s]; {
	case o.phase == serving || o.phase == waiting || o.phase == closing && (!o.shut || r.Has(name)):
		r.pass(ctx, m, name)
	case o.phase == closing:
		o.names[name] = true
		if ctx.Head().StashFor(name) != nil {
			r.Refuse(ctx, m, ErrBuffer)
		}
	case o.phase == handing:
		_ = ctx.Head().ForwardTo(host.Below(r.ref(ctx, o.taker), tag{true, s, o.takes, r.self.UID(), name}.String()), "")
	default:
		r.Refuse(ctx, m, ErrMoved)
	}
}

// moving says which keys are not started again.
func (r *region) moving(name string) bool {
	o := &r.own[Of(name, r.shards)]
	if o.phase == closing && o.shut {
		o.names[name] = true
		delete(o.left, name)
		r.ends = true
		return true
	}
	return o.phase == handing || o.phase == handed // what waits for a key of a shard that is lost is refused
}

// keyEnded is called after the end of a key's actor.
func (r *region) keyEnded(ctx *host.Context) {
	if r.single != "" && r.own[0].phase == serving && !r.Has(r.single) {
		r.own[0].restart = ctx.Now().Add(time.Second)
		r.note(0)
	}
	if !r.ends {
		return
	}
	r.ends = false
	for _, s := range slices.Sorted(maps.Keys(r.open)) {
		if o := &r.own[s]; o.phase == closing && o.shut && len(o.left) == 0 {
			r.advance(ctx, s)
		}
	}
}

// tend looks at a shard for which something is under way.
func (r *region) tend(ctx *host.Context, s int) {
	o, now := &r.own[s], ctx.Now()
	p := r.table.places[s]
	switch o.phase {
	case serving:
		if r.single != "" && !o.restart.IsZero() && !now.Before(o.restart) {
			o.restart = time.Time{}
			if r.Begin(ctx, r.single) != nil || !r.Has(r.single) {
				o.restart = now.Add(time.Second)
			}
		}
	case handing:
		if now.Sub(o.asked) >= again { // if the mailbox was full
			o.asked = now
			_ = ctx.Tell(r.self, order{opHanded, s, o.epoch, 0}.message())
		}
	case waiting:
		if h, ok := r.table.host(p.from); !ok || r.over(h) {
			o.released = true
		}
		if r.settled(ctx, s) && o.released {
			r.serve(ctx, s, p)
		} else if now.Sub(o.asked) >= again {
			o.asked = now
			if !o.released {
				r.tell(ctx, p.from, order{opTake, s, o.epoch, o.token})
			}
			for _, h := range o.doubts {
				r.watch(ctx, h.Ref)
				r.tell(ctx, h.Ref, order{opTake, s, o.epoch, o.token})
			}
		}
	case closing:
		if now.Sub(o.asked) >= again {
			o.asked = now
			for _, uid := range slices.Sorted(maps.Keys(o.feeders)) {
				if f := o.feeders[uid]; !f.sealed {
					r.tell(ctx, uid, order{opClose, s, o.epoch, f.token})
				}
			}
		}
		r.advance(ctx, s)
		if o.phase == closing && !o.rested && now.Sub(o.since) >= r.patience {
			if r.me.Leaving && o.shut {
				r.leave(ctx, s, true)
			} else if !o.givingUp {
				o.givingUp = true
				r.st.dirty.Store(true)
			}
		}
	}
	r.note(s)
}

// advance goes on with handing a shard over, as far as that is possible.
func (r *region) advance(ctx *host.Context, s int) {
	o := &r.own[s]
	if o.phase != closing || o.rested {
		return
	}
	if !o.shut {
		for _, f := range o.feeders {
			if !f.sealed && r.on(guardSeals) {
				return
			}
		}
		o.shut = true
	}
	var left, wait []string
	if o.left == nil {
		o.left = map[string]bool{}
		left, wait = r.leave(ctx, s, false)
		wait = append(wait, r.yield(ctx, s, true)...)
	} else { // no other key begins any more
		left, wait = r.gone(r.LeaveOf(ctx, slices.Sorted(maps.Keys(o.names)), false))
	}
	for _, name := range left {
		o.left[name], o.names[name] = true, true
	}
	for _, name := range wait {
		o.names[name] = true
	}
	if len(left) > 0 && r.on(guardEnds) || !r.mayGo(s) {
		return
	}
	o.rested = true
	r.handOver(ctx, s)
}

// take is called when the next owner asks for a shard.
func (r *region) take(ctx *host.Context, x order, from host.Ref) {
	o := &r.own[x.Shard]
	p := r.table.places[x.Shard]
	if p.owner == from.UID() && p.from != r.self.UID() && p.epoch == x.Epoch && o.phase == none {
		r.tell(ctx, from.UID(), order{opBegin, x.Shard, x.Epoch, x.Token}) // it is not here
		return
	}
	if x.Epoch > p.epoch { // the news of the move is about to come
		o.early = taking{from.UID(), x.Epoch, x.Token}
		return
	}
	if p.owner != from.UID() || p.from != r.self.UID() || p.epoch != x.Epoch && r.on(guardEpoch) {
		return
	}
	switch o.phase {
	case closing:
		o.taker, o.takes = from.UID(), x.Token
		r.handOver(ctx, x.Shard)
	case handed:
		o.taker, o.takes = from.UID(), x.Token
		r.tell(ctx, from.UID(), order{opBegin, x.Shard, o.epoch, x.Token})
	}
}

// handOver has what waits sent to the next owner, when there is one and nothing acts any more.
func (r *region) handOver(ctx *host.Context, s int) {
	o := &r.own[s]
	if o.taker == 0 || !o.rested || o.givingUp && r.on(guardGiveUp) {
		return
	}
	o.phase, o.asked = handing, ctx.Now()
	if r.on(guardHand) {
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(o.names))) {
			r.Again(ctx, name)
		}
	}
	_ = ctx.Tell(r.self, order{opHanded, s, o.epoch, 0}.message()) // behind that
}

// handed is called after what has waited was sent.
func (r *region) handed(ctx *host.Context, x order) {
	o := &r.own[x.Shard]
	if o.phase != handing || o.epoch != x.Epoch {
		return
	}
	o.phase, o.names, o.feeders = handed, nil, nil
	r.st.counts.Out++
	r.tell(ctx, o.taker, order{opBegin, x.Shard, o.epoch, o.takes})
	r.note(x.Shard)
}

// begin is called when the owner has handed a shard over, or when a region that was suspected says that it does not have it.
func (r *region) begin(ctx *host.Context, x order, from host.Ref) {
	o := &r.own[x.Shard]
	p := r.table.places[x.Shard]
	if o.phase != waiting || (o.epoch != x.Epoch || o.token != x.Token) && r.on(guardEpoch) {
		return
	}
	o.trust(from.UID())
	if p.from == from.UID() {
		o.released = true
	}
	if o.released && r.settled(ctx, x.Shard) {
		r.serve(ctx, x.Shard, p)
		r.st.dirty.Store(true)
	}
}

// sealed is called when a feeder sends no more. What it has said of an earlier epoch counts for nothing: it may have been told since to go on
// with the same token.
func (r *region) sealed(ctx *host.Context, x order, from host.Ref) {
	o := &r.own[x.Shard]
	if f := o.feeders[from.UID()]; o.phase == closing && f != nil && f.token == x.Token && (x.Epoch == o.epoch || !r.on(guardEpoch)) {
		f.sealed = true
		r.advance(ctx, x.Shard)
	}
}
