package dispatch

// background is the queue for tokens: runs that have left their lane and wait for
// their next slice, and heavy tasks that wait to begin. It is first in, first out
// over both kinds. Everything in it is guarded by Dispatcher.mu.
type background struct {
	runs  seatList // seats with a worker
	tasks seatList // seats without
	stamp uint64   // of the seat taken last
	aged  struct{ first, last *Worker }
}

// seat is a task's place in the queue. It belongs to the task for good.
type seat struct {
	task       *Task
	worker     *Worker // the run that waits; nil: the task waits to begin
	stamp      uint64  // seats with a lower one come first
	taken      bool    // in a list
	prev, next *seat
}

type seatList struct{ first, last *seat }

func (l *seatList) push(s *seat) {
	s.prev, s.next = l.last, nil
	if l.last == nil {
		l.first = s
	} else {
		l.last.next = s
	}
	l.last = s
}

func (l *seatList) pushFront(s *seat) {
	s.prev, s.next = nil, l.first
	if l.first == nil {
		l.last = s
	} else {
		l.first.prev = s
	}
	l.first = s
}

func (l *seatList) remove(s *seat) {
	if s.prev == nil {
		l.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

func (b *background) listOf(s *seat) *seatList {
	if s.worker != nil {
		return &b.runs
	}
	return &b.tasks
}

// seatOf is t's seat, made when it is first needed: most tasks never are heavy.
func seatOf(t *Task) *seat {
	if t.seat == nil {
		t.seat = &seat{task: t}
	}
	return t.seat
}

// sit takes a seat for t, or for its run on w. d.mu is held.
func (d *Dispatcher) sit(t *Task, w *Worker) {
	s := seatOf(t)
	d.back.stamp++
	s.worker, s.stamp, s.taken = w, d.back.stamp, true
	d.back.listOf(s).push(s)
	d.queued.Add(1)
}

// leave gives a seat up. d.mu is held.
func (d *Dispatcher) leave(s *seat) {
	d.back.listOf(s).remove(s)
	s.taken = false
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

// grantToken lets the first in the queue compute. d.mu is held.
func (d *Dispatcher) grantToken() {
	run, task := d.back.runs.first, d.back.tasks.first
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
	if s := t.seat; s != nil && s.taken {
		l := d.back.listOf(s)
		l.remove(s)
		s.stamp = 0
		l.pushFront(s)
	}
}

// age puts w, which runs t, among those that compute, the youngest. d.mu is held.
func (d *Dispatcher) age(w *Worker, t *Task) {
	if w.aged || w.doomed.Load() {
		return
	}
	b := &d.back.aged
	w.aged, w.elder, w.younger, w.seat = true, b.last, nil, seatOf(t)
	if b.last == nil {
		b.first = w
	} else {
		b.last.younger = w
	}
	b.last = w
}

// unage takes w out again. d.mu is held.
func (d *Dispatcher) unage(w *Worker) {
	if !w.aged {
		return
	}
	b := &d.back.aged
	if w.elder == nil {
		b.first = w.younger
	} else {
		w.elder.younger = w.younger
	}
	if w.younger == nil {
		b.last = w.elder
	} else {
		w.younger.elder = w.elder
	}
	w.aged, w.elder, w.younger, w.seat = false, nil, nil, nil
}

// mayDetach reports whether one more run may be under way without a lane. At the
// bound it tells the one that has computed longest to end: that one has had the most,
// and whoever needs a little longer than a slice still gets through.
// d.mu is held.
func (d *Dispatcher) mayDetach() bool {
	if d.detached-d.doomed < d.maxDetached {
		return true
	}
	w := d.back.aged.first
	if w == nil || d.doomed >= max(1, d.maxDetached/8) {
		return false // nobody to tell, or they do not listen
	}
	s := w.seat
	d.unage(w)
	d.doomed++
	w.doomed.Store(true)
	if s.taken {
		d.grantRun(s) // beyond the tokens: it needs little
	}
	return true
}
