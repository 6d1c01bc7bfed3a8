package journal

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// kind is an actor at the top whose keys keep events, or are remembered.
type kind struct {
	name   string
	n      int
	events bool
	shards map[int]*part
}

func (k *kind) part(s int) *part {
	p := k.shards[s]
	if p == nil {
		p = &part{kind: k.name, no: s, keys: map[*key]struct{}{}}
		k.shards[s] = p
	}
	return p
}

// part is a shard as this node knows it.
type part struct {
	kind string
	no   int

	served bool
	epoch  uint64 // of the table
	passed uint64 // the count under which it is here, see cluster.Node.Passed
	fence  uint64 // where this node's is in the log; 0: it has to be put there
	under  uint64 // the epoch of that fence
	number uint64 // of the last record
	high   uint64 // all that was confirmed is not behind it

	fencing []func(error) // wait for the fence
	round   uint64        // of tries to put it: only those of the last one count
	queue   []*storing
	writing bool

	keys   map[*key]struct{} // that act here
	living living
	erased map[string]bool // names of those that are being erased: none of them begins
}

// Serve implements shard.Journal.
func (j *Journal) Serve(kind string, shard int, epoch, passed uint64) {
	j.mu.Lock()
	try := func() {}
	if k := j.kinds[kind]; k != nil && shard >= 0 && shard < k.n && !j.closed {
		p := k.part(shard)
		if len(p.fencing) > 0 && p.epoch != epoch {
			p.round++
			round := p.round
			try = func() { j.tryFence(p, round, 0, 0) }
		}
		p.served, p.epoch, p.passed = true, epoch, passed
	}
	j.mu.Unlock()
	try()
}

// Release implements shard.Journal.
func (j *Journal) Release(kind string, shard int) {
	j.mu.Lock()
	var ends []func()
	if k := j.kinds[kind]; k != nil && k.shards[shard] != nil {
		p := k.shards[shard]
		ends = j.release(p)
		p.outdated(^uint64(0))
	}
	j.mu.Unlock()
	for _, f := range ends {
		f()
	}
}

// outdated has the actors of keys begin again that were loaded under a fence, or under one before: one may still be in a turn when the shard
// is here again, and does not know what was stored in between. The caller holds the lock.
func (p *part) outdated(fence uint64) {
	for k := range p.keys {
		k.broken = k.broken || k.fence != 0 && k.fence <= fence
	}
}

// release ends what is under way for a shard; the caller holds the lock, and calls what it gets without it.
func (j *Journal) release(p *part) (ends []func()) {
	p.served, p.fence = false, 0
	p.round++
	for _, f := range p.fencing {
		ends = append(ends, func() { f(ErrMoved) })
	}
	p.fencing = nil
	for _, x := range p.queue {
		ends = append(ends, j.ended(x, ErrMoved))
	}
	p.queue, p.writing = nil, false
	ends = append(ends, j.dropList(p)...)
	var loads []*key
	for k := range p.keys {
		if k.done != nil || k.held != nil || k.behind != nil {
			loads = append(loads, k)
		}
	}
	slices.SortFunc(loads, func(a, b *key) int { return strings.Compare(a.id, b.id) })
	for _, k := range loads {
		if k.held != nil {
			ends = append(ends, j.unheld(k, ErrMoved))
			continue
		}
		if s := k.behind; s != nil {
			k.behind = nil
			ends = append(ends, j.ended(s, ErrMoved))
			continue
		}
		ends = append(ends, func() { j.end(k, ErrMoved) })
	}
	return ends
}

// fenced calls f when the shard has this node's fence, or with an error; the caller holds the lock and calls what it gets without it.
func (j *Journal) fenced(p *part, f func(error)) func() {
	switch {
	case !p.served || j.closed:
		return func() { f(ErrMoved) }
	case p.fence != 0:
		return func() { f(nil) }
	}
	p.fencing = append(p.fencing, f)
	if len(p.fencing) > 1 {
		return func() {}
	}
	p.round++
	round := p.round
	return func() { j.tryFence(p, round, 0, 0) }
}

// tryFence looks at the fence that there is, and puts this node's behind it. mine is the number of the fence that was tried before,
// whose outcome is not known; 0: there is none.
func (j *Journal) tryFence(p *part, round uint64, try int, mine uint64) {
	j.mu.Lock()
	epoch, over := p.epoch, p.round != round
	j.mu.Unlock()
	if over {
		return
	}
	j.opt.Log.Last(p.kind, p.no, onceLast(func(b []byte, at uint64, err error) {
		if err != nil {
			j.again(try, func() { j.tryFence(p, round, try+1, mine) })
			return
		}
		last := frame{}
		if b != nil {
			if last, err = decodeFrame(b); err != nil || last.form != fenceForm {
				j.refuse("kind %s, shard %d: what is in the place of the fence is none; it is replaced", p.kind, p.no)
				last = frame{}
			}
		}
		me := owner{j.opt.Node, j.opt.Born}
		switch {
		case last.epoch > epoch, last.epoch == epoch && last.form == fenceForm && last.owner != me:
			j.endFence(p, round, 0, 0, ErrMoved)
		case mine != 0 && last.epoch == epoch && last.owner == me && last.number == mine:
			j.endFence(p, round, at, epoch, nil)
		default:
			j.putFence(p, round, try, epoch, at)
		}
	}))
}

func (j *Journal) putFence(p *part, round uint64, try int, epoch, after uint64) {
	j.mu.Lock()
	j.tries++
	mine, over := j.tries, p.round != round
	j.mu.Unlock()
	if over {
		return
	}
	f := frame{form: fenceForm, epoch: epoch, number: mine, owner: owner{j.opt.Node, j.opt.Born}}
	j.opt.Log.Fence(p.kind, p.no, f.encode(), after, onceAt(func(at uint64, err error) {
		switch {
		case err == nil:
			j.endFence(p, round, at, epoch, nil)
		case errors.Is(err, cluster.ErrFenced) || errors.Is(err, cluster.ErrBusy):
			j.again(try, func() { j.tryFence(p, round, try+1, 0) })
		default:
			j.again(try, func() { j.tryFence(p, round, try+1, mine) })
		}
	}))
}

// endFence tells those that wait for a fence.
func (j *Journal) endFence(p *part, round, at, epoch uint64, err error) {
	j.mu.Lock()
	if p.round != round {
		j.mu.Unlock()
		return
	}
	p.round++
	if err == nil {
		p.fence, p.under, p.high = at, epoch, max(p.high, at)
	}
	all := p.fencing
	p.fencing = nil
	j.mu.Unlock()
	for _, f := range all {
		f(err)
	}
}

// onceAt, onceLast and onceRead are functions of which the first call counts.
func onceAt(f func(uint64, error)) func(uint64, error) {
	var o sync.Once
	return func(at uint64, err error) { o.Do(func() { f(at, err) }) }
}

func onceLast(f func([]byte, uint64, error)) func([]byte, uint64, error) {
	var o sync.Once
	return func(b []byte, at uint64, err error) { o.Do(func() { f(b, at, err) }) }
}

func onceRead(f func([]cluster.LogEntry, error)) func([]cluster.LogEntry, error) {
	var o sync.Once
	return func(list []cluster.LogEntry, err error) { o.Do(func() { f(list, err) }) }
}
