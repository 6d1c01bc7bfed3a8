package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// engine knows the entries and begins their runs. One lock guards it; nothing waits while
// holding it. It is safe for concurrent use.
type engine struct {
	clock host.Clock
	log   *slog.Logger
	send  func(ctx context.Context, r *run) (retry bool, err error) // see deliver.go
	most  int                                                       // entries
	alive func(path string, life abi.Ref) bool                      // whether an actor is in a life

	mu       sync.Mutex
	items    index
	requests requests
	due      dueHeap
	timer    interface{ Stop() bool }
	rings    int64 // when the timer rings, in ns
	seen     int64 // the time when the clock was last looked at
	journal  *journal
	stale    int // obsolete records in the journal
	queues   queues
	closed   bool // no more runs begin
	stop     context.CancelFunc
	ctx      context.Context
	active   sync.WaitGroup
}

// Limits of the engine.
const (
	recheck    = 30 * time.Second      // how often to check whether the machine's clock was set
	correction = int64(24 * time.Hour) // a clock set back by more was wrong before
	countUpTo  = 1001                  // missed runs are counted up to this number
)

func newEngine(clock host.Clock, log *slog.Logger, most, inAll, perOwner int) *engine {
	g := &engine{alive: func(string, abi.Ref) bool { return true }, clock: clock, log: log, most: most, items: newIndex(), queues: newQueues(inAll, perOwner)}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.seen = clock.Now().UnixNano()
	return g
}

func (g *engine) now() int64 { return g.clock.Now().UnixNano() }

// load takes a record of the journal, before the engine runs.
func (g *engine) load(r *record) error {
	if r.Request != nil {
		g.requests.put(r.Request)
	}
	x := g.items.get(r.Owner, r.Name)
	switch r.Kind {
	case wasSet:
		spec, err := r.Entry.spec(time.Unix(0, r.Created))
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if x != nil {
			g.stale++
			g.items.remove(x)
		}
		g.items.put(&item{Entry: *r.Entry, owner: r.Owner, created: r.Created, spec: spec, last: r.DoneTo, doneTo: r.DoneTo, place: -1})
	case wasCancelled:
		g.stale += 2
		if x != nil {
			g.items.remove(x)
		}
	case wasKept:
		g.stale++
	case wasDone:
		g.stale++
		if x != nil && r.DoneTo > x.doneTo {
			x.last, x.doneTo = r.DoneTo, r.DoneTo
		}
	}
	return nil
}

