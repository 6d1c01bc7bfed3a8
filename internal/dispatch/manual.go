package dispatch

// NewManual is a dispatcher without goroutines: tasks run within Step and
// RunUntilIdle, on the goroutine that calls these, in an order that depends on
// nothing but the order of the calls of Schedule. It has one worker, whose Yield
// and Block do nothing. For simulation, replay and tests.
func NewManual() *Dispatcher {
	d := newDispatcher(1)
	d.manual = &Worker{d: d, lane: d.lanes[0]}
	return d
}

// Step runs one task of a manual dispatcher; false means that none is waiting.
// Step and RunUntilIdle are for one goroutine at a time, and not for use within
// a Run.
func (d *Dispatcher) Step() bool {
	w := d.manual
	if w == nil {
		panic("dispatch: Step is for a manual dispatcher")
	}
	if w.task != nil {
		panic("dispatch: Step within a Run")
	}
	if d.closing.Load() {
		return false
	}
	t := w.lane.next(d)
	if t == nil {
		t = d.injector.popInto(w.lane, 1)
	}
	if t == nil {
		return false
	}
	w.run(t)
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
