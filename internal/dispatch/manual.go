package dispatch

import "math/rand/v2"

// NewManual is a dispatcher without goroutines: tasks run within Step and
// RunUntilIdle, on the goroutine that calls these, in an order that depends on
// nothing but the order of the calls of Schedule. It has one worker, whose Yield
// and Block do nothing. For simulation, replay and tests.
func NewManual() *Dispatcher {
	d := newDispatcher(1)
	d.manual = &Worker{d: d, lane: d.lanes[0]}
	d.manual.lane.begin(d.manual)
	return d
}

// NewShuffled is NewManual with another order: each Step chooses among all tasks that
// wait, by a seed. One seed is one order.
func NewShuffled(seed uint64) *Dispatcher {
	rnd := rand.New(rand.NewPCG(seed, 0x5eed))
	return NewChosen(func(n int, _ func(int) Runnable) int { return rnd.IntN(n) })
}

// NewChosen is NewManual with another order: at each Step choose says which of the n tasks that wait runs, from 0; at is
// what one of them runs. The tasks are in no order that means anything, but in the same one in each run.
func NewChosen(choose func(n int, at func(int) Runnable) int) *Dispatcher {
	d := NewManual()
	s := &shuffle{choose: choose}
	s.at = func(i int) Runnable { return s.ready[i].what }
	d.shuffle = s
	return d
}

// shuffle is the order of a dispatcher whose order is chosen.
type shuffle struct {
	choose func(n int, at func(int) Runnable) int
	at     func(int) Runnable
	ready  []*Task
}

// next is the next task of a manual dispatcher, nil if none waits.
func (d *Dispatcher) next(w *Worker) *Task {
	if d.nested != nil {
		return d.nested.next(d, w)
	}
	t := d.inOrder(w)
	s := d.shuffle
	if s == nil {
		return t
	}
	for ; t != nil; t = d.inOrder(w) {
		s.ready = append(s.ready, t)
	}
	n := len(s.ready)
	if n == 0 {
		return nil
	}
	i := s.choose(n, s.at)
	t = s.ready[i]
	s.ready[i], s.ready[n-1] = s.ready[n-1], nil
	s.ready = s.ready[:n-1]
	return t
}

func (d *Dispatcher) inOrder(w *Worker) *Task {
	if t := w.lane.next(w); t != nil {
		return t
	}
	return d.injector.popInto(w.lane, 1, severalFresh)
}

// Step runs one task of a manual dispatcher; false means that none is waiting.
// Step and RunUntilIdle are for one goroutine at a time, and not for use within
// a Run.
func (d *Dispatcher) Step() bool {
	w := d.manual
	if w == nil {
		panic("dispatch: Step is for a manual dispatcher")
	}
	if d.stepping {
		panic("dispatch: Step within a Run")
	}
	if d.closing.Load() {
		return false
	}
	t := d.next(w)
	if t == nil {
		return false
	}
	d.stepping = true
	w.run(t)
	d.stepping = false
	return true
}

// RunUntilIdle runs tasks of a manual dispatcher until none is waiting or max of
// them have run, and returns how many ran. If that is less than max, nothing is
// left to do.
func (d *Dispatcher) RunUntilIdle(max int) int {
	n := 0
	for n < max && d.Step() {
		n++
	}
	return n
}
