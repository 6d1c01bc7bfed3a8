// Package dispatch decides which actor runs next, and where.
//
// A [Dispatcher] has a fixed set of workers. Each owns a lane, its local queue;
// a task that is woken by a running task goes to the lane of that one, so a
// conversation stays on one core. Idle workers steal from busy lanes; what comes
// from outside goes through one global queue, the injector. A run that lasts
// longer than a quantum leaves its lane to a substitute (see [Worker.Yield]), so
// that no guest can hold up the others.
//
// docs/architecture/dispatch.md explains it. dispatch-lab.md states the guarantees and says why the constants
// have their values.
package dispatch

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds and defaults of [Config].
const (
	// MaxWorkers is the highest number of workers.
	MaxWorkers = 256
	// DefaultMaxDetached is the number of long runs that may be under way at a
	// time, unless Config says otherwise: 128 MiB of goroutine stacks.
	DefaultMaxDetached = 16384
	// DetachedBytes estimates what a long run holds in Go's memory while it waits
	// for its next slice: the stack of its goroutine and its Worker.
	DetachedBytes = 8 << 10
)

// Config sizes a dispatcher; the zero value is what production wants.
type Config struct {
	// Workers is the number of lanes: of tasks that run at the same time, long
	// runs aside. 0 means GOMAXPROCS; at most MaxWorkers.
	Workers int
	// MaxDetached bounds the long runs that are under way (see Worker.Yield), and
	// with them MaxDetached x DetachedBytes of memory; 0 means DefaultMaxDetached.
	// Beyond it the run that has computed longest is told to end.
	MaxDetached int
	// Fixed makes a pool for tasks that block: there are never more runs than workers.
	// Yield and Block do nothing, and nobody helps out where a run takes long.
	Fixed bool
	// Threads gives each worker of a Fixed dispatcher an operating system thread of its own,
	// which runs nothing else.
	Threads bool

	tick time.Duration // of the monitor; 0 means monitorTick
	now  func() int64  // the clock of the lanes; nil means the machine's
}

// Dispatcher runs the tasks that are scheduled. All methods but those of manual
// mode, Step and RunUntilIdle, are for any goroutine.
type Dispatcher struct {
	lanes       []*lane
	injector    injector
	maxDetached int
	now         func() int64 // the clock of the lanes, in nanoseconds since any time
	letOthers   func()       // has other goroutines use the processor first
	fixed       bool
	threads     bool
	manual      *Worker  // the only worker of manual mode, else nil
	stepping    bool     // of a manual one: a run is under way
	shuffle     *shuffle // of a manual one; nil: in the order of Schedule
	nested      *nested  // of a manual one; nil: in the order of Schedule

	// What the paths without a lock look at.
	parked    atomic.Int32 // len(idle)
	searching atomic.Int32 // workers that look for work and will see what is pushed now
	queued    atomic.Int32 // seats taken in the background
	outside   atomic.Bool  // a task was scheduled from outside since a lane has asked
	busyUntil atomic.Int64 // for how long, by now, it is taken to go on
	closing   atomic.Bool

	mu       sync.Mutex
	idle     []*Worker // parked with their lanes
	spares   []*Worker // parked without a lane
	back     background
	alive    int           // goroutines of this dispatcher, the monitor included
	detached int           // runs without a lane, rescuers included
	doomed   int           // of those, told to end
	tokens   atomic.Int32  // detached runs that may compute now; written under mu
	turns    atomic.Uint64 // slices that were computed with tokens; written under mu
	done     chan struct{} // closed when closing and alive == 0

	watch monitor
}

// New starts a dispatcher with its own goroutines. Close ends it.
func New(c Config) *Dispatcher {
	n := c.Workers
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	n = min(n, MaxWorkers)
	d := newDispatcher(n)
	d.fixed, d.threads = c.Fixed, c.Fixed && c.Threads
	if c.now != nil {
		d.now = c.now
	}
	d.watch.every = cmp.Or(c.tick, monitorTick)
	d.maxDetached = c.MaxDetached
	if d.maxDetached <= 0 {
		d.maxDetached = DefaultMaxDetached
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		d.start(l)
	}
	if !d.fixed {
		d.alive++
		go d.monitor()
	}
	return d
}

