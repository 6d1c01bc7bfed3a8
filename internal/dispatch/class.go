package dispatch

// What a task has done tells what it will do, roughly. Tasks come in three
// classes:
//
//   - fresh: it has not run yet;
//   - light: its last run took less than a slice;
//   - heavy: one of its last runs took longer.
//
// Light tasks have the lanes. A heavy one waits for a token, in one queue with the
// runs that have left their lane, so that any number of long runs together take no
// more than their half of the machine, however often they end and begin again. In
// the global queue, light tasks overtake fresh ones every other time: thousands that
// are started at once do not hold up those that are known to be short.
const (
	fresh = 0
	light = 1
	// heavy is what a long run sets: so many short ones make the task light again.
	// A task that alternates spends most of its runs behind the others.
	heavy = light + 2

	// slice is how long a run may compute before it counts as long, and about how
	// long it computes between two calls of Yield, in nanoseconds.
	slice = 100_000
)

// learn takes note of a run that has ended, and how long it has computed. What it has had counts by half in
// the run after it, by a quarter in the next, until the task is light. Only the worker that ran t calls it.
func (t *Task) learn(long bool, spent int64) {
	t.had = (t.had + spent/slice) / 2
	switch heat := t.heat.Load(); {
	case long:
		t.heat.Store(heavy)
	case heat == fresh:
		t.heat.Store(light)
	case heat > light:
		if t.heat.Store(heat - 1); heat-1 == light {
			t.had = 0
		}
	}
}

// Spend reports work within the present run, in nanoseconds, measured or estimated.
// A run that has spent a slice should end, and come back for the rest: then it is
// fair to the others like one that calls Yield.
func (w *Worker) Spend(ns int64) { w.spent += ns }

// Spent reports whether the present run has spent its slice. It is always false in
// manual mode, whose order depends on no clock, and in a fixed pool.
func (w *Worker) Spent() bool { return w.spent >= slice && !w.d.patient() }

// patient reports whether no run counts as long: in manual mode, and where runs may block.
func (d *Dispatcher) patient() bool { return d.manual != nil || d.fixed }
