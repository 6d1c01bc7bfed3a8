package dispatch

import (
	"math/bits"

	"github.com/wasmactors/wasmactors/internal/linked"
)

// background is the queue for tokens: runs that have left their lane and wait for
// their next slice, and heavy tasks that wait to begin. Those that have had few slices
// come first: see next. Dispatcher.mu guards all of it.
type background struct {
	levels [2 * levels]level    // the second half is of greedy groups
	stamp  uint64               // of the seat taken last
	grants uint64               // of tokens to those who have sat
	aged   linked.List[*Worker] // those that compute a heavy task, the one that has done so longest first
	busy   uint32               // groups with a seat
	groups window               // busy
	tasks  window               // all seats
}

// levels is how many there are: on level n are those that have had 2^(n-1) slices and less than twice as
// many, on the last one those beyond 26 s.
const levels = 20

// level is the seats of those that have had about as much.
type level struct {
	runs  linked.List[*seat] // seats with a worker
	tasks linked.List[*seat] // seats without
}

// mostSettled is how many slices count at most of what could not be interrupted: two periods, and some more.
const mostSettled = 4 * period

// fifoTurn is how often the next is the one that has waited longest, whatever it has had: every so many
// grants.
const fifoTurn = 4

// seat is a task's place in the queue. It belongs to the task for good.
type seat struct {
	task   *Task
	worker *Worker // the run that waits; nil: the task waits to begin
	level  uint8
	stamp  uint64 // of seats on a level those with a lower one come first
	place  linked.Link[*seat]
}

func (b *background) listOf(s *seat) *linked.List[*seat] {
	if s.worker != nil {
		return &b.levels[s.level].runs
	}
	return &b.levels[s.level].tasks
}

// next is the seat whose turn it is, or nil. With tasks, those that wait to begin count too. The lowest level
// comes first, so that a run that needs some slices does not wait for thousands of endless ones. Within a level the
// seat that was taken first comes first. Every fourth time it is the oldest seat of all, so that none waits endlessly.
func (b *background) next(tasks bool) (found *seat) {
	for i := range b.levels {
		l := &b.levels[i]
		s := first(&l.runs)
		if tasks {
			if t := first(&l.tasks); t != nil && (s == nil || t.stamp < s.stamp) {
				s = t
			}
		}
		switch {
		case s == nil:
		case b.grants%fifoTurn != 0:
			return s
		case found == nil || s.stamp < found.stamp:
			found = s
		}
	}
	return found
}

// levelOf is the level of a task that has had that many slices.
func levelOf(slices int64) uint8 { return uint8(min(bits.Len64(uint64(slices)), levels-1)) }

// seatOf is t's seat, made when it is first needed: most tasks never are heavy.
func seatOf(t *Task) *seat {
	if t.seat == nil {
		t.seat = &seat{task: t}
		t.seat.place.Of = t.seat
	}
	return t.seat
}

// sit takes a seat for t, or for its run on w. d.mu is held.
func (d *Dispatcher) sit(t *Task, w *Worker) {
	s := seatOf(t)
	d.back.stamp++
	d.cool(t, w)
	had := int64(t.had)
	if w != nil {
		had += w.own() / slice
	}
	s.worker, s.level, s.stamp = w, levelOf(had), d.back.stamp
	d.queued.Add(1)
	if g := t.group; g != nil {
		d.rollAll(g)
		d.joins(g)
		if d.greedy(g) {
			s.level += levels
		}
	}
	d.back.listOf(s).PushBack(&s.place)
}

// leave frees a seat. d.mu is held.
func (d *Dispatcher) leave(s *seat) {
	d.back.listOf(s).Remove(&s.place)
	d.queued.Add(-1)
	if g := s.task.group; g != nil {
		d.parts(g)
	}
}

// granted counts a slice that the task of a seat gets, which has left it. d.mu is held.
func (d *Dispatcher) granted(s *seat) {
	d.back.grants++
	d.count(s.task, 1)
	d.tokens.Add(1)
}

// count notes slices of t. d.mu is held.
func (d *Dispatcher) count(t *Task, slices int64) {
	if g := t.group; g != nil {
		d.rollAll(g)
		g.now.slices += uint32(slices)
	}
	d.turns.Add(uint64(slices))
}

// settle counts what w's run has had of its token beyond the slice that it was granted: work that cannot be
// interrupted, such as a copy. d.mu is held.
func (d *Dispatcher) settle(w *Worker) {
	more := min((w.spent-w.settled-1)/slice, mostSettled)
	for ; more > 0; more -= period { // so that no period is left out
		d.count(w.task, min(more, period))
	}
	w.settled = w.spent
}

