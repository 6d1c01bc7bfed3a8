package dispatch

import (
	"sync"
	"sync/atomic"
)

// injector is the global queue: for what is scheduled from outside or by runs without
// a lane, for what does not fit into a lane, and for medium tasks while others wait. Fresh
// and medium tasks wait apart from those that are known to be short; each kind is first in,
// first out, and they take turns. Tasks are linked through themselves, and each is in one
// queue at most, so it needs neither memory nor a bound of its own.
type injector struct {
	n      atomic.Int64
	mu     sync.Mutex
	known  ranked
	medium ranked
	fresh  ranked
	turn   uint32 // of a choice between known ones and others
	used   usage
}

// chain is a list of tasks.
type chain struct {
	first, last *Task
	n           int
}

func (c *chain) push(t *Task) {
	t.next = nil
	if c.last == nil {
		c.first = t
	} else {
		c.last.next = t
	}
	c.last = t
	c.n++
}

func (c *chain) pop() *Task {
	t := c.first
	if t == nil {
		return nil
	}
	if c.first = t.next; c.first == nil {
		c.last = nil
	}
	t.next = nil
	c.n--
	return t
}

// ranked is two chains: of the tasks whose group has had little in the lanes of late, and of
// the others. The first come first, but for every so many.
type ranked struct {
	little, much chain
	turn         uint32
}

// rankedAgain is how many tasks at most change the chain when one is taken.
const rankedAgain = 64

func (r *ranked) len() int { return r.little.n + r.much.n }

// both reports whether there are tasks of either rank.
func (r *ranked) both() bool { return r.little.n > 0 && r.much.n > 0 }

func (r *ranked) push(t *Task, u *usage) {
	if u.greedy(t) {
		r.much.push(t)
	} else {
		r.little.push(t)
	}
}

func (r *ranked) pop(u *usage) *Task {
	if first := r.little.first; r.much.first == nil && (first == nil || !u.greedy(first)) {
		return r.little.pop()
	}
	return r.choose(u)
}

// choose is pop where there is a choice.
func (r *ranked) choose(u *usage) *Task {
	if r.much.first != nil {
		if r.turn++; r.turn%fifoTurn == 0 {
			return r.much.pop()
		}
	}
	t := r.little.pop()
	for range rankedAgain {
		if t == nil || !u.greedy(t) {
			break
		}
		r.much.push(t) // since it was queued its group has had much
		t = r.little.pop()
	}
	if t == nil {
		t = r.much.pop()
	}
	return t
}

func (q *injector) len() int { return int(q.n.Load()) }

func (q *injector) push(t *Task) {
	q.mu.Lock()
	q.pushLocked(t)
	q.n.Add(1)
	q.mu.Unlock()
}

func (q *injector) pushLocked(t *Task) {
	switch t.heat.Load() {
	case fresh:
		q.fresh.push(t, &q.used)
	case medium:
		q.medium.push(t, &q.used)
	default:
		q.known.push(t, &q.used)
	}
}

// took charges t's group for what a lane has computed, in nanoseconds.
func (q *injector) took(t *Task, ns int64) {
	if t == nil || t.group == nil {
		return
	}
	q.mu.Lock()
	q.used.count(&t.group.lanes, ns)
	q.mu.Unlock()
}

// pushAll appends a chain of n tasks.
func (q *injector) pushAll(first *Task, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for t := first; t != nil; {
		next := t.next
		q.pushLocked(t)
		t = next
	}
	q.n.Add(int64(n))
}

// pop takes the oldest; nil if there is none.
func (q *injector) pop() *Task {
	if q.n.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.popLocked()
}

func (q *injector) popLocked() *Task { return q.popOf(true) }

// popOf takes the next; others: not only those that are known to be short have their turn.
func (q *injector) popOf(others bool) (t *Task) {
	if others && q.fresh.len()+q.medium.len() > 0 {
		q.turn++
		others = q.known.len() == 0 || q.turn%2 == 0
	} else {
		others = false
	}
	switch {
	case !others:
		t = q.known.pop(&q.used)
	case q.medium.len() == 0, q.fresh.len() > 0 && q.turn&2 != 0:
		t = q.fresh.pop(&q.used)
	default:
		t = q.medium.pop(&q.used)
	}
	if t != nil {
		q.n.Add(-1)
	}
	return t
}

// popInto takes the oldest and moves a fair share of the known ones, one lane's
// part, to the back of l, whose owner the caller is. Of the fresh ones a few follow
// if nothing else waits: nobody knows how long they take, and what comes into the
// lane later waits for them.
func (q *injector) popInto(l *lane, lanes int, what part) *Task {
	if q.n.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.popOf(what != knownOnly)
	share := (q.known.len() + lanes - 1) / lanes
	if q.known.both() {
		share = 0 // in the ring all are equal
	}
	for range min(share, (laneSize-l.len())/2) {
		l.push(q.known.pop(&q.used)) // there is room: thieves only make more of it
		q.n.Add(-1)
	}
	if q.known.len() == 0 && what == severalFresh && l.len() == 0 {
		for range min((q.fresh.len()+lanes-1)/lanes, freshBatch, laneSize-l.len()) {
			l.push(q.fresh.pop(&q.used))
			q.n.Add(-1)
		}
	}
	return t
}

// part is what a lane takes of the fresh tasks.
type part uint8

const (
	severalFresh part = iota
	oneFresh
	knownOnly // none
)

// freshBatch is how many fresh tasks follow the first into a lane.
const freshBatch = 4
