package dispatch

import (
	"sync/atomic"
	"time"
)

const (
	// monitorTick is how long a lane with work may stand still before somebody
	// helps out; it takes between one tick and two to notice.
	monitorTick = 10 * time.Millisecond
	// monitorRest is after how many ticks without any work the monitor goes to
	// sleep until a worker is woken.
	monitorRest = 100
)

// monitor watches for runs that neither end nor yield: native code that blocks.
// What waits behind them, in the slot of their lane above all, would wait for
// ever. A rescuer, a worker without a lane, runs it instead.
type monitor struct {
	every  time.Duration
	seen   []uint32 // each lane's progress at the last tick
	turns  uint64   // Dispatcher.turns at the last tick
	asleep atomic.Bool
	nudge  chan struct{}
	quit   chan struct{}
}

func (m *monitor) init(lanes int) {
	m.seen = make([]uint32, lanes)
	m.nudge = make(chan struct{}, 1)
	m.quit = make(chan struct{})
}

func (m *monitor) stop() { close(m.quit) }

// kick wakes the monitor if it sleeps.
func (m *monitor) kick() {
	if m.asleep.Load() && m.asleep.CompareAndSwap(true, false) {
		m.nudge <- struct{}{}
	}
}

// monitor is the goroutine.
func (d *Dispatcher) monitor() {
	defer d.exit()
	m := &d.watch
	tick := time.NewTicker(m.every)
	defer tick.Stop()
	quiet := 0
	for {
		select {
		case <-m.quit:
			return
		case <-tick.C:
		}
		if !d.quiet() {
			quiet = 0
			d.look()
			tick.Reset(m.every) // from now: where a look takes as long, others run before the next
			continue
		}
		if quiet++; quiet < monitorRest {
			continue
		}
		quiet = 0
		tick.Stop()
		m.asleep.Store(true)
		if d.quiet() || !m.asleep.CompareAndSwap(true, false) {
			select {
			case <-m.quit:
				return
			case <-m.nudge:
			}
		}
		tick.Reset(m.every)
	}
}

// quiet reports whether nothing runs.
func (d *Dispatcher) quiet() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.idle) == len(d.lanes) && d.detached == 0
}

// look compares with the tick before and helps where nothing has moved.
func (d *Dispatcher) look() {
	m := &d.watch
	stuck := false
	moved := false
	for i, l := range d.lanes {
		p := l.progress.Load()
		if p != m.seen[i] {
			moved = true
			m.seen[i] = p
		} else if l.len() > 0 || l.slot.Load() != nil {
			stuck = true
		}
	}
	if !moved && d.injector.len() > 0 {
		stuck = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queued.Load() > 0 && d.turns.Load() == m.turns {
		// Those who may compute hold on to it; let one more.
		d.grantToken()
	}
	m.turns = d.turns.Load()
	if stuck && d.detached < d.maxDetached && !d.closing.Load() {
		d.rescue(append([]uint32(nil), m.seen...))
	}
}

// rescue starts a rescuer. d.mu is held.
func (d *Dispatcher) rescue(seen []uint32) {
	job := func(w *Worker) {
		defer func() { // also if a run ends the goroutine
			d.mu.Lock()
			d.detached--
			d.mu.Unlock()
		}()
		w.rescue(seen)
	}
	d.detached++
	d.employ(job, nil)
}

// employ gives a job to a worker without a lane. d.mu is held.
func (d *Dispatcher) employ(job func(*Worker), heavy *Task) {
	if n := len(d.spares); n > 0 {
		w := d.spares[n-1]
		d.spares[n-1] = nil
		d.spares = d.spares[:n-1]
		w.job, w.heavy = job, heavy
		w.wakeup <- struct{}{}
		return
	}
	w := d.newWorker()
	w.job, w.heavy = job, heavy
	go w.main()
}

// rescue runs what waits in the injector and in those lanes that have not moved
// since seen, one task at a time, until none is left.
func (w *Worker) rescue(seen []uint32) {
	d := w.d
	for !d.closing.Load() {
		t := d.injector.pop()
		for i := 0; t == nil && i < len(d.lanes); i++ {
			if l := d.lanes[i]; l.progress.Load() == seen[i] {
				if t = l.pop(); t == nil {
					t = l.takeSlot()
				}
			}
		}
		if t == nil {
			return
		}
		w.run(t)
	}
}
