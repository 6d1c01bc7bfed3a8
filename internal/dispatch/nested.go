package dispatch

import "slices"

// NewNested is NewManual with another order: what a run wakes runs right behind it, in the
// order of Schedule and each with all that it wakes in turn, before the run's own task comes
// again and before what has waited already. So it is as if who schedules had called.
func NewNested() *Dispatcher {
	d := NewManual()
	d.nested = new(nested)
	return d
}

// nested is the order of a nested dispatcher.
type nested struct {
	ready []*Task // the next one is the last
	last  *Task   // that ran
}

// next is the next task, nil if none waits.
func (n *nested) next(d *Dispatcher, w *Worker) *Task {
	from := len(n.ready)
	for t := w.lane.pop(); t != nil; t = w.lane.pop() {
		n.ready = append(n.ready, t)
	}
	if t := w.lane.takeSlot(); t != nil { // it was woken last
		n.ready = append(n.ready, t)
	}
	for t := d.inOrder(w); t != nil; t = d.inOrder(w) {
		n.ready = append(n.ready, t)
	}
	woken := n.ready[from:]
	if i := slices.Index(woken, n.last); i >= 0 {
		copy(woken[i:], woken[i+1:])
		woken[len(woken)-1] = n.last
	}
	slices.Reverse(woken)
	if n.last = nil; len(n.ready) > 0 {
		end := len(n.ready) - 1
		n.last, n.ready[end] = n.ready[end], nil
		n.ready = n.ready[:end]
	}
	return n.last
}
