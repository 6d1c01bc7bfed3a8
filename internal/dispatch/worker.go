package dispatch

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/internal/linked"
)

// Worker is a goroutine that runs tasks. Run gets the one that it is on.
type Worker struct {
	// Local is scratch for the user of the dispatcher, nil at first. A Worker
	// belongs to one goroutine for good, so Local needs no lock; a run that
	// leaves its lane to a substitute keeps its Worker and so its Local.
	Local any

	d    *Dispatcher
	lane *lane // nil: the run on this worker is detached, or there is none
	task *Task // on this worker now, or until now

	waits     uint32 // how often it has waited for work
	spent     int64  // by all runs, ns, as far as is known
	began     int64  // spent when the present run began
	until     int64  // what spent may come to before the lane looks around
	settled   int64  // spent when it was last counted what was done with a token
	searching bool   // counted in d.searching
	detached  bool   // counted in d.detached
	token     bool   // counted in d.tokens
	doomed    atomic.Bool
	had       atomic.Int64  // slices of the present run, as of its last Yield
	wakeup    chan struct{} // one signal, sent by who takes w off a list
	job       func(*Worker) // what a spare does when it is woken without a lane
	heavy     *Task         // which one, if that is runHeavy

	// The list of those that have computed longest, under d.mu.
	aged linked.Link[*Worker]
	seat *seat // of its task, while it is aged
}

// Waits is how often the worker has waited for work: what it knew of the time before
// is old when it changes. For the goroutine that runs on it.
func (w *Worker) Waits() uint32 { return w.waits }

// start puts a new or a spare worker on l. d.mu is held.
func (d *Dispatcher) start(l *lane) {
	if n := len(d.spares); n > 0 {
		w := d.spares[n-1]
		d.spares[n-1] = nil
		d.spares = d.spares[:n-1]
		w.lane = l
		w.wakeup <- struct{}{}
		return
	}
	w := d.newWorker()
	w.lane = l
	go w.main()
}

// newWorker counts a goroutine that the caller is about to start. d.mu is held.
func (d *Dispatcher) newWorker() *Worker {
	d.alive++
	return &Worker{d: d, wakeup: make(chan struct{}, 1)}
}

// main is the goroutine of a worker.
func (w *Worker) main() {
	if w.d.threads {
		runtime.LockOSThread() // the thread ends with the goroutine
	}
	finished := false
	defer func() {
		if !finished {
			w.vanished()
		}
		w.d.exit()
	}()
	for {
		if w.lane != nil {
			w.serve()
		} else if w.job != nil {
			job := w.job
			w.job = nil
			job(w)
		}
		if !w.d.rest(w) {
			break
		}
	}
	finished = true
}

// serve runs tasks until the worker has lost its lane or the dispatcher closes.
func (w *Worker) serve() {
	d := w.d
	w.lane.begin(w)
	w.lane.progress.Add(1)
	if w.lane.slow && d.asked(d.now()) {
		d.letOthers() // a chain of runs that leave the lane is one goroutine to Go, until 10 ms are over
	}
	for w.lane != nil {
		t := w.find()
		if t == nil {
			return
		}
		if d.parked.Load() > 0 && w.lane.len() > 0 {
			d.wake() // we are busy from here on, and there is more
		}
		w.run(t)
	}
}

// run runs t once and puts it where it belongs afterwards.
func (w *Worker) run(t *Task) {
	t.state.Store(running)
	w.task = t
	w.began = w.spent
	more := t.what.Run(w)
	w.finish(t, more)
}

func (w *Worker) finish(t *Task, more bool) {
	d := w.d
	if w.spent >= w.until || t.heat.Load() != light {
		w.learn(t)
		if w.lane != nil && w.spent >= w.until {
			w.lane.lookOut()
		}
	}
	if w.detached || w.token {
		d.endDetached(w)
	}
	if !more && t.state.CompareAndSwap(running, idle) {
		return
	}
	t.state.Store(queued)
	heat := t.heat.Load()
	if heat > medium {
		d.goOn(t)
		return
	}
	if w.lane == nil {
		d.injector.push(t)
		d.wake()
		return
	}
	// No wake: this worker itself is free for it, see serve.
	if heat == medium && d.othersWait(w.lane) {
		d.injector.push(t)
		return
	}
	d.append(w.lane, t)
}

// find is the next task to run, waiting for one if need be; nil means that the
// dispatcher closes.
func (w *Worker) find() *Task {
	d, l := w.d, w.lane
	for !d.closing.Load() {
		if t := l.next(w); t != nil {
			w.found()
			return t
		}
		if t := d.injector.popInto(l, len(d.lanes), severalFresh); t != nil {
			w.found()
			return t
		}
		if w.search() {
			if t := d.stealFor(l); t != nil {
				w.found()
				return t
			}
		}
		d.park(w)
	}
	return nil
}

// search makes w one of those who look for work in other lanes. Half of the
// workers are enough for that.
func (w *Worker) search() bool {
	if !w.searching && 2*int(w.d.searching.Load()) < len(w.d.lanes) {
		w.searching = true
		w.d.searching.Add(1)
	}
	return w.searching
}

// found ends the search. While w searched, others may have pushed work without
// waking anybody, trusting in w; the last one who stops searching answers for it.
func (w *Worker) found() {
	if !w.searching {
		return
	}
	w.searching = false
	if w.d.searching.Add(-1) == 0 && w.d.surplus() {
		w.d.wake()
	}
}

// stealFor takes work from the first lane that has some, beginning anywhere.
func (d *Dispatcher) stealFor(l *lane) *Task {
	n := len(d.lanes)
	if n == 1 {
		return nil
	}
	for i, start := 0, rand.IntN(n); i < n; i++ {
		if victim := d.lanes[(start+i)%n]; victim != l {
			if t := l.steal(victim); t != nil {
				return t
			}
		}
	}
	return nil
}

// vanished cleans up after a run that has ended its goroutine (runtime.Goexit,
// as testing's FailNow does): another goroutine takes the lane over. After a
// panic it does no harm; the process is about to end.
func (w *Worker) vanished() {
	d := w.d
	if t := w.task; t != nil { // a goroutine ends only within a run
		w.task = nil
		w.finish(t, false)
	}
	if l := w.lane; l != nil {
		w.lane = nil
		d.mu.Lock()
		if !d.closing.Load() {
			d.start(l)
		}
		d.mu.Unlock()
	}
}
