package dispatch

// Yield is called by a Run that goes on for long, about every 100 us: from a
// guest's code whenever its quantum is spent.
//
// The first call within a Run hands the lane, with all that waits in it, to a
// substitute goroutine; the run goes on detached. Detached runs take turns: as
// many as there are workers compute at a time, each for one slice, so that any
// number of them leaves the others half of the machine; those that have had little
// come first.
//
// Yield may take long to return, but always returns once the runs before it have
// had their slice. False means that the run should end as soon as it can: more runs
// are under way than may be (Config.MaxDetached), and this one has computed longest,
// for ten slices at least. While nobody has computed so long, a run beyond the bound
// keeps its lane.
// It must be called on the goroutine of w's Run.
func (w *Worker) Yield() (goOn bool) {
	d := w.d
	if d.patient() {
		return true
	}
	w.spent += slice
	w.had.Store((w.spent - w.began) / slice)
	w.task.long()
	if w.lane != nil {
		switch d.detachAged(w) {
		case full:
			return false
		case young, deaf:
			d.letOthers()
			return true
		}
	}
	if w.token {
		d.passToken(w)
	} else {
		d.takeToken(w)
	}
	return !w.doomed.Load()
}

// Block is called by a Run before it waits for something outside, such as a
// lock, a reply or a file: it leaves the lane to a substitute as Yield does, and
// its share of the processor, too. It does not wait itself. Native actors use
// it; what blocks without saying so is found out after some 20 ms.
func (w *Worker) Block() {
	d := w.d
	if d.patient() {
		return
	}
	w.spent += slice // who waits may hold up others as well as who computes
	w.task.long()
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.lane != nil {
		d.detach(w, 0)
		return
	}
	d.unage(w)
	if w.token {
		d.dropToken(w)
	}
}

// detachAged is detach for a run that computes on: from now on it counts among those, before
// any that is detached later.
func (d *Dispatcher) detachAged(w *Worker) room {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.detach(w, patience)
	switch {
	case r == free:
		d.age(w, w.task)
	case r == young && w.had.Load() >= patience:
		return full // w itself has computed longest
	}
	return r
}

// detach gives w's lane to another goroutine if there is room for one more run, see mayDetach.
// d.mu is held.
func (d *Dispatcher) detach(w *Worker, least int64) room {
	if d.closing.Load() {
		return deaf
	}
	if r := d.mayDetach(least); r != free {
		return r
	}
	d.detached++
	w.detached = true
	l := w.lane
	l.charge(w)
	w.lane = nil
	l.lookOut()
	d.start(l)
	return free
}

// endDetached is the end of a run that has used Yield or Block, or of any run on
// a rescuer.
func (d *Dispatcher) endDetached(w *Worker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unage(w)
	if w.doomed.Load() {
		w.doomed.Store(false)
		d.doomed--
	}
	if w.token {
		d.dropToken(w)
	}
	if w.detached {
		w.detached = false
		d.detached--
	}
}

// takeToken waits until w may compute.
func (d *Dispatcher) takeToken(w *Worker) {
	d.mu.Lock()
	if w.doomed.Load() { // since it was detached: it needs no token to end
		d.mu.Unlock()
		return
	}
	d.age(w, w.task)
	if d.spareTokens() && d.queued.Load() == 0 {
		d.tokens.Add(1)
		w.takes()
		d.mu.Unlock()
		d.letOthers() // the substitute first
		return
	}
	d.await(w)
}

// passToken lets whoever is next compute, and waits in turn.
func (d *Dispatcher) passToken(w *Worker) {
	if d.queued.Load() == 0 {
		w.settled = w.spent // what nobody waits for does not count
		d.letOthers()
		return
	}
	d.mu.Lock()
	if d.queued.Load() == 0 {
		d.mu.Unlock()
		w.settled = w.spent
		d.letOthers()
		return
	}
	d.settle(w)
	d.sit(w.task, w) // before the token is free: there is always somebody to take it
	d.dropToken(w)
	d.mu.Unlock()
	w.await()
}

// await queues w for a token. d.mu is held, and released.
func (d *Dispatcher) await(w *Worker) {
	d.sit(w.task, w)
	if d.spareTokens() {
		d.grantToken()
	}
	d.mu.Unlock()
	w.await()
}

// await waits for the token.
func (w *Worker) await() {
	<-w.wakeup
	// Go runs a goroutine that was woken next, in the time of the one that woke it.
	// A lane that waits for this processor comes first.
	w.d.letOthers()
}

// dropToken takes w's token and gives it to the first in the queue, unless the
// monitor has brought too many into circulation. d.mu is held.
func (d *Dispatcher) dropToken(w *Worker) {
	d.settle(w)
	w.token = false
	d.tokens.Add(-1)
	if d.spareTokens() {
		d.grantToken()
	}
}
