package dispatch

// Visit calls f as if it were a run of t, if t is idle; false, and f is not called, if it is
// not. f sees what every run before has written, and every run after sees what f has; it must be
// short. Any goroutine may call it, also one that runs another task.
func (d *Dispatcher) Visit(t *Task, f func()) bool {
	if !t.state.CompareAndSwap(idle, running) {
		return false
	}
	f()
	if !t.state.CompareAndSwap(running, idle) { // it was scheduled meanwhile
		t.state.Store(queued)
		d.enqueue(t, nil)
	}
	return true
}
