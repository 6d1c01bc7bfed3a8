package dispatch_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// TestYieldFreesTheWorker: with a single worker, a run that never ends on its
// own must not keep the others from running, and its sends still arrive.
func TestYieldFreesTheWorker(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, d)
	var stop atomic.Bool
	local := make(chan any, 3)
	heard := make(chan bool, 1)
	neighbour := newTask(func(w *dispatch.Worker) bool {
		local <- w.Local
		w.Local = "the substitute's"
		heard <- true
		return false
	})
	sent := make(chan bool, 1)
	receiver := newTask(func(*dispatch.Worker) bool { sent <- true; return false })
	long := newTask(func(w *dispatch.Worker) bool {
		w.Local = "the long run's"
		d.Schedule(&neighbour.Task, w) // in the slot, and handed over with the lane
		for !stop.Load() {
			w.Yield()
		}
		local <- w.Local
		d.Schedule(&receiver.Task, w)
		return false
	})
	d.Schedule(&long.Task, nil)
	await(t, heard, "the neighbour")
	if got := await(t, local, "its Local"); got != nil {
		t.Errorf("the substitute has inherited Local %v", got)
	}
	if s := d.Stats(); s.Detached != 1 {
		t.Errorf("%d detached, want 1", s.Detached)
	}
	stop.Store(true)
	if got := await(t, local, "the long run's end"); got != "the long run's" {
		t.Errorf("the long run's Local is %v", got)
	}
	await(t, sent, "the long run's send")
	eventually(t, "the long run to be forgotten", func() bool { return d.Stats().Detached == 0 })
}

// TestDetachedRunsTakeTurns: among many long runs no more compute at a time than
// there are workers, and all get on.
func TestDetachedRunsTakeTurns(t *testing.T) {
	const workers, runs, quanta = 2, 12, 40
	d := dispatch.New(dispatch.Config{Workers: workers})
	defer closeNow(t, d)
	var computing, most atomic.Int32
	var gate sync.WaitGroup
	gate.Add(runs)
	var done sync.WaitGroup
	done.Add(runs)
	for range runs {
		long := newTask(func(w *dispatch.Worker) bool {
			w.Yield() // detached from here on
			gate.Done()
			for range quanta {
				if n := computing.Add(1); n > most.Load() {
					most.Store(n)
				}
				runtime.Gosched()
				computing.Add(-1)
				w.Yield()
			}
			done.Done()
			return false
		})
		d.Schedule(&long.Task, nil)
	}
	all := make(chan bool)
	go func() { done.Wait(); close(all) }()
	await(t, all, "all long runs")
	// The monitor may let one more compute when the test's processor stalls.
	if n := most.Load(); n > workers+1 {
		t.Errorf("%d detached runs computed at a time, want %d", n, workers)
	}
}

// TestMaxDetached: beyond the bound a long run keeps its worker, and is fair only
// as far as Go's scheduler is.
func TestMaxDetached(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1, MaxDetached: 1})
	defer closeNow(t, d)
	var stop atomic.Bool
	spin := func(w *dispatch.Worker) bool {
		for !stop.Load() {
			w.Yield()
		}
		return false
	}
	first, second := newTask(spin), newTask(spin)
	d.Schedule(&first.Task, nil)
	eventually(t, "the first to be detached", func() bool { return d.Stats().Detached == 1 })
	d.Schedule(&second.Task, nil)
	eventually(t, "the second to run", func() bool { return d.Stats().Injected == 0 })
	ran := make(chan bool, 1)
	third := newTask(func(*dispatch.Worker) bool { ran <- true; return false })
	d.Schedule(&third.Task, nil)
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case <-ran:
		t.Error("more runs detached than allowed")
	default:
	}
	if n := d.Stats().Detached; n != 1 {
		t.Errorf("%d detached, want 1", n)
	}
	stop.Store(true)
	await(t, ran, "the third")
}

// TestBlockFreesTheWorker: a run that says it blocks does not hold up what it
// waits for, not even for the monitor's tick, and not among computing runs.
func TestBlockFreesTheWorker(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, d)
	done := make(chan bool, 1)
	answer := make(chan bool)
	inner := newTask(func(*dispatch.Worker) bool { answer <- true; return false })
	waits := newTask(func(w *dispatch.Worker) bool {
		w.Block()
		d.Schedule(&inner.Task, w)
		<-answer
		w.Yield() // computes again
		w.Block()
		d.Schedule(&inner.Task, w)
		<-answer
		done <- true
		return false
	})
	for range 100 {
		d.Schedule(&waits.Task, nil)
		await(t, done, "a run that blocks")
	}
}

// TestMonitorRescues: a run that blocks without a word, and waits for a task in
// its own lane's slot, is found out.
func TestMonitorRescues(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, d)
	done := make(chan bool, 1)
	answer, deeper := make(chan bool), make(chan bool)
	last := newTask(func(*dispatch.Worker) bool { deeper <- true; return false })
	middle := newTask(func(w *dispatch.Worker) bool {
		d.Schedule(&last.Task, w) // on the rescuer: by the injector
		<-deeper                  // which blocks the rescuer, too
		answer <- true
		return false
	})
	waits := newTask(func(w *dispatch.Worker) bool {
		d.Schedule(&middle.Task, w)
		<-answer
		done <- true
		return false
	})
	for range 3 {
		d.Schedule(&waits.Task, nil)
		await(t, done, "a rescue")
	}
	eventually(t, "the rescuers to leave", func() bool { return d.Stats().Detached == 0 })
}

// TestMonitorGrantsTokens: detached runs that block without a word must not keep
// other detached runs from computing.
func TestMonitorGrantsTokens(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, d)
	release := make(chan bool)
	inside := make(chan bool)
	blocks := newTask(func(w *dispatch.Worker) bool {
		w.Yield()
		inside <- true
		<-release
		return false
	})
	d.Schedule(&blocks.Task, nil)
	await(t, inside, "the blocking run")
	done := make(chan bool)
	computes := newTask(func(w *dispatch.Worker) bool {
		for range 100 {
			w.Yield()
		}
		done <- true
		return false
	})
	d.Schedule(&computes.Task, nil)
	await(t, done, "the computing run")
	close(release)
}

// TestMonitorSleepsAndWakes: the monitor rests after a second without work and is
// there again when it is needed.
func TestMonitorSleepsAndWakes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than a second")
	}
	d := dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, d)
	time.Sleep(1200 * time.Millisecond)
	answer, done := make(chan bool), make(chan bool)
	inner := newTask(func(*dispatch.Worker) bool { answer <- true; return false })
	waits := newTask(func(w *dispatch.Worker) bool {
		d.Schedule(&inner.Task, w)
		<-answer
		done <- true
		return false
	})
	d.Schedule(&waits.Task, nil)
	await(t, done, "a rescue")
}
