package shard

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Memory keeps which keys of a kind are to live, by [Config.WithMemory]: the next owner of a shard starts them, whether it has got the shard
// or has taken it, or all nodes have ended in between. Its methods are called within a region's turns, and must not block. What they
// are given is called once, by any goroutine, also before they return.
type Memory interface {
	Journal
	// Recall reads which keys of a shard that is served here are to live. It is tried until the shard is released.
	Recall(kind string, shard int, done func(names []string, err error))
	// Lives reports whether it is recorded that a key lives, and nothing else of the key is about to be recorded.
	Lives(kind string, shard int, name string) bool
	// Remember records that a key lives. Nothing of its actor may happen before that is done.
	Remember(kind string, shard int, name string, done func(error))
	// Forget records that a key does not live any more.
	Forget(kind string, shard int, name string)
	// Settled reports whether nothing is about to be recorded of a shard.
	Settled(kind string, shard int) bool
}

// Bounds of how many keys a region starts in a second because they were remembered.
const (
	DefaultStarts = 200
	MaxStarts     = 100_000
)

// WithMemory has keys remembered while they live, and at most so many a second started again, 1 to MaxStarts. A key that ends by itself, or is
// stopped or passivated, is forgotten; one that was stopped for a failure, or whose shard moves or is lost, is not. Nil, the default: none is
// remembered. If there is a journal as well, it is the same.
func (c Config) WithMemory(m Memory, starts int) Config { c.memory, c.starts = m, starts; return c }

// recollection is what a region knows of keys that are remembered. It is for the region's turns alone.
type recollection struct {
	asked  map[string]*unheard // keys that are about to be recorded, or were a moment ago
	starts []string            // keys to be started, in order
	listed map[string]bool     // of those
	ill    []illness           // keys whose actors have failed
	next   time.Time           // when the next one may be started
	full   error               // why the last one was not; nil: it was
}

func newRecollection() recollection {
	return recollection{asked: map[string]*unheard{}, listed: map[string]bool{}}
}

// unheard is a key whose first messages wait until it is recorded.
type unheard struct {
	held  int // messages that wait, and their bytes
	bytes int64
	done  bool  // it is known what has come of it; what has waited is behind
	why   error // it was not recorded, or its actor not started
}

// illness is a key whose actor has failed.
type illness struct {
	name  string
	until time.Time // it is not started before
}

// recalled is what the memory has answered.
type recalled struct {
	shard int
	epoch uint64
	names []string // of a shard that are to live
	name  string   // or one key that was to be recorded
	err   error
}

// fromMemory has an answer of the memory handled within a turn.
func (r *region) fromMemory(ctx *host.Context) func(recalled) {
	st, sys, self := r.st, ctx.System(), r.self
	return func(x recalled) {
		st.mu.Lock()
		st.recalled = append(st.recalled, x)
		st.mu.Unlock()
		if !st.dirty.Swap(true) {
			_ = sys.Tell(self, order{Op: opLook}.message())
		}
	}
}

// recall has the keys of a shard started that are to live.
func (r *region) recall(ctx *host.Context, s int) {
	if r.memory == nil {
		return
	}
	epoch, tell := r.own[s].epoch, r.fromMemory(ctx)
	r.memory.Recall(r.kind, s, func(names []string, err error) {
		if err == nil && len(names) > 0 {
			tell(recalled{shard: s, epoch: epoch, names: names})
		}
	})
}

// listen handles what the memory has answered.
func (r *region) listen(ctx *host.Context) {
	if r.memory == nil {
		return
	}
	r.st.mu.Lock()
	all := r.st.recalled
	r.st.recalled = nil
	r.st.mu.Unlock()
	for _, x := range all {
		if x.name == "" {
			for _, name := range x.names {
				r.line(name)
			}
			continue
		}
		h := r.mem.asked[x.name]
		if h == nil || h.done {
			r.line(x.name)
			continue
		}
		r.let(h)
		h.done, h.why = true, x.err
		r.Again(ctx, x.name)
		r.line(x.name) // perhaps nobody waits any more, or it was on the list already
	}
}

// line has a key started, if it is to live and does not.
func (r *region) line(name string) {
	if !r.mem.listed[name] {
		r.mem.listed[name] = true
		r.mem.starts = append(r.mem.starts, name)
	}
}

// let gives back the room of what waits for a key.
func (r *region) let(h *unheard) {
	r.waits -= h.held
	r.weight -= h.bytes
	h.held, h.bytes = 0, 0
}

// pass hands a message to the actor of its key. It waits while it is recorded that a key lives that did not before.
func (r *region) pass(ctx *host.Context, m host.Message, name string) {
	if r.memory == nil {
		_ = r.Pass(ctx, m, name)
		return
	}
	s, h, again := Of(name, r.shards), r.mem.asked[name], ctx.Head().Kept() == name
	switch {
	case h != nil && !h.done:
		r.hold(ctx, m, name, h)
		return
	case h != nil && !again: // what has waited is behind
		delete(r.mem.asked, name)
		h = nil
	case h != nil && h.why != nil:
		r.Refuse(ctx, m, h.why)
		return
	}
	if r.Knows(name) || r.memory.Lives(r.kind, s, name) {
		if err := r.Pass(ctx, m, name); err != nil && h != nil && !r.Knows(name) {
			h.why = err // it was recorded for what has waited, none of which begins it
			r.memory.Forget(r.kind, s, name)
		}
		return
	}
	if err := r.Admits(ctx, m); err != nil {
		r.Refuse(ctx, m, err)
		return
	}
	h = &unheard{}
	if !r.hold(ctx, m, name, h) {
		return
	}
	r.mem.asked[name] = h
	tell := r.fromMemory(ctx)
	r.memory.Remember(r.kind, s, name, func(err error) { tell(recalled{shard: s, name: name, err: err}) })
}

