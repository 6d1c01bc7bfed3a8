package dispatch

import "github.com/wasmactors/wasmactors/internal/linked"

// background is the queue for tokens: runs that have left their lane and wait for
// their next slice, and heavy tasks that wait to begin. It is first in, first out
// over both kinds. Everything in it is guarded by Dispatcher.mu.
type background struct {
	runs  linked.List[*seat]   // seats with a worker
	tasks linked.List[*seat]   // seats without
	stamp uint64               // of the seat taken last
	aged  linked.List[*Worker] // those that compute a heavy task, the one that has done so longest first
}

// seat is a task's place in the queue. It belongs to the task for good.
type seat struct {
	task   *Task
	worker *Worker // the run that waits; nil: the task waits to begin
	stamp  uint64  // seats with a lower one come first
	place  linked.Link[*seat]
}

func (b *background) listOf(s *seat) *linked.List[*seat] {
	if s.worker != nil {
		return &b.runs
	}
	return &b.tasks
}

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
	s.worker, s.stamp = w, d.back.stamp
	d.back.listOf(s).PushBack(&s.place)
	d.queued.Add(1)
}

// leave gives a seat up. d.mu is held.
func (d *Dispatcher) leave(s *seat) {
	d.back.listOf(s).Remove(&s.place)
	d.queued.Add(-1)
}

// pushBack queues a heavy task for a token.
func (d *Dispatcher) pushBack(t *Task) {
	d.mu.Lock()
	d.sit(t, nil)
	if d.tokens < len(d.lanes) {
		d.grantToken()
	}
	d.mu.Unlock()
	d.watch.kick()
}

// first is the seat that comes next, nil if none is taken.
func first(l *linked.List[*seat]) *seat {
	if p := l.First(); p != nil {
		return p.Of
	}
	return nil
}

// grantToken lets the first in the queue compute. d.mu is held.
func (d *Dispatcher) grantToken() {
	run, task := first(&d.back.runs), first(&d.back.tasks)
	switch {
	case d.closing.Load(): // only runs under way go on
		task = nil
	case task != nil && (run == nil || task.stamp < run.stamp):
		if d.mayDetach() {
			d.grantTask(task)
			return
		}
	}
	if run != nil {
		d.grantRun(run)
	}
}

// grantRun lets a run that waits compute. d.mu is held.
func (d *Dispatcher) grantRun(s *seat) {
	w := s.worker
	d.leave(s)
	d.turns++
	d.tokens++
	w.token = true
	w.wakeup <- struct{}{}
}

// grantTask starts a heavy task. d.mu is held.
func (d *Dispatcher) grantTask(s *seat) {
	t := s.task
	d.leave(s)
	d.turns++
	d.tokens++
	d.detached++
	d.employ(runHeavy, t)
}

// runHeavy is the job of a worker that begins a heavy task.
func runHeavy(w *Worker) {
	t := w.heavy
	w.heavy = nil
	w.d.mu.Lock()
	w.token, w.detached = true, true
	w.d.age(w, t)
	w.d.mu.Unlock()
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
		l := d.back.listOf(s)
		l.Remove(&s.place)
		s.stamp = 0
		l.PushFront(&s.place)
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

// mayDetach reports whether one more run may be under way without a lane. At the
// bound it tells the one that has computed longest to end: that one has had the most,
// and whoever needs a little longer than a slice still gets through.
// d.mu is held.
func (d *Dispatcher) mayDetach() bool {
	if d.detached-d.doomed < d.maxDetached {
		return true
	}
	oldest := d.back.aged.First()
	if oldest == nil || d.doomed >= max(1, d.maxDetached/8) {
		return false // nobody to tell, or they do not listen
	}
	w := oldest.Of
	s := w.seat
	d.unage(w)
	d.doomed++
	w.doomed.Store(true)
	if s.place.Listed() {
		d.grantRun(s) // beyond the tokens: it needs little
	}
	return true
}
