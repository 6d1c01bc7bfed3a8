package dispatch

import (
	"sync"
	"sync/atomic"
)

// injector is the global queue, first in first out: for what is scheduled from
// outside or by runs without a lane, and for what does not fit into a lane.
// Tasks are linked through themselves, and each is in one queue at most, so it
// needs neither memory nor a bound of its own.
type injector struct {
	n     atomic.Int64
	mu    sync.Mutex
	first *Task
	last  *Task
}

func (q *injector) len() int { return int(q.n.Load()) }

func (q *injector) push(t *Task) { q.pushAll(t, t, 1) }

// pushAll appends a chain of n tasks.
func (q *injector) pushAll(first, last *Task, n int) {
	last.next = nil
	q.mu.Lock()
	if q.last == nil {
		q.first = first
	} else {
		q.last.next = first
	}
	q.last = last
	q.n.Add(int64(n))
	q.mu.Unlock()
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

func (q *injector) popLocked() *Task {
	t := q.first
	if t == nil {
		return nil
	}
	q.first = t.next
	if q.first == nil {
		q.last = nil
	}
	t.next = nil
	q.n.Add(-1)
	return t
}

// popInto takes the oldest and moves a fair share of the others, one lane's
// part, to the back of l, whose owner the caller is.
func (q *injector) popInto(l *lane, lanes int) *Task {
	if q.n.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.popLocked()
	if t == nil {
		return nil
	}
	share := (int(q.n.Load()) + lanes - 1) / lanes
	for range min(share, (laneSize-l.len())/2) {
		l.push(q.popLocked()) // there is room: thieves only make more of it
	}
	return t
}
