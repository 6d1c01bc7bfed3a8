package dispatch

import (
	"sync/atomic"
	"time"
)

// Runnable is what a [Task] runs: in this system an actor with something in its
// mailbox.
type Runnable interface {
	// Run does one spell of work on w's goroutine. Runs of one task never
	// overlap, and each sees everything that the one before it wrote.
	//
	// It returns true if there is more to do; the task then goes to the back of
	// the queue. How much a spell is (the throughput) is Run's own affair. If
	// Schedule was called while Run ran, the task runs again, whatever Run
	// returned.
	//
	// A Run that lasts calls w.Yield about every 100 us, and ends as soon as it
	// can when that returns false; one that is going to wait for something calls
	// w.Block first; one that consists of many short pieces reports them to
	// w.Spend. Run must not panic, and must not use w after it has returned.
	Run(w *Worker) (more bool)
}

// Task is the dispatcher's part of an actor, meant to be embedded. It is in at
// most one queue at a time. A Task must not be copied after Init.
type Task struct {
	state atomic.Uint32
	heat  atomic.Uint32 // see class.go
	since atomic.Int64  // see Since
	next  *Task         // in the injector
	what  Runnable
	group *Group // what the task has had is had by all of it, too; nil: it stands alone
	seat  *seat  // nil until the task has had a long run
	had   uint32 // slices of the runs before, see cool; who has the task
	at    uint32 // the turn of the last cool
}

// The states of a task. Only Schedule moves it from idle to queued and from
// running to rewoken; only the worker that has it moves it anywhere else.
const (
	idle    uint32 = iota // in no queue; the next Schedule queues it
	queued                // in exactly one queue
	running               // in no queue, on a worker
	rewoken               // like running, and scheduled since the run began
)

// Running reports whether a run of the task is under way. Any goroutine may ask. Who has
// called Schedule before and is told that none is knows that one will begin later.
func (t *Task) Running() bool {
	s := t.state.Load()
	return s == running || s == rewoken
}

// Since is when the present run began, as far as that is known: it has yielded or blocked, and
// this is when it first did, in nanoseconds since 1970. 0: there is no such run. Any goroutine
// may ask.
func (t *Task) Since() int64 { return t.since.Load() }

// long notes that the present run takes longer than a slice, or blocks.
func (t *Task) long() {
	if t.since.Load() == 0 {
		t.since.Store(time.Now().UnixNano())
	}
}

// Init ties the task to what it runs. It is called once, before the first
// Schedule.
func (t *Task) Init(r Runnable) { t.what = r }

// Join has t stand in a group from the beginning. It is called once at most, before the first
// Schedule.
func (t *Task) Join(g *Group) { t.group = g }
