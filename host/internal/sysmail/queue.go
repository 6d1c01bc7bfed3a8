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
	owes   bool // something waits, or was taken and not given back
	N      atomic.Int32
	Cut    atomic.Bool // a batch was ended because of what waits, or has waited; the queue itself does not look at it
	thinAt int32       // how long it may become before it is thinned out; 0: firstThin
	first  [1]Msg      // room for the usual length
}

// Init gives the queue its initial room.
func (q *Queue) Init() { q.spare = q.first[:0] }

// Waiting reports whether there is a message. Any goroutine may ask.
func (q *Queue) Waiting() bool { return q.N.Load() > 0 }

// Push is false if the actor has gone. first says that the queue owes nothing before.
func (q *Queue) Push(m *Msg) (ok, first bool) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false, false
	}
	first, q.owes = !q.owes, true
	if q.Items == nil {
		q.Items, q.spare = q.spare, nil
	}
	q.Items = append(q.Items, *m)
	if len(q.Items) >= max(int(q.thinAt), FirstThin) {
		q.Thin()
	}
	q.N.Store(int32(len(q.Items)))
	q.mu.Unlock()
	return true, first
}

// settle says whether something is owed, and returns by how much that has changed. The caller holds mu.
func (q *Queue) settle() (change int) {
	was := q.owes
	switch q.owes = len(q.Items) > 0; {
	case was && !q.owes:
		return -1
	case !was && q.owes:
		return 1
	}
	return 0
}

// Take returns all that waits; give it back to Done, or what is left of it to PutBack. Until then it is owed.
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

// PutBack puts messages that were taken before all others. It returns by how much it has changed that something is owed: -1, 0 or 1.
func (q *Queue) PutBack(items []Msg) (owed int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Items, q.out = append(slices.Clone(items), q.Items...), false
	q.N.Store(int32(len(q.Items)))
	return q.settle()
}

// Done says that all that was taken is dealt with. It returns what PutBack does.
func (q *Queue) Done(items []Msg) (owed int) {
	spare := cap(items) <= 64
	if spare {
		for i := range items {
			m := &items[i] // few as a rule: clear takes longer
			*m = Msg{}
		}
	}
	q.mu.Lock()
	if spare {
		if q.out = false; q.spare == nil {
			q.spare = items[:0]
		}
	}
	owed = q.settle()
	q.mu.Unlock()
	return owed
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

// Close refuses later pushes and returns what is left, and what PutBack does.
func (q *Queue) Close() (items []Msg, owed int) {
	q.mu.Lock()
	items = q.Items
	q.Items, q.closed = nil, true
	q.N.Store(0)
	owed = q.settle()
	q.mu.Unlock()
	return items, owed
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
