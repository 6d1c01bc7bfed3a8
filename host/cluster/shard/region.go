package shard

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/supervision"
)

// Times of a region's own.
const (
	tickTimer = 2
	tick      = 50 * time.Millisecond  // while something is under way
	again     = 300 * time.Millisecond // before an order or a change of the table is repeated
	pause     = 2 * time.Second        // before a move that was given up is tried again
	rank      = time.Second            // for which each region waits longer than the one before it plans
)

// store is what the directory has told, for the region's turns.
type store struct {
	mu       sync.Mutex
	entry    cluster.Entry // of the kind's own table
	common   cluster.Entry // of the table of all bundles, of a kind that is of one
	recalled []recalled    // answers of the memory
	put      uint64        // counts the changes that were begun...
	over     uint64        // ...and the last one that has been answered

	key     uint64 // see doors
	tokens  uint64 // that were made
	counts  moves
	dirty   atomic.Bool
	leaving bool             // this and what follows are for the region's turns alone
	passed  uint64           // how often the node was passed, as far as the region has lost its shards for it
	peers   map[abi.Ref]bool // regions that hold tokens of this one, or this one of them
	told    map[int]uint64   // what the journal knows: the epochs of shards that are here
	sent    map[string]bool  // keys whose actors were asked to end since their shards move
	stops   []func()
}

// moves are what has become of shards here.
type moves struct{ In, Out, GivenUp, Stolen uint64 }

// region is the behaviour. Each incarnation begins anew, but for what the store has.
type region struct {
	Config
	*keyed.Keeper
	st *store

	self    host.Ref
	me      hosting
	born    uint64
	table   *table
	wrong   error // why the kind cannot be used
	own     []own
	feeds   []feed
	open    map[int]bool         // shards of own or feeds that are looked at with each tick
	refs    map[abi.Ref]host.Ref // of other regions
	watched map[abi.Ref]bool
	ended   map[abi.Ref]bool // regions that have stopped although their nodes are there
	ticking bool
	waits   int // messages that wait for shards, and their bytes
	weight  int64
	mends   bool // what is in the directory is no table: the one that is known takes its place
	ends    bool // a key's actor has ended: closing shards are to be looked at

	pins      map[int]uint16
	until     map[int]time.Time // given up moves are not tried before
	tries     map[int]int
	putting   bool
	putNo     uint64
	putAt     time.Time
	putRev    uint64
	putKey    string
	common    bool             // the bundle has no table of its own yet
	begins    *table           // what the bundle's own table begins with, when that of all bundles is closed
	ours      map[abi.Ref]bool // regions that are of this bundle, as they say
	unknown   bool             // the table of all bundles has some that have not said so
	whoseAt   time.Time        // when they were last asked
	wanted    time.Time        // since when the table should be changed, in vain
	unplanned time.Time        // since when whoever plans has not done what there is to do
	mem       recollection
}

func newRegion(c Config, k *keyed.Keeper, st *store) *region {
	return &region{
		Config: c, Keeper: k, st: st, own: make([]own, c.shards), feeds: make([]feed, c.shards), open: map[int]bool{},
		refs: map[abi.Ref]host.Ref{}, watched: map[abi.Ref]bool{}, ended: map[abi.Ref]bool{}, pins: map[int]uint16{}, until: map[int]time.Time{}, tries: map[int]int{},
		mem: newRecollection(), ours: map[abi.Ref]bool{}, common: c.bundle != "",
	}
}

// Start implements host.Behaviour.
func (r *region) Start(ctx *host.Context, cause *abi.Failure) *abi.Failure {
	*r = *newRegion(r.Config, r.Keeper, r.st)
	sys, self := ctx.System(), ctx.Self()
	r.self = self
	m := r.node.Self()
	r.born = m.Born
	r.me = hosting{Ref: self.UID(), Born: m.Born, Weight: r.Config.weight, Leaving: r.st.leaving, Passed: r.st.passed}
	nudge := func() {
		if !r.st.dirty.Swap(true) {
			_ = sys.Tell(self, order{Op: opLook}.message())
		}
	}
	if ctx.Head().Incarnation() == 0 {
		r.st.key = regionKey(sys, self)
		doors.Store(door{sys, self.UID()}, r.st.key)
		stop := r.node.Changes(nudge)
		st, own, common := r.st, r.key(), Key(r.kind)
		unwatch := r.node.Directory().Watch(func(e cluster.Entry) {
			known := &st.entry
			switch e.Key {
			case own:
			case common:
				known = &st.common
			default:
				return
			}
			st.mu.Lock()
			newer := e.Revision > known.Revision
			if newer {
				*known = e
			}
			st.mu.Unlock()
			if newer {
				nudge()
			}
		})
		r.st.stops = []func(){stop, unwatch}
	} else {
		for _, uid := range slices.Sorted(maps.Keys(r.st.peers)) {
			r.tell(ctx, uid, order{Op: opReset})
		}
		clear(r.st.peers)
	}
	if r.memory != nil {
		r.Tell(r.keyOver, func(name string) { delete(r.st.sent, name) })
	}
	if f := r.Keeper.Start(ctx, cause, r.moving); f != nil {
		return f
	}
	maps.DeleteFunc(r.st.sent, func(name string, _ bool) bool { return !r.Has(name) })
	r.st.dirty.Store(true)
	_ = ctx.Tell(self, order{Op: opLook}.message())
	return nil
}

