// Package dispatch runs tasks on a fixed set of workers.
package dispatch

import "context"

// Config sizes a dispatcher; the zero value is what production wants.
type Config struct {
	// Workers is the number of tasks that run at the same time, long turns
	// aside; 0 means GOMAXPROCS. At most 256.
	Workers int
	// MaxDetached bounds the long turns that have left their worker (see
	// Worker.Yield); 0 means 1024. Beyond it a long turn keeps its worker.
	MaxDetached int
}

// Dispatcher runs tasks that have been scheduled.
type Dispatcher struct{}

// New starts a dispatcher with its own goroutines. Close ends it.
func New(c Config) *Dispatcher { panic("skeleton") }

// NewManual is a dispatcher without goroutines: tasks run within Step and
// RunUntilIdle, on the caller's goroutine, in an order that depends on nothing
// but the order of the calls.
func NewManual() *Dispatcher { panic("skeleton") }

// Schedule sees to it that t runs (again) after this call. from is the worker
// on whose goroutine the caller is, nil if the caller is no Run.
func (d *Dispatcher) Schedule(t *Task, from *Worker) { panic("skeleton") }

// Step runs one task of a manual dispatcher; false means that none is waiting.
func (d *Dispatcher) Step() bool { panic("skeleton") }

// RunUntilIdle runs tasks of a manual dispatcher until none is waiting or max
// have run, and returns how many ran.
func (d *Dispatcher) RunUntilIdle(max int) int { panic("skeleton") }

// Close ends the dispatcher: runs under way are waited for, tasks still queued
// do not run any more, later calls of Schedule do nothing. If ctx ends first
// its error is returned; Close may then be called again.
func (d *Dispatcher) Close(ctx context.Context) error { panic("skeleton") }

// Stats are counters for diagnosis, taken without stopping anything.
type Stats struct {
	Workers  int // configured
	Parked   int // workers without work
	Detached int // long turns that have left their worker
	Injected int // tasks waiting in the global queue
}

// Stats is a snapshot of the counters.
func (d *Dispatcher) Stats() Stats { panic("skeleton") }

// Worker is one of the goroutines that run tasks.
type Worker struct {
	// Local is the caller's scratch for this goroutine; nil until the caller
	// sets it. No two goroutines share a Worker, so it needs no lock, even after
	// a long turn has left its place to another.
	Local any
}

// Yield is called from within a long Run, about every 100 us.
func (w *Worker) Yield() { panic("skeleton") }

// Block is called from within a Run that is about to wait for something.
func (w *Worker) Block() { panic("skeleton") }
