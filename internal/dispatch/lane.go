package dispatch

import "sync/atomic"

const (
	// laneSize is the length of a lane's ring, a power of two. What does not fit
	// goes to the injector, half a ring at a time.
	laneSize = 256
	laneMask = laneSize - 1

	// slotStreak is how many tasks in a row may come from the slot while others
	// wait in the ring. Two that talk to each other would keep the lane for good
	// otherwise.
	slotStreak = 16

	// injectorTurn is how often a lane that never runs dry takes its share from
	// the injector: every so many tasks.
	injectorTurn = 16

	// progressTurn is how often a busy lane tells the monitor that it moves.
	progressTurn = 8
)

// lane is the local queue of a worker: a slot for the task that was woken last
// and a ring for the others, oldest first. It has one owner at a time, the
// worker whose lane field points to it; others steal from the ring's old end and
// look into the slot only if the owner is stuck.
type lane struct {
	slot atomic.Pointer[Task]
	head atomic.Uint32 // next to take; moved by the owner and by thieves
	tail atomic.Uint32 // next free place; moved by the owner
	// progress changes while the owner gets on; see monitor.
	progress atomic.Uint32

	// The owner's.
	index  int
	tick   uint32
	streak uint32
	slow   bool // what it has just done took long: the injector is looked at before the next task

	_    [64]byte // thieves read the ring; keep them off the owner's counters
	ring [laneSize]atomic.Pointer[Task]
}

// push puts t at the back; false means that the ring is full. Owner only.
func (l *lane) push(t *Task) bool {
	tail := l.tail.Load()
	if tail-l.head.Load() >= laneSize {
		return false
	}
	l.ring[tail&laneMask].Store(t)
	l.tail.Store(tail + 1)
	return true
}

// pop takes the oldest. Owner only, but thieves may be about.
func (l *lane) pop() *Task {
	for {
		head := l.head.Load()
		if head == l.tail.Load() {
			return nil
		}
		t := l.ring[head&laneMask].Load()
		if l.head.CompareAndSwap(head, head+1) {
			return t
		}
	}
}

// len is the number of tasks in the ring; other goroutines than the owner get
// an estimate.
func (l *lane) len() int {
	// In this order the difference is never negative: head only grows.
	head := l.head.Load()
	return int(l.tail.Load() - head)
}

// spill empties the older half of a full ring into a chain with t at its end.
// Thieves may have been faster, then less than that is left to spill. Owner only.
func (l *lane) spill(t *Task) (first *Task, n int) {
	var all chain
	for all.n < laneSize/2 {
		old := l.pop()
		if old == nil {
			break
		}
		all.push(old)
	}
	all.push(t)
	return all.first, all.n
}

// steal moves the older half of victim's ring, rounded up, into l's ring, which
// must be empty, and returns the oldest task; nil if there is none. The caller
// owns l.
func (l *lane) steal(victim *lane) *Task {
	for {
		head := victim.head.Load()
		n := victim.tail.Load() - head
		n -= n / 2
		if n == 0 {
			return nil
		}
		if n > laneSize/2 {
			continue // head and tail are not of the same moment
		}
		first := victim.ring[head&laneMask].Load()
		tail := l.tail.Load()
		for i := uint32(1); i < n; i++ {
			l.ring[(tail+i-1)&laneMask].Store(victim.ring[(head+i)&laneMask].Load())
		}
		if victim.head.CompareAndSwap(head, head+n) {
			l.tail.Store(tail + n - 1)
			return first
		}
	}
}

// next is the task that the owner should run now; nil if the lane is empty and
// it is not the injector's turn.
func (l *lane) next(d *Dispatcher) *Task {
	l.tick++
	if l.tick%progressTurn == 0 {
		l.progress.Add(1)
	}
	if turn := l.tick%injectorTurn == 0; turn || l.slow {
		what := severalFresh
		switch {
		case l.slow && !turn && (l.len() > 0 || l.slot.Load() != nil):
			what = knownOnly // while fresh ones take long they do not keep the lane from its own
		case l.slow:
			what = oneFresh
		}
		l.slow = false
		if t := d.injector.popInto(l, len(d.lanes), what); t != nil {
			return t
		}
	}
	if l.streak < slotStreak {
		if t := l.takeSlot(); t != nil {
			l.streak++
			return t
		}
	}
	l.streak = 0
	if t := l.pop(); t != nil {
		return t
	}
	return l.takeSlot()
}

// lookOut makes the injector be looked at before the next task: what the lane has
// just done took long. Owner only.
func (l *lane) lookOut() { l.slow = true }

// takeSlot empties the slot. Any goroutine.
func (l *lane) takeSlot() *Task {
	if l.slot.Load() == nil {
		return nil
	}
	return l.slot.Swap(nil)
}