// regionKey is the key of a region. It is not drawn: the tokens are, and other nodes get those.
func regionKey(sys *host.System, self host.Ref) uint64 {
	from := sys.Secret()
	v := from.Derive(secret.ForRegions, self.UID(), 0)
	return binary.LittleEndian.Uint64(v[:]) | 1
}

// token is a new one. Other nodes see those that they get, and must not find others from them: so it is derived and not drawn.
func (r *region) token(ctx *host.Context) uint64 {
	r.st.tokens++
	from := ctx.System().Secret()
	v := from.Derive(secret.ForTokens, r.self.UID(), r.st.tokens)
	return binary.LittleEndian.Uint64(v[:]) | 1
}

func (r *region) hosts() bool { return r.role == "" || r.node.Self().HasRole(r.role) }

// Handle implements host.Behaviour.
func (r *region) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		switch {
		case m.Kind == abi.KindMessage:
			r.mail(ctx, m)
		case m.Kind == abi.KindTimer && m.Correlation == tickTimer:
			r.ticking = false
			r.look(ctx)
			r.each(ctx)
			r.tendMemory(ctx)
		case m.Kind == abi.KindTerminated && r.watched[m.Sender.UID()]:
			var why string
			if _ = m.Decode(&why); why == "stopped" || strings.HasPrefix(why, "failed") { // and not: its node
				r.ended[m.Sender.UID()] = true
				r.believe(m.Sender.UID())
				r.st.dirty.Store(true)
			} else if why == "unknown" { // it has ended before it was watched
				r.believe(m.Sender.UID())
			}
			r.peerGone(ctx, m.Sender.UID())
		default:
			r.Take(ctx, m)
			if m.Kind == abi.KindTerminated {
				r.keyEnded(ctx)
			}
		}
		if r.st.dirty.Load() { // behind the message: what has waited for a shard that begins then is before the next one
			r.look(ctx)
		}
		r.arm(ctx)
	}
}

// arm has the region look again soon while something is under way. The period never passes, see keyed.
func (r *region) arm(ctx *host.Context) {
	if want := len(r.open) > 0 || r.putting || len(r.until) > 0 || !r.wanted.IsZero() || !r.unplanned.IsZero() || r.remembers() || r.unknown && r.wrong == nil; want && !r.ticking {
		r.ticking = ctx.After(tickTimer, tick, time.Hour, nil) == nil
	} else if !want && r.ticking {
		ctx.Cancel(tickTimer)
		r.ticking = false
	}
}

// mail handles a message.
func (r *region) mail(ctx *host.Context, m host.Message) {
	kept := ctx.Head().Kept()
	below := ctx.Head().Below()
	if kept == "" && below == "" && len(m.Headers) > 0 {
		if _, ok := abi.FindHeader(m.Headers, Header); ok {
			r.ordered(ctx, m)
			return
		}
		if r.Manages(ctx, m) {
			return
		}
	}
	switch {
	case !r.node.Acting():
		r.Refuse(ctx, m, host.ErrNodeLost)
	case r.wrong != nil:
		r.Refuse(ctx, m, r.wrong)
	case kept != "" && kept[0] != ':':
		r.accepted(ctx, m, kept)
	case isTag(below):
		r.fed(ctx, m, below)
	default:
		name, err := r.Name(m, below)
		if err == nil && r.single != "" && name != r.single {
			err = keyed.ErrNoKey
		}
		if err != nil {
			r.Refuse(ctx, m, err)
			return
		}
		r.route(ctx, m, name)
	}
}

// ref is the ref of another region.
func (r *region) ref(ctx *host.Context, uid abi.Ref) host.Ref {
	ref, ok := r.refs[uid]
	if !ok {
		ref, _ = ctx.System().RefOf(uid, host.Ref{})
		if len(r.refs) > 4*maxHosts {
			clear(r.refs)
		}
		r.refs[uid] = ref
	}
	return ref
}

func (r *region) tell(ctx *host.Context, to abi.Ref, o order) {
	_ = ctx.Tell(r.ref(ctx, to), o.message())
}

func (r *region) watch(ctx *host.Context, uid abi.Ref) {
	if !r.watched[uid] && ctx.Watch(r.ref(ctx, uid)) == nil {
		r.watched[uid], r.st.peers[uid] = true, true
	}
}