// pushBack queues a heavy task for a token.
func (d *Dispatcher) pushBack(t *Task) {
	d.mu.Lock()
	d.queueBack(t)
	d.mu.Unlock()
	d.watch.kick()
}

// goOn is pushBack for a task whose run has just ended. That its token was passed on was no pause,
// however many grants there were until now.
func (d *Dispatcher) goOn(t *Task) {
	d.mu.Lock()
	t.at = uint32(d.turns.Load())
	d.queueBack(t)
	d.mu.Unlock()
	d.watch.kick()
}

// queueBack is pushBack; d.mu is held.
func (d *Dispatcher) queueBack(t *Task) {
	d.sit(t, nil)
	if d.spareTokens() {
		d.grantToken()
	}
}

// spareTokens reports whether fewer runs compute than may. d.mu is held.
func (d *Dispatcher) spareTokens() bool { return int(d.tokens.Load()) < len(d.lanes) }

// first is the first seat of a list, nil if none is taken.
func first(l *linked.List[*seat]) *seat {
	if p := l.First(); p != nil {
		return p.Of
	}
	return nil
}

// grantToken lets the next in the queue compute. d.mu is held.
func (d *Dispatcher) grantToken() {
	s := d.back.next(!d.closing.Load()) // at the end only runs under way go on
	if s != nil && s.worker == nil {
		if d.mayDetach(patience) == free {
			d.grantTask(s)
			return
		}
		s = d.back.next(false)
	}
	if s != nil {
		d.grantRun(s)
	}
}

// grantRun lets a run that waits compute. d.mu is held.
func (d *Dispatcher) grantRun(s *seat) {
	w := s.worker
	d.leave(s)
	d.granted(s)
	w.takes()
	w.wakeup <- struct{}{}
}

// takes has w have a token. d.mu is held.
func (w *Worker) takes() { w.token, w.settled = true, w.spent }

// grantTask starts a heavy task. d.mu is held.
func (d *Dispatcher) grantTask(s *seat) {
	t := s.task
	d.leave(s)
	d.granted(s)
	d.detached++
	d.employ(runHeavy, t)
}

// runHeavy is the job of a worker that begins a heavy task.
func runHeavy(w *Worker) {
	t := w.heavy
	w.heavy = nil
	w.d.mu.Lock()
	w.takes()
	w.detached = true
	w.had.Store(0)
	w.d.age(w, t)
	w.d.mu.Unlock()
	w.d.letOthers() // see await
	w.run(t)
}

// Hurry lets t come next among those that wait for a token, if it does: its system
// message or its end should not wait for every long run's slice. What is
// not heavy has no need of it. Any goroutine may call it.
func (d *Dispatcher) Hurry(t *Task) {
	if d.queued.Load() == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := t.seat; s != nil && s.place.Listed() {
		d.back.listOf(s).Remove(&s.place)
		s.level, s.stamp = 0, 0
		d.back.listOf(s).PushFront(&s.place)
	}
}

// age puts w, which runs t, among those that compute, the youngest. d.mu is held.
func (d *Dispatcher) age(w *Worker, t *Task) {
	if w.aged.Listed() || w.doomed.Load() {
		return
	}
	w.aged.Of, w.seat = w, seatOf(t)
	d.back.aged.PushBack(&w.aged)
}

// unage takes w out again. d.mu is held.
func (d *Dispatcher) unage(w *Worker) {
	if !w.aged.Listed() {
		return
	}
	d.back.aged.Remove(&w.aged)
	w.seat = nil
}

// room says whether one more run may be under way without a lane.
type room uint8

const (
	free  room = iota
	young      // no: all that are under way have computed for less than they are left
	deaf       // no: as many as may be have been told to end, and have not
	full       // no, and who asks has computed longest
)

// patience is how many slices a run may compute before it is told to end for others. Where thousands of actors
// start at once, all of their first turns can be under way, and each needs a few slices.
const patience = 10

// mayDetach says whether there is room for one more run. At the bound the one that has
// computed longest is told to end, if it has had the least number of slices: that one has had the most,
// and whoever needs a little longer than a slice still gets through.
// d.mu is held.
func (d *Dispatcher) mayDetach(least int64) room {
	if d.detached-d.doomed < d.maxDetached {
		return free
	}
	oldest := d.back.aged.First()
	if oldest == nil || d.doomed >= max(1, d.maxDetached/8) {
		return deaf // nobody to tell, or they do not listen
	}
	w := oldest.Of
	if w.had.Load() < least {
		return young
	}
	s := w.seat
	d.unage(w)
	d.doomed++
	w.doomed.Store(true)
	if s.place.Listed() {
		d.grantRun(s) // beyond the tokens: it needs little
	}
	return free
}
