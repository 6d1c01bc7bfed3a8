package dispatch

import "math"

// What a task has done tells what it will do, roughly. Tasks come in four
// classes:
//
//   - fresh: it has not run yet;
//   - light: its last run was brief;
//   - medium: its last run took longer, but less than a slice;
//   - heavy: one of its last runs took a slice or more.
//
// Light tasks have the lanes, and medium ones while nobody else waits. Else these wait in
// the global queue, behind the light ones: a thousand of them that are busy all the time
// would hold up a lane for a thousand slices. A heavy one waits for a token, in one queue with the
// runs that have left their lane, so that any number of long runs together take no
// more than their half of the machine, however often they end and begin again. In
// the global queue, light tasks overtake the others every other time: thousands that
// are started at once do not hold up those that are known to be short.
const (
	fresh  = 0
	light  = 1
	medium = 2
	// heavy is what a long run sets: after two short ones the task is light or medium again.
	// A task that alternates spends most of its runs behind the others.
	heavy = medium + 2

	// slice is how long a run may compute before it counts as long, and about how
	// long it computes between two calls of Yield, in nanoseconds.
	slice = 100_000
	// brief is what a light run takes less than.
	brief = slice / 8
)

// learn takes note of a run that has ended, and how long it has computed. Only the worker that ran t calls it.
func (w *Worker) learn(t *Task) {
	own, heat := w.own(), t.heat.Load()
	if w.d.patient() {
		own = 0
	}
	switch {
	case own >= slice:
		w.d.cool(t, w)
		t.had = uint32(min(int64(t.had)+own/slice, math.MaxUint32))
		t.heat.Store(heavy)
		t.since.Store(0)
	case heat == heavy:
		t.heat.Store(heavy - 1)
	case own >= brief:
		t.heat.Store(medium)
	case heat != light:
		t.heat.Store(light)
	}
}

// cool has what t has had count by half for each time that as many grants have passed as there are lanes, which
// is about a slice, while it wanted nothing. How it was cut into runs is no matter, and to wait, or to compute
// with a token, is no pause: who always wants more is like a run that does not end. w is the run's worker, nil:
// it has not begun. Only who has t calls it.
func (d *Dispatcher) cool(t *Task, w *Worker) {
	turn := uint32(d.turns.Load())
	if w == nil || !w.token {
		t.had >>= (turn - t.at) / uint32(len(d.lanes))
	}
	t.at = turn
}

// Spend reports work within the present run, in nanoseconds, measured or estimated.
// A run that has spent a slice should end, and come back for the rest: then it is
// fair to the others like one that calls Yield.
func (w *Worker) Spend(ns int64) { w.spent += ns }

// own is what the present run has spent.
func (w *Worker) own() int64 { return w.spent - w.began }

// Spent reports whether the present run has spent its slice. It is always false in
// manual mode, whose order depends on no clock, and in a fixed pool.
func (w *Worker) Spent() bool { return w.own() >= slice && !w.d.patient() }

// patient reports whether no run counts as long: in manual mode, and where runs may block.
func (d *Dispatcher) patient() bool { return d.manual != nil || d.fixed }