func newDispatcher(lanes int) *Dispatcher {
	began := time.Now()
	d := &Dispatcher{done: make(chan struct{}), letOthers: runtime.Gosched, now: func() int64 { return int64(time.Since(began)) }}
	for i := range lanes {
		d.lanes = append(d.lanes, &lane{index: i})
	}
	d.watch.init(lanes)
	return d
}

// Schedule sees to it that t runs, from the beginning, after this call: if it is
// idle it is queued, if it runs now it will run once more, if it is queued
// nothing needs to be done. It never blocks and never runs t itself.
//
// from is the worker that the caller's Run was given, if the caller is within a
// Run and on its goroutine, else nil.
func (d *Dispatcher) Schedule(t *Task, from *Worker) {
	for {
		switch s := t.state.Load(); s {
		case idle:
			if t.state.CompareAndSwap(idle, queued) {
				d.enqueue(t, from)
				return
			}
		case running:
			if t.state.CompareAndSwap(running, rewoken) {
				return
			}
		default: // queued or rewoken: the run to come sees what the caller wrote
			return
		}
	}
}

// enqueue places a task that has just been woken.
func (d *Dispatcher) enqueue(t *Task, from *Worker) {
	if t.heat.Load() > light && d.putAside(t, from) {
		return
	}
	// In a pool of runs that block, what is next on a worker could wait for long.
	if from == nil || from.lane == nil || from.d != d || d.fixed {
		if from == nil && !d.outside.Load() {
			d.outside.Store(true)
		}
		d.injector.push(t)
		d.wake()
		return
	}
	// Next on this worker. What it displaces is surplus that another can take.
	if t = from.lane.slot.Swap(t); t != nil {
		d.append(from.lane, t)
		d.wake()
	}
}

// putAside queues a task that is not light; false: it is medium, and nobody else waits for what would be its lane.
func (d *Dispatcher) putAside(t *Task, from *Worker) bool {
	if t.heat.Load() > medium {
		d.pushBack(t)
		return true
	}
	if from == nil || from.lane == nil || from.d != d || !d.othersWait(from.lane) {
		return false
	}
	d.injector.push(t)
	d.wake()
	return true
}

// othersWait reports whether tasks wait that would wait for what is put into l now.
func (d *Dispatcher) othersWait(l *lane) bool {
	return l.len() > 0 || l.slot.Load() != nil || d.injector.len() > 0
}

// append puts t at the back of the queue of l, whose owner the caller is.
func (d *Dispatcher) append(l *lane, t *Task) {
	if !l.push(t) {
		d.injector.pushAll(l.spill(t))
	}
}

// Close ends the dispatcher. Runs under way are waited for, tasks that are still
// queued do not run any more, and later calls of Schedule have no effect. If ctx
// ends first its error is returned, and Close may be called again to go on
// waiting. After Close has returned nil no goroutine of the dispatcher is left.
func (d *Dispatcher) Close(ctx context.Context) error {
	d.mu.Lock()
	if !d.closing.Swap(true) {
		for _, w := range d.idle {
			w.wakeup <- struct{}{}
		}
		for _, w := range d.spares {
			w.wakeup <- struct{}{}
		}
		d.idle, d.spares = nil, nil
		d.parked.Store(0)
		d.watch.stop()
		if d.alive == 0 {
			close(d.done)
		}
	}
	d.mu.Unlock()
	select {
	case <-d.done:
		return nil
	default:
	}
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats are figures for diagnosis.
type Stats struct {
	Workers  int // lanes
	Parked   int // workers that wait for work
	Detached int // long runs that have left their lane, and workers that help out
	Waiting  int // long runs that wait for their next slice, and heavy tasks that wait to begin
	Injected int // tasks waiting in the global queue

	// DetachedBytes estimates what the long runs hold in stacks.
	DetachedBytes int64
}

// Stats takes a snapshot.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{
		Workers:  len(d.lanes),
		Parked:   len(d.idle),
		Detached: d.detached,
		Waiting:  int(d.queued.Load()),
		Injected: d.injector.len(),

		DetachedBytes: int64(d.detached) * DetachedBytes,
	}
}