// start plans all entries. Those of the manifest replace earlier ones of the manifest; an entry
// that runs at the same times as before continues where it was.
func (g *engine) start(manifest map[string]Entry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for _, x := range g.items.of("") {
		if _, ok := manifest[x.Name]; !ok {
			g.items.remove(x)
			g.keep(&record{Kind: wasCancelled, Name: x.Name})
		}
	}
	for _, x := range g.items.all() {
		if x.owner != "" && x.spec.Once() && x.doneTo >= x.spec.at { // it was over
			g.items.remove(x)
			g.keep(&record{Kind: wasCancelled, Owner: x.owner, Name: x.Name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(manifest)) {
		e := manifest[name]
		before := g.items.get("", name)
		if before != nil && before.same(&e) {
			continue
		}
		spec, err := e.spec(g.clock.Now())
		if err != nil {
			return fmt.Errorf("entries.%s: %w", name, err)
		}
		x := &item{Entry: e, created: g.clock.Now().UnixNano(), spec: spec, last: now, doneTo: now, place: -1}
		if before != nil {
			x.goOn(before)
			g.items.remove(before)
		}
		if spec.Once() && spec.at <= x.last {
			g.log.Warn("an entry of the manifest has a time that has passed", "entry", name)
		}
		g.items.put(x)
		g.keep(x.record())
	}
	for _, x := range g.items.all() {
		g.plan(x, now)
	}
	g.arm(now)
	return nil
}

// keep writes a record without waiting until it is durable.
func (g *engine) keep(r *record) *batch {
	if g.journal == nil {
		return nil
	}
	b := g.journal.append(r.encode())
	switch r.Kind {
	case wasCancelled:
		g.stale += 2
	case wasDone:
		g.stale++
	}
	if g.stale > 1000 && g.stale > 4*(g.items.n+g.requests.n) {
		g.stale = 0
		var all []byte
		for _, x := range g.items.all() {
			all = appendRecord(all, g.journal.mark, x.record().encode())
		}
		for _, r := range g.requests.records() {
			all = appendRecord(all, g.journal.mark, r.encode())
		}
		return g.journal.replace(all)
	}
	return b
}

// plan computes an item's next run and puts it into the heap.
func (g *engine) plan(x *item, now int64) {
	if x.last > now+correction {
		x.last, x.doneTo = now, now
		g.keep(x.record())
	}
	x.next = 0
	if !x.gone && (x.Overlap || len(x.open) == 0) {
		if next, ok := x.spec.Next(x.last); ok {
			x.next = next
		}
	}
	g.due.set(x)
}

// arm sets the timer.
func (g *engine) arm(now int64) {
	if g.closed || len(g.due) == 0 {
		if g.timer != nil {
			g.timer.Stop()
			g.timer = nil
		}
		return
	}
	at := min(g.due[0].next, now+int64(recheck))
	if g.timer != nil {
		if g.rings <= at && g.rings > now {
			return // then it checks, and is set again
		}
		g.timer.Stop()
	}
	g.rings = at
	d := time.Unix(0, at).Sub(g.clock.Now().Round(0))
	g.timer = g.clock.AfterFunc(min(max(d, 0), recheck), g.ring)
}

// ring handles due items.
func (g *engine) ring() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = nil
	if g.closed {
		return
	}
	now := g.now()
	if g.seen-now > correction {
		g.log.Warn("the clock was set back by more than a day: entries go on from now", "by", time.Duration(g.seen-now))
		for _, x := range g.items.all() {
			g.plan(x, now)
		}
	}
	g.seen = now
	for len(g.due) > 0 && g.due[0].next <= now {
		g.begin(g.due[0], now)
	}
	g.pump()
	g.arm(now)
}

// begin handles a due item: it begins a run, unless the run is missed.
func (g *engine) begin(x *item, now int64) {
	latest, ok := x.spec.Last(x.last, now)
	if !ok {
		g.plan(x, now)
		return
	}
	late, bounded := x.late()
	if bounded && now-latest > late { // all of them are
		x.stats.Missed += g.count(x, latest)
		x.last = latest
		g.markDone(x, 0)
		g.plan(x, now)
		return
	}
	planned := latest
	if x.missed() == RunAll {
		for n := 1; n < x.most(); n++ {
			earlier, ok := x.spec.Last(x.last, planned-1)
			if !ok || bounded && now-earlier > late {
				break
			}
			planned = earlier
		}
	}
	missed := g.count(x, planned) - 1
	x.stats.Missed += missed
	x.last = planned
	r := &run{item: x, planned: planned, missed: missed}
	if x.open == nil {
		x.open = map[int64]*run{}
	}
	x.open[planned] = r
	g.queues.add(r)
	g.plan(x, now)
}

// count is how many times are planned after the last one up to another, counted up to
// countUpTo.
func (g *engine) count(x *item, until int64) (n uint64) {
	for at := x.last; n < countUpTo; n++ {
		next, ok := x.spec.Next(at)
		if !ok || next > until {
			break
		}
		at = next
	}
	return n
}

// markDone notes, and writes, that all planned times up to the last are done, except those of runs
// in progress and one more.
func (g *engine) markDone(x *item, but int64) *batch {
	doneTo := x.last
	for planned := range x.open {
		if planned != but {
			doneTo = min(doneTo, planned-1)
		}
	}
	// A single run is over for good, even if it was noted as done before it ran, as at-most-once runs are.
	over := x.spec.Once() && len(x.open) == 0 && x.owner != "" && doneTo >= x.spec.at
	if x.gone || doneTo <= x.doneTo && !over {
		return nil
	}
	x.doneTo = doneTo
	if over {
		x.gone = true
		g.items.remove(x)
		return g.keep(&record{Kind: wasCancelled, Owner: x.owner, Name: x.Name})
	}
	return g.keep(&record{Kind: wasDone, Owner: x.owner, Name: x.Name, DoneTo: doneTo})
}

// pump begins runs as far as there is room.
func (g *engine) pump() {
	for !g.closed {
		r := g.queues.take()
		if r == nil {
			return
		}
		g.active.Add(1)
		executor.Go(g.clock, func() { g.carry(r) })
	}
}

// drain begins no more runs and waits for those in progress.
func (g *engine) drain(ctx context.Context) {
	g.mu.Lock()
	g.closed = true
	g.arm(0)
	g.mu.Unlock()
	over := make(chan struct{})
	executor.Go(g.clock, func() {
		executor.Join(g.clock, &g.active)
		close(over)
	})
	executor.Take(g.clock, over, ctx.Done())
	g.stop()
	executor.Take(g.clock, over)
}

// close ends the engine.
func (g *engine) close() error {
	g.stop()
	g.drain(g.ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.items.all() {
		for _, r := range x.open {
			if r.again != nil {
				r.again.Stop()
			}
		}
	}
	return g.journal.close()
}