// peerGone is called when a region has ended, or its node is lost, or the pair of nodes has begun anew: what was under way between
// the two is lost, and tokens between them are void.
func (r *region) peerGone(ctx *host.Context, uid abi.Ref) {
	delete(r.watched, uid)
	delete(r.refs, uid)
	delete(r.st.peers, uid)
	r.reset(ctx, uid)
}

// reset makes all tokens void that this region and another have given each other.
func (r *region) reset(ctx *host.Context, uid abi.Ref) {
	for s := range r.own {
		o := &r.own[s]
		delete(o.asking, uid)
		if _, ok := o.feeders[uid]; ok {
			delete(o.feeders, uid)
			r.advance(ctx, s)
		}
		if f := &r.feeds[s]; f.owner == uid {
			f.token, f.asked = 0, time.Time{}
		}
	}
}

// ordered handles an order of another region, or of this one.
func (r *region) ordered(ctx *host.Context, m host.Message) {
	sender := m.Sender
	if op, _ := abi.FindHeader(m.Headers, Header); string(op) != "1" {
		r.manage(ctx, m, string(op))
		return
	}
	o, err := decodeOrder(m.Payload)
	here := sender.UID() == r.self.UID() || sender.IsZero() && o.Op == opLook // anybody may have it look
	if err != nil || !here && (sender.Path() != r.self.Path() || sender.UID().Node() == r.self.UID().Node()) || here != (o.Op <= opHanded) {
		ctx.Head().Unhandled()
		return
	}
	switch {
	case o.Op == opLook:
		r.st.dirty.Store(true)
		r.look(ctx)
	case o.Op == opReset: // it is not repeated, so it counts even while the node waits for its lease
		r.reset(ctx, sender.UID())
	case o.Op >= opWhose:
		r.whose(ctx, o, sender)
	case r.table == nil || r.wrong != nil || o.Shard >= r.shards || !r.node.Acting():
	default:
		r.obey(ctx, o, sender)
	}
}

func (r *region) obey(ctx *host.Context, o order, from host.Ref) {
	switch o.Op {
	case opHanded:
		r.handed(ctx, o)
	case opOpen:
		r.asked(ctx, o, from)
	case opOpened:
		r.opened(ctx, o, from)
	case opClose:
		r.closed(ctx, o, from)
	case opSealed:
		r.sealed(ctx, o, from)
	case opStale:
		r.stale(ctx, o, from)
	case opTake:
		r.take(ctx, o, from)
	case opBegin:
		r.begin(ctx, o, from)
	}
}

// look reads the table if it has changed, and writes the next one if there should be one.
func (r *region) look(ctx *host.Context) {
	r.st.dirty.Store(false)
	r.forfeit(ctx)
	r.listen(ctx)
	e, over := r.source()
	if r.putting && (over >= r.putNo || e.Key == r.putKey && e.Revision > r.putRev || ctx.Now().Sub(r.putAt) > 4*again) {
		r.putting = false
	}
	if e.Revision > 0 && (r.table == nil || e.Revision > r.table.revision) && !(r.common && r.begins != nil) {
		switch t, err := decodeTable(e); {
		case err != nil:
			r.spoilt(e, err)
		case t.mark() != 0 && r.on(guardKnows):
			r.close(t)
		default:
			mends := t.without(r.stranger)
			if r.unknown = r.common && !r.allOurs(ctx, t); r.unknown {
				return
			}
			r.mends = mends
			r.apply(ctx, t)
		}
	}
	r.write(ctx)
}

// apply makes a new table the region's.
func (r *region) apply(ctx *host.Context, t *table) {
	before := r.table
	r.table, r.wanted, r.unplanned = t, time.Time{}, time.Time{}
	if r.wrong = nil; len(t.places) != r.shards {
		r.wrong = ErrShards
		return
	}
	if r.hosts() {
		for _, h := range t.hosts {
			if h.Ref != r.self.UID() && !r.node.Gone(h.Ref.Node(), h.Born) {
				r.watch(ctx, h.Ref)
			}
		}
	}
	for s := range t.places {
		p := t.places[s]
		if before != nil && len(before.places) == r.shards {
			if p == before.places[s] {
				if o := &r.own[s]; o.phase == closing && o.givingUp && t.revision > o.gaveUpAt {
					o.givingUp, o.since = false, ctx.Now() // it has failed
				}
				continue
			}
			if b := before.places[s]; b.from != 0 && p.owner == b.from && p.from == 0 {
				if p.owner == r.self.UID() {
					r.st.counts.GivenUp++
				}
				r.until[s], r.tries[s] = ctx.Now().Add(pause<<min(r.tries[s], 5)), r.tries[s]+1
			}
		}
		if r.pins[s] == p.pin {
			delete(r.pins, s)
		}
		r.suspect(before, s)
		r.place(ctx, s, p)
	}
	maps.DeleteFunc(r.ended, func(uid abi.Ref, _ bool) bool { return t.index(uid) < 0 })
}

