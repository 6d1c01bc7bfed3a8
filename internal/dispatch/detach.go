package dispatch

import "runtime"

// Yield is called by a Run that goes on for long, about every 100 us: from a
// guest's code whenever its quantum is spent.
//
// The first call within a Run hands the lane, with all that waits in it, to a
// substitute goroutine; the run goes on detached. Detached runs take turns: as
// many as there are workers compute at a time, each for one quantum, so that a
// thousand of them leave the others half of the machine. When too many are
// detached already (Config.MaxDetached) the run keeps its lane and Yield only
// lets Go's scheduler run.
//
// Yield may take long to return, but always returns once the runs before it have
// had their quantum. It must be called on the goroutine of w's Run.
func (w *Worker) Yield() {
	d := w.d
	if d.manual != nil {
		return
	}
	if w.lane != nil && !d.detach(w) {
		runtime.Gosched()
		return
	}
	if w.token {
		d.passToken(w)
	} else {
		d.takeToken(w)
	}
}

// Block is called by a Run before it waits for something outside, such as a
// lock, a reply or a file: it leaves the lane to a substitute as Yield does, and
// its share of the processor, too. It does not wait itself. Native actors use
// it; what blocks without saying so is found out after some 20 ms.
func (w *Worker) Block() {
	d := w.d
	if d.manual != nil {
		return
	}
	if w.lane != nil {
		d.detach(w)
	} else if w.token {
		d.mu.Lock()
		d.dropToken(w)
		d.mu.Unlock()
	}
}

// detach gives w's lane to another goroutine; false means that w keeps it.
func (d *Dispatcher) detach(w *Worker) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.detached >= d.maxDetached || d.closing.Load() {
		return false
	}
	d.detached++
	w.detached = true
	l := w.lane
	w.lane = nil
	d.start(l)
	return true
}

// endDetached is the end of a run that has used Yield or Block, or of any run on
// a rescuer.
func (d *Dispatcher) endDetached(w *Worker) {
	d.mu.Lock()
	defer d.mu.Unlock()
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
	if d.tokens < len(d.lanes) && d.waiting.first == nil {
		d.tokens++
		w.token = true
		d.mu.Unlock()
		runtime.Gosched() // the substitute first
		return
	}
	d.await(w)
}

// passToken lets the run that has waited longest compute, and waits in turn.
func (d *Dispatcher) passToken(w *Worker) {
	if d.queued.Load() == 0 {
		runtime.Gosched()
		return
	}
	d.mu.Lock()
	if d.waiting.first == nil {
		d.mu.Unlock()
		runtime.Gosched()
		return
	}
	d.dropToken(w)
	d.await(w)
}

// await queues w for a token. d.mu is held, and released.
func (d *Dispatcher) await(w *Worker) {
	d.waiting.push(w)
	d.queued.Add(1)
	d.mu.Unlock()
	<-w.wakeup
}

// dropToken takes w's token and gives it to the first in the queue, unless the
// monitor has brought too many into circulation. d.mu is held.
func (d *Dispatcher) dropToken(w *Worker) {
	w.token = false
	d.tokens--
	if d.tokens < len(d.lanes) {
		d.grantToken()
	}
}

// grantToken lets the first in the queue compute. d.mu is held.
func (d *Dispatcher) grantToken() {
	w := d.waiting.pop()
	if w == nil {
		return
	}
	d.queued.Add(-1)
	d.turns++
	d.tokens++
	w.token = true
	w.wakeup <- struct{}{}
}

// workerList is a queue of workers, linked through themselves.
type workerList struct{ first, last *Worker }

func (q *workerList) push(w *Worker) {
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
}

func (q *workerList) pop() *Worker {
	w := q.first
	if w == nil {
		return nil
	}
	q.first = w.next
	if q.first == nil {
		q.last = nil
	}
	w.next = nil
	return w
}
