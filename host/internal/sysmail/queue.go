package sysmail

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Queue has no bound for messages about lives: the host writes a bounded number of
// those for each actor concerned. Messages that guests and operators can cause in any number while the
// actor is busy are thinned out: see thin.
type Queue struct {
	mu     sync.Mutex
	Items  []Msg
	spare  []Msg
	closed bool
	out    bool // a batch was taken and not given back, which may be in first
	N      atomic.Int32
	Cut    atomic.Bool // a batch was ended because of what waits, or has waited; the queue itself does not look at it
	thinAt int32       // how long it may become before it is thinned out; 0: firstThin
	first  [1]Msg      // room for the usual length
}

// Init gives the queue its initial room.
func (q *Queue) Init() { q.spare = q.first[:0] }

// Waiting reports whether there is a message. Any goroutine may ask.
func (q *Queue) Waiting() bool { return q.N.Load() > 0 }

// Push is false if the actor has gone.
func (q *Queue) Push(m *Msg) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false
	}
	if q.Items == nil {
		q.Items, q.spare = q.spare, nil
	}
	q.Items = append(q.Items, *m)
	if len(q.Items) >= max(int(q.thinAt), FirstThin) {
		q.Thin()
	}
	q.N.Store(int32(len(q.Items)))
	q.mu.Unlock()
	return true
}

// Take returns all that waits; give it back to done.
func (q *Queue) Take() []Msg {
	if q.N.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	items := q.Items
	q.Items, q.thinAt, q.out = nil, 0, true
	q.N.Store(0)
	q.mu.Unlock()
	return items
}

// PutBack puts messages that were taken before all others.
func (q *Queue) PutBack(items []Msg) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Items, q.out = append(slices.Clone(items), q.Items...), false
	q.N.Store(int32(len(q.Items)))
}

func (q *Queue) Done(items []Msg) {
	if cap(items) > 64 {
		return
	}
	for i := range items {
		m := &items[i] // few as a rule: clear takes longer
		*m = Msg{}
	}
	q.mu.Lock()
	q.out = false
	if q.spare == nil {
		q.spare = items[:0]
	}
	q.mu.Unlock()
}

// Trim gives back the room for more messages than one, unless one waits or is being handled.
func (q *Queue) Trim() {
	q.mu.Lock()
	if q.Items == nil && !q.out && cap(q.spare) > len(q.first) {
		clear(q.first[:])
		q.spare = q.first[:0]
	}
	q.mu.Unlock()
}

// Close refuses later pushes and returns what is left.
func (q *Queue) Close() []Msg {
	q.mu.Lock()
	items := q.Items
	q.Items, q.closed = nil, true
	q.N.Store(0)
	q.mu.Unlock()
	return items
}

// Thin drops messages that say nothing new, and merges those that are counted, so that a queue is no longer than
// the number of different messages in it, however often guests and operators repeat them to a busy actor.
func (q *Queue) Thin() {
	t := thinning{items: q.Items, keep: make([]bool, len(q.Items)), seen: make(map[about]int, len(q.Items)), order: -1}
	t.last()
	for i := range t.items {
		if t.keep[i] {
			t.keep[i] = t.first(i)
		}
	}
	rest := make([]Msg, 0, len(t.items)/2)
	for i, m := range t.items {
		if t.keep[i] {
			rest = append(rest, m)
		}
	}
	clear(q.Items)
	q.Items, q.thinAt = rest, int32(2*len(rest))
}