// hold has a message wait until its key is recorded.
func (r *region) hold(ctx *host.Context, m host.Message, name string, h *unheard) bool {
	most, bytes, size := max(1, r.Config.buffer/4), r.bytes/4, keyed.Size(m)
	full := h.held >= most || r.waits >= r.Config.buffer || h.held > 0 && h.bytes+size > bytes || r.weight+size > r.bytes
	if full || ctx.Head().StashFor(name) != nil {
		r.Refuse(ctx, m, ErrBuffer)
		return false
	}
	h.held++
	h.bytes += size
	r.waits++
	r.weight += size
	return true
}

// waitingFor are the keys of a shard for which messages wait to be recorded.
func (r *region) waitingFor(s int) (names []string) {
	for name, h := range r.mem.asked {
		if !h.done && Of(name, r.shards) == s {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// yield gives up the wait for keys of a shard to be recorded: what waits goes to the next owner, or is refused.
func (r *region) yield(ctx *host.Context, s int, goes bool) (names []string) {
	names = r.waitingFor(s)
	for _, name := range names {
		r.let(r.mem.asked[name])
		delete(r.mem.asked, name)
		if !goes {
			r.Again(ctx, name)
		}
	}
	return names
}

// keyOver is called when the actor of a key has ended, before what waits for it is handled.
func (r *region) keyOver(ctx *host.Context, name string, failed bool) {
	if r.memory == nil {
		return
	}
	s := Of(name, r.shards)
	o, sent := &r.own[s], r.st.sent[name]
	delete(r.st.sent, name)
	here := o.phase == serving || o.phase == waiting || o.phase == closing
	switch {
	case !here || !r.node.Acting():
	case failed && !r.on(guardFailed):
		r.memory.Forget(r.kind, s, name)
	case failed:
		r.mem.ill = append(r.mem.ill, illness{name, ctx.Now().Add(time.Second)})
	case sent && r.on(guardSent): // it was asked to end, since the shard was to move
		r.line(name)
	default:
		r.memory.Forget(r.kind, s, name)
	}
}

// leave is Keeper.Leave of keys that are to live elsewhere.
func (r *region) leave(ctx *host.Context, s int, now bool) (left, wait []string) {
	return r.gone(r.Leave(ctx, r.in(s), now))
}

func (r *region) gone(left, wait []string) ([]string, []string) {
	for _, name := range left {
		if r.memory != nil {
			r.st.sent[name] = true
		}
	}
	return left, wait
}

// tendMemory starts keys that are to live, as many as may be now.
func (r *region) tendMemory(ctx *host.Context) {
	if r.memory == nil {
		return
	}
	now := ctx.Now()
	maps.DeleteFunc(r.mem.asked, func(_ string, h *unheard) bool { return h.done })
	r.mem.ill = slices.DeleteFunc(r.mem.ill, func(x illness) bool {
		over := !now.Before(x.until)
		if over {
			r.line(x.name)
		}
		return over
	})
	if !r.node.Acting() {
		return
	}
	if since := now.Add(-tick); r.mem.next.Before(since) {
		r.mem.next = since
	}
	for len(r.mem.starts) > 0 && !r.mem.next.After(now) {
		name := r.mem.starts[0]
		r.mem.starts[0] = ""
		r.mem.starts = r.mem.starts[1:]
		delete(r.mem.listed, name)
		s := Of(name, r.shards)
		if r.own[s].phase != serving || r.Has(name) || r.mem.asked[name] != nil || !r.memory.Lives(r.kind, s, name) {
			continue
		}
		err := r.Begin(ctx, name)
		if r.mem.next = r.mem.next.Add(time.Second / time.Duration(r.starts)); err == nil {
			r.mem.full = nil
		}
		switch {
		case errors.Is(err, host.ErrLimit):
			r.mem.full = err
			r.line(name)
			r.mem.next = now.Add(time.Second)
		case err != nil || !r.Has(name): // it has failed a moment ago, or fails now
			r.mem.ill = append(r.mem.ill, illness{name, now.Add(time.Second)})
		}
	}
}

// remembers reports whether a tick is needed for keys that are to live.
func (r *region) remembers() bool {
	if len(r.mem.starts) > 0 || len(r.mem.ill) > 0 {
		return true
	}
	for _, h := range r.mem.asked {
		if h.done {
			return true
		}
	}
	return false
}

// mayGo reports whether all that was to be recorded of a shard is, so that it may be handed over.
func (r *region) mayGo(s int) bool {
	return r.memory == nil || r.memory.Settled(r.kind, s)
}
