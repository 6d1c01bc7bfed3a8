package dispatch

// No wake-up is lost because of this order of events, all of them sequentially
// consistent:
//
//   - who pushes a task to where thieves see it then looks at parked and
//     searching, and wakes a worker if one is parked and none is searching;
//   - who parks first counts itself as parked, then ends its search, and only
//     then looks once more for tasks;
//   - who finds work as the last searcher looks whether there is more.
//
// So a push either sees the parked worker, or trusts in a searcher that will see
// the push, or comes before the last look.

// surplus reports whether there is work that a worker without any could take.
func (d *Dispatcher) surplus() bool {
	if d.injector.len() > 0 {
		return true
	}
	for _, l := range d.lanes {
		if l.len() > 0 {
			return true
		}
	}
	return false
}

// wake gets a parked worker going, unless one is searching already.
func (d *Dispatcher) wake() {
	if d.parked.Load() == 0 || d.searching.Load() != 0 {
		return
	}
	d.mu.Lock()
	n := len(d.idle)
	if n == 0 || d.searching.Load() != 0 {
		d.mu.Unlock()
		return
	}
	w := d.idle[n-1]
	d.idle[n-1] = nil
	d.idle = d.idle[:n-1]
	d.parked.Store(int32(n - 1))
	w.searching = true
	d.searching.Add(1)
	d.mu.Unlock()
	w.wakeup <- struct{}{}
	d.watch.kick()
}

// park waits, with the lane, for work or for the end. It may return for nothing.
func (d *Dispatcher) park(w *Worker) {
	d.mu.Lock()
	if d.closing.Load() {
		d.mu.Unlock()
		return
	}
	d.idle = append(d.idle, w)
	d.parked.Store(int32(len(d.idle)))
	if w.searching {
		w.searching = false
		d.searching.Add(-1)
	}
	d.mu.Unlock()
	if d.surplus() && d.unpark(w) {
		return
	}
	w.task = nil // it may be dead, and this may take long
	<-w.wakeup
	w.waits++
	w.lane.begin(w)
	w.lane.progress.Add(1)
}

// unpark takes w off the list of parked workers, for w itself; false means that
// somebody else has done so, and a signal is on its way.
func (d *Dispatcher) unpark(w *Worker) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, other := range d.idle {
		if other == w {
			last := len(d.idle) - 1
			d.idle[i] = d.idle[last]
			d.idle[last] = nil
			d.idle = d.idle[:last]
			d.parked.Store(int32(last))
			return true
		}
	}
	return false
}

// maxSpares is how many goroutines without a lane wait for their next use.
func (d *Dispatcher) maxSpares() int { return max(8, 2*len(d.lanes)) }

// rest parks a worker that has lost its lane; false means that its goroutine
// should end, because there are enough of them or the dispatcher closes.
func (d *Dispatcher) rest(w *Worker) bool {
	d.mu.Lock()
	if w.lane != nil || d.closing.Load() || len(d.spares) >= d.maxSpares() {
		d.mu.Unlock()
		return false
	}
	w.task = nil
	d.spares = append(d.spares, w)
	d.mu.Unlock()
	<-w.wakeup
	w.waits++
	return w.lane != nil || w.job != nil
}

// exit counts a goroutine that ends.
func (d *Dispatcher) exit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.alive--
	if d.alive == 0 && d.closing.Load() {
		close(d.done)
	}
}
