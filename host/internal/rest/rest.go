// Package rest has the durable actors of a system come to rest, so that what each of them is can be copied: none is within a run, and
// nothing that they tell each other is under way. It asks none of them: their runs, turns and system messages are counted.
package rest

import (
	"context"
	"sync"
	"sync/atomic"
)

// Rest is that of the durable actors of a system, and of its guardians. All methods are for any goroutine; only one at a time has them rest.
type Rest[A comparable] struct {
	wake func(A)

	still  atomic.Bool // actors handle no messages
	solid  atomic.Bool // they do nothing at all
	frozen atomic.Bool // they never go on

	owed atomic.Int64 // actors with system messages that they have not dealt with
	held atomic.Int64 // actors whose turns wait for the recorder
	here atomic.Int64 // actors, without guardians

	runs [shards]shard
	ran  chan struct{} // something that was waited for may have come about

	mu    sync.Mutex
	left  []A // who had something to do, and has not
	among map[A]struct{}

	between func(where step) // called where others may come in between, in tests; nil: it is not
}

// step is where others may come in between.
type step int

const (
	looked  step = iota // Come has seen that nothing is under way
	begins              // Begin has seen that the actor may run
	leaving             // leaves has seen that it may not
)

func (r *Rest[A]) at(where step) {
	if r.between != nil {
		r.between(where)
	}
}

// shard counts runs: how many have begun in its upper half, how many go on in its lower one.
type shard struct {
	atomic.Uint64
	_ [56]byte // workers do not share a cache line
}

const (
	shards = 16
	begun  = 1<<32 | 1
)

// New is the rest of actors that all go on. wake has one of them run.
func New[A comparable](wake func(A)) *Rest[A] {
	return &Rest[A]{wake: wake, ran: make(chan struct{}, 1), among: map[A]struct{}{}}
}

// Begin is called at the beginning of each run of an actor; by is a number of it. busy says that it has more to do than to handle messages.
// False: it does nothing, and is woken when it may. Otherwise End follows.
func (r *Rest[A]) Begin(a A, by uint64, busy bool) bool {
	if r.still.Load() && (!busy && r.Still(a) || r.leaves(a, &r.solid)) { // nearly always they go on
		return false
	}
	r.at(begins)
	n := &r.runs[by%shards]
	n.Add(begun)
	if r.solid.Load() && r.leaves(a, &r.solid) {
		n.Add(^uint64(begun - 1))
		r.Over()
		return false
	}
	return true
}

// End is called at the end of a run.
func (r *Rest[A]) End(by uint64) {
	if r.runs[by%shards].Add(^uint64(0)); r.still.Load() {
		r.Over()
	}
}

// Still reports, within a run of an actor, whether it handles no messages for now. It is woken when it may.
func (r *Rest[A]) Still(a A) bool { return r.still.Load() && r.leaves(a, &r.still) }

// leaves reports whether an actor leaves what it has to do, because of while. It is woken when that is over.
func (r *Rest[A]) leaves(a A, while *atomic.Bool) bool {
	if !while.Load() {
		return false
	}
	r.at(leaving)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !while.Load() { // who is to be woken was taken meanwhile
		return false
	}
	if _, there := r.among[a]; !there {
		r.left, r.among[a] = append(r.left, a), struct{}{}
	}
	r.Over() // it can be visited when this run is over
	return true
}

// Owe counts actors with system messages: 1 before such a message is sent, and -1 when it has come to one that was counted, or all of an
// actor are dealt with.
func (r *Rest[A]) Owe(n int) {
	if n == 0 {
		return
	}
	if r.owed.Add(int64(n)); n < 0 && r.still.Load() {
		r.Over()
	}
}

// Hold counts turns that wait for the recorder: 1 or, when it goes on, -1. It is called within runs.
func (r *Rest[A]) Hold(n int) { r.held.Add(int64(n)) }

// Live counts actors: 1 when one begins or returns, -1 when it has stopped for good.
func (r *Rest[A]) Live(n int) { r.here.Add(int64(n)) }

// Actors is how many there are.
func (r *Rest[A]) Actors() int { return int(r.here.Load()) }

// Over says that something is over which may have been waited for.
func (r *Rest[A]) Over() {
	select {
	case r.ran <- struct{}{}:
	default:
	}
}

// look is what the runs have come to, and whether nothing is under way.
func (r *Rest[A]) look() (now [shards]uint64, calm bool) {
	calm = true
	for i := range r.runs {
		now[i] = r.runs[i].Load()
		calm = calm && uint32(now[i]) == 0
	}
	return now, calm && r.held.Load() == 0 && r.owed.Load() == 0
}

// Come has the actors handle no more messages, and waits until nothing that they tell each other is under way. With solid they do
// nothing at all then, until Thaw is called. wait waits for Over, or has actors run; its error ends all.
//
// That nothing was under way while it looked is certain if no run has begun between two looks: only runs of these actors tell others something
// that counts. What comes from elsewhere is recorded when it is taken in.
func (r *Rest[A]) Come(solid bool, wait func() error) error {
	r.still.Store(true)
	for {
		before, calm := r.look()
		if calm && solid {
			r.at(looked)
			r.solid.Store(true)
			if now, _ := r.look(); now == before {
				return nil
			}
			r.solid.Store(false)
			r.wakeLeft()
			continue
		}
		if calm {
			if now, again := r.look(); again && now == before {
				return nil
			}
			continue
		}
		if err := wait(); err != nil {
			return err
		}
	}
}

// Wait waits for Over.
func (r *Rest[A]) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.ran:
		return nil
	}
}

// Thaw lets actors go on, unless they are frozen: then they only do what system messages tell them.
func (r *Rest[A]) Thaw() {
	if r.solid.Store(false); !r.frozen.Load() {
		r.still.Store(false)
	}
	r.wakeLeft()
}

// wakeLeft wakes who had something to do.
func (r *Rest[A]) wakeLeft() {
	r.mu.Lock()
	left := r.left
	r.left, r.among = nil, map[A]struct{}{}
	r.mu.Unlock()
	for _, a := range left {
		r.wake(a)
	}
}

// Freeze has actors handle no messages any more; false if that was said before.
func (r *Rest[A]) Freeze() bool {
	first := !r.frozen.Swap(true)
	r.still.Store(true)
	return first
}

// Frozen reports whether Freeze was called.
func (r *Rest[A]) Frozen() bool { return r.frozen.Load() }
