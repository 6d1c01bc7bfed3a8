package clock

import (
	"sync"
	"time"
)

// Virtual is a clock that moves only when [Virtual.Advance] is called.
//
// Timers fire in the order of their deadlines and, where these are equal, in
// the order in which they were made: the same calls give the same run. While a
// timer's function runs, Now is exactly that timer's deadline.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	target time.Time // the target of the Advance in progress
	busy   bool      // an Advance is in progress
	made   uint64    // timers made so far: the order among equal deadlines
	queue  timerHeap
}

// NewVirtual is a clock that stands at start. A monotonic reading in start is
// dropped, so that times of this clock compare by what they show.
func NewVirtual(start time.Time) *Virtual {
	start = start.Round(0)
	return &Virtual{now: start, target: start}
}

// Now is the clock's present time.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// AfterFunc runs f when the clock has advanced by d. A d that is not positive is due now: the
// next Advance runs it, even Advance(0).
func (v *Virtual) AfterFunc(d time.Duration, f func()) Timer {
	if f == nil {
		panic("clock: AfterFunc of nil")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.made++
	t := &virtualTimer{clock: v, when: v.now.Add(max(d, 0)), order: v.made, f: f}
	v.queue.push(t)
	return t
}

// Advance moves the clock on by d (a negative d counts as zero) and runs, on the calling goroutine
// and without holding a lock, every function that falls due on the way, including those that were
// added by then. It returns how many it ran.
//
// A call while another Advance is in progress, from a timer's function or from another goroutine,
// extends that one by d, leaves running the functions to it, and returns 0 at once.
func (v *Virtual) Advance(d time.Duration) int {
	v.mu.Lock()
	v.target = v.target.Add(max(d, 0))
	if v.busy {
		v.mu.Unlock()
		return 0
	}
	v.busy = true
	fired := 0
	// After a function that panics or ends its goroutine the clock must still be usable.
	held := true
	defer func() {
		if !held {
			v.mu.Lock()
			v.target = v.now
		}
		v.busy = false
		v.mu.Unlock()
	}()
	for len(v.queue) > 0 && !v.queue[0].when.After(v.target) {
		t := v.queue.remove(0)
		if t.when.After(v.now) {
			v.now = t.when
		}
		fired++
		held = false
		v.mu.Unlock()
		t.f()
		v.mu.Lock()
		held = true
	}
	v.now = v.target
	return fired
}

// AdvanceToNext moves the clock to the earliest deadline and runs what is due
// then. It returns the number of functions run; 0 means that no timer is
// pending, and the clock has not moved.
func (v *Virtual) AdvanceToNext() int {
	v.mu.Lock()
	if len(v.queue) == 0 {
		v.mu.Unlock()
		return 0
	}
	d := v.queue[0].when.Sub(v.now)
	v.mu.Unlock()
	return v.Advance(d)
}

// Next is the earliest deadline; ok is false when no timer is pending.
func (v *Virtual) Next() (when time.Time, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.queue) == 0 {
		return time.Time{}, false
	}
	return v.queue[0].when, true
}

// Pending is the number of timers that have neither fired nor been stopped.
func (v *Virtual) Pending() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.queue)
}

// virtualTimer is an entry of its clock's heap; pos is -1 once it has left it.
type virtualTimer struct {
	clock *Virtual
	when  time.Time
	order uint64
	pos   int
	f     func()
}

func (t *virtualTimer) Stop() bool {
	v := t.clock
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.pos < 0 {
		return false
	}
	v.queue.remove(t.pos)
	t.f = nil
	return true
}

// timerHeap is a binary heap by (deadline, order of making) whose entries know their positions,
// so that Stop costs O(log n) and leaves nothing behind.
type timerHeap []*virtualTimer

func (h timerHeap) less(i, j int) bool {
	if !h[i].when.Equal(h[j].when) {
		return h[i].when.Before(h[j].when)
	}
	return h[i].order < h[j].order
}

func (h timerHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h *timerHeap) push(t *virtualTimer) {
	t.pos = len(*h)
	*h = append(*h, t)
	h.up(t.pos)
}

func (h *timerHeap) remove(i int) *virtualTimer {
	last := len(*h) - 1
	t := (*h)[i]
	if i != last {
		h.swap(i, last)
	}
	(*h)[last] = nil
	*h = (*h)[:last]
	if i != last {
		h.down(i)
		h.up(i)
	}
	t.pos = -1
	return t
}

func (h timerHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h timerHeap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