// write puts the next table into the directory, if it is another one.
func (r *region) write(ctx *host.Context) {
	if r.putting || !r.node.Acting() || r.wrong == ErrBundles {
		return
	}
	now := ctx.Now()
	for s, until := range r.until {
		if !now.Before(until) {
			delete(r.until, s)
		}
	}
	v := r.view(now)
	key, before := r.target()
	next := before.next(v)
	if next == nil {
		r.wrong = ErrShards
		if r.wanted.IsZero() {
			r.wanted = now
		}
		return
	}
	closes := r.closes(v, next)
	if closes && !r.on(guardClosed) {
		key, closes, next.revision = r.key(), false, 0
	}
	if before == nil && !v.hosts || r.common && r.begins != nil && !v.hosts ||
		before != nil && before == r.table && next.same(before) && !(r.mends && v.hosts) && !closes {
		r.wanted = time.Time{}
		return
	}
	if r.wanted.IsZero() {
		r.wanted = now
	}
	if !r.putAt.IsZero() && r.putKey == key && r.putRev == next.revision && now.Sub(r.putAt) < again {
		return // the answer was an error, or the news of it is about to come
	}
	for s := range v.giveUp {
		r.own[s].gaveUpAt = next.revision
	}
	r.st.mu.Lock()
	r.st.put++
	no := r.st.put
	r.st.mu.Unlock()
	r.putting, r.putNo, r.putAt, r.putRev, r.putKey = true, no, now, next.revision, key
	st, sys, self := r.st, ctx.System(), r.self
	if closes {
		next = next.closed(r.mark())
	}
	r.node.Directory().Put(key, next.encode(), next.revision, func(uint64, error) {
		st.mu.Lock()
		st.over = max(st.over, no)
		st.mu.Unlock()
		if !st.dirty.Swap(true) {
			_ = sys.Tell(self, order{Op: opLook}.message())
		}
	})
}

// view is what the region knows now.
func (r *region) view(now time.Time) *view {
	v := &view{
		self: r.me, hosts: r.hosts(), shards: r.shards, moves: r.moves, begun: map[int]uint64{}, giveUp: map[int]uint64{}, stolen: map[int]bool{}, pins: r.pins,
		gone: r.over,
		held: func(s int) bool { return now.Before(r.until[s]) }, guarded: r.on(guardMoving), returns: r.on(guardReturn),
	}
	v.plans = v.hosts
	if t := r.table; t != nil && v.hosts {
		before := 0
		for _, h := range t.hosts {
			if h.Ref < r.me.Ref && !v.gone(h) {
				before++
			}
		}
		if v.plans = before == 0; !v.plans { // is there something to plan, which nobody does?
			v.plans = true
			if next := t.next(v); next == nil || next.same(t) {
				r.unplanned = time.Time{}
			} else if r.unplanned.IsZero() {
				r.unplanned = now
			}
			v.plans = !r.unplanned.IsZero() && now.Sub(r.unplanned) >= time.Duration(min(before, 4))*rank
		}
	}
	for s := range r.open {
		switch o := &r.own[s]; {
		case !o.stolen.IsZero():
			if o.mending(now) {
				v.stolen[s] = true
			}
		case o.phase == serving && r.table != nil && r.table.places[s].from != 0:
			v.begun[s] = o.epoch
		case o.phase == closing && o.givingUp:
			v.giveUp[s] = o.epoch
		}
	}
	return v
}

// each looks at all shards for which something is under way.
func (r *region) each(ctx *host.Context) {
	if r.table == nil || r.wrong != nil {
		return
	}
	for _, s := range slices.Sorted(maps.Keys(r.open)) {
		r.tend(ctx, s)
		r.tendFeed(ctx, s)
	}
}

// Decide implements host.Behaviour: the strategy decides.
func (r *region) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour: a turn that fails leaves a state of which nothing is known.
func (r *region) CannotRewind() string { return "a region begins anew after a failure" }

// Rewind implements host.Behaviour.
func (r *region) Rewind(*host.Context) bool { return false }

// End implements host.Behaviour.
func (r *region) End(ctx *host.Context, end host.End) {
	r.Keeper.End(ctx, end)
	for _, uid := range slices.Sorted(maps.Keys(r.watched)) {
		ctx.Unwatch(r.ref(ctx, uid))
	}
	if end.Last {
		r.endJournal()
		doors.Delete(door{ctx.System(), r.self.UID()})
		for _, stop := range r.st.stops {
			stop()
		}
		r.st.stops = nil
	}
}
