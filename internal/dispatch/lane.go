package dispatch

import (
	"math"
	"sync/atomic"
)

const (
	// laneSize is the length of a lane's ring, a power of two. What does not fit
	// goes to the injector, half a ring at a time.
	laneSize = 256
	laneMask = laneSize - 1

	// slotStreak is how many tasks in a row may come from the slot while others
	// wait in the ring, unless they take long. Two that talk to each other would keep the lane for good
	// otherwise.
	slotStreak = 16

	// injectorTurn is how often a lane that never runs dry takes its share from
	// the injector: every so many tasks.
	injectorTurn = 16

	// A lane looks at the clock after so many tasks at most, or when its tasks have reported so many
	// nanoseconds. If the clock says much more than they have, it looks at every injectorTurn.
	clockTurn = 64
	clockTime = slice / 4

	// outsideFor is for how long lanes make way when it was seen that a goroutine that is none of ours has scheduled
	// a task, in nanoseconds.
	outsideFor = 25_000_000

	// laneShare is how much more time a lane that is always busy has than the others to which it makes way.
	laneShare = 7

	// hogged is how long a lane is away if other goroutines than those that give us tasks compute, in nanoseconds.
	hogged = 10 * slice

	// mostAway is how long Go lets a goroutine have a processor, in nanoseconds: a lane that comes back has it no
	// longer than that before it makes way again, and who has not looked at the clock for that long needs not make way.
	mostAway = 10_000_000

	// mostCharged is how much is charged for one such time at most, in nanoseconds: it may be that
	// the system has taken the processor away.
	mostCharged = 10 * slice

	// notYet stands for a look at the clock that an idle lane saves when it has something to do again: most
	// such times are over before one is needed.
	notYet = math.MinInt64

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
	index   int
	tick    uint32
	streak  uint32
	looked  int64 // at the clock, and what it said, or notYet
	seen    int64 // what the owner had spent then
	busy    int64 // nanoseconds by the clock since the lane has let others have its processor
	silent  bool  // its tasks take longer than they report
	slow    bool  // what it has just done took long: the injector is looked at before the next task
	outside bool  // that is where the task before came from, though others waited in the lane

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
func (l *lane) next(w *Worker) *Task {
	l.tick++
	if l.tick%progressTurn == 0 {
		l.progress.Add(1)
	}
	if turn := l.tick%injectorTurn == 0; turn || l.slow {
		if t := l.lookAround(w, turn); t != nil {
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

// lookAround does what is not done task by task: it looks at the clock, and into the injector; turn: not only because
// something took long.
func (l *lane) lookAround(w *Worker, turn bool) *Task {
	d := w.d
	if !d.patient() {
		w.until = w.spent + brief
		if turn && (l.silent || l.tick%clockTurn == 0) || w.spent-l.seen >= clockTime {
			l.clock(w)
		}
	}
	what, own := severalFresh, l.len() > 0 || l.slot.Load() != nil
	switch {
	case l.slow && !turn && own:
		what = knownOnly // while fresh ones take long they do not keep the lane from its own
	case l.slow:
		what = oneFresh
	}
	first := l.slow && l.outside && what == knownOnly // the lane's own have their turn, too
	l.slow, l.outside = false, false
	if first {
		return nil
	}
	t := d.injector.popInto(l, len(d.lanes), what)
	l.outside = t != nil && own
	return t
}

// lookOut makes the lane look around before the next task, and ends a conversation in
// the slot: what it has just done took long. Owner only.
func (l *lane) lookOut() { l.slow, l.streak = true, slotStreak }

// begin is the beginning of a time in which w serves the lane. Owner only.
func (l *lane) begin(w *Worker) {
	if w.d.patient() {
		w.until = math.MaxInt64
		return
	}
	l.looked, l.seen, l.busy = notYet, w.spent, 0
}

// clock looks at the clock, and lets others have the processor if the lane has had it for long. Owner only.
func (l *lane) clock(w *Worker) {
	took := l.charge(w)
	if l.silent = false; took >= mostAway {
		l.busy = 0 // others have had the processor meanwhile
		return
	}
	if took >= slice {
		l.silent, l.streak = true, slotStreak
	}
	if l.busy += took; l.busy >= slice {
		l.makeWay(w.d)
	}
}

// charge looks at the clock, and has the group of the task that ran last pay for all since the last
// look, which it returns, in nanoseconds: whoever takes longer is seen more often. For the first look it is what
// tasks have reported. Owner only.
func (l *lane) charge(w *Worker) int64 {
	now := w.d.now()
	took := now - l.looked
	if l.looked == notYet {
		took = w.spent - l.seen
	}
	l.looked, l.seen = now, w.spent
	w.d.injector.took(w.task, min(took, mostCharged))
	return took
}

// makeWay lets other goroutines have the processor: long runs, and those that give us tasks. All of these
// would wait until Go takes the processor away, 10 ms each time. Where all comes from within and is short, or a worker
// is idle, it would only wake idle processors. For long runs, and others that compute for long, the lane comes back for
// laneShare times as long as it was away, and a slice. Owner only.
func (l *lane) makeWay(d *Dispatcher) {
	l.busy = 0
	long, outside := d.tokens.Load() > 0, d.asked(l.looked)
	if !long && !outside {
		return
	}
	d.letOthers()
	now := d.now()
	if away := now - l.looked; long || away >= hogged {
		l.busy = -min(laneShare*away, mostAway)
	}
	l.looked = now
}

// asked reports whether goroutines that are none of ours have given us tasks of late, and no processor is idle that
// they could have.
func (d *Dispatcher) asked(now int64) bool {
	if d.outside.Load() {
		d.outside.Store(false)
		d.busyUntil.Store(now + outsideFor)
	}
	return now < d.busyUntil.Load() && d.parked.Load() == 0
}

// takeSlot empties the slot. Any goroutine.
func (l *lane) takeSlot() *Task {
	if l.slot.Load() == nil {
		return nil
	}
	return l.slot.Swap(nil)
}
