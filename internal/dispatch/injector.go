package dispatch

import (
	"sync"
	"sync/atomic"
)

// injector is the global queue: for what is scheduled from outside or by runs without
// a lane, and for what does not fit into a lane. Fresh tasks wait apart from those
// that are known to be short; each kind is first in, first out, and they take turns
// when both wait. Tasks are linked through themselves, and each is in one
// queue at most, so it needs neither memory nor a bound of its own.
type injector struct {
	n     atomic.Int64
	mu    sync.Mutex
	known chain
	fresh chain
	turn  bool // the fresh ones are next, if both wait
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

func (q *injector) len() int { return int(q.n.Load()) }

func (q *injector) push(t *Task) {
	q.mu.Lock()
	q.pushLocked(t)
	q.n.Add(1)
	q.mu.Unlock()
}

func (q *injector) pushLocked(t *Task) {
	if t.heat.Load() == fresh {
		q.fresh.push(t)
	} else {
		q.known.push(t)
	}
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

// popOf takes the oldest; withFresh: the fresh ones have their turn.
func (q *injector) popOf(withFresh bool) *Task {
	from := &q.known
	if withFresh && q.fresh.first != nil {
		if from.first == nil || q.turn {
			from = &q.fresh
		}
		q.turn = !q.turn
	}
	t := from.pop()
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
	share := (q.known.n + lanes - 1) / lanes
	for range min(share, (laneSize-l.len())/2) {
		l.push(q.known.pop()) // there is room: thieves only make more of it
		q.n.Add(-1)
	}
	if share == 0 && what == severalFresh && l.len() == 0 {
		for range min((q.fresh.n+lanes-1)/lanes, freshBatch, laneSize-l.len()) {
			l.push(q.fresh.pop())
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
