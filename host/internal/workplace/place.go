// Package workplace has where the turns of actors run: on the system's workers, on a pool for actors that block, or on a thread
// of an actor's own.
package workplace

import "github.com/wasmactors/wasmactors/internal/dispatch"

// Place is where the turns of one actor run. Its methods are for any goroutine, except those that say otherwise.
type Place struct {
	task dispatch.Task
	disp *dispatch.Dispatcher
}

// Init says what runs there. It is called before anything else, or while nothing runs.
func (p *Place) Init(r dispatch.Runnable) { p.task.Init(r) }

// Join has the runs share the workers as those of the group do, if they are on the system's workers: pools and threads have
// workers of their own and no shares. It is called before the first run.
func (p *Place) Join(g *dispatch.Group, usual *dispatch.Dispatcher) {
	if p.disp == usual {
		p.task.Join(g)
	}
}

// Wake schedules a run, on w if that is not nil.
func (p *Place) Wake(w *dispatch.Worker) { p.disp.Schedule(&p.task, w) }

// Hurry has the run that is scheduled, or goes on, end soon.
func (p *Place) Hurry() { p.disp.Hurry(&p.task) }

// Visit calls f in the place of a run, unless one goes on or is about to; then it returns false.
func (p *Place) Visit(f func()) bool { return p.disp.Visit(&p.task, f) }

// Running reports whether a run goes on.
func (p *Place) Running() bool { return p.task.Running() }

// At is the dispatcher that runs the turns.
func (p *Place) At() *dispatch.Dispatcher { return p.disp }

// Since is when the run that goes on has begun, see [dispatch.Task.Since].
func (p *Place) Since() int64 { return p.task.Since() }
