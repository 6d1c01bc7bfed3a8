package dispatch_test

import (
	"runtime"
	"slices"
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
	eventually(t, "only the long run to be detached", func() bool { return d.Stats().Detached == 1 }) // the neighbour, too, if the machine has held it up
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
	d := dispatch.New(dispatch.Config{Workers: workers}.Unwatched())
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
	if n := most.Load(); n > workers {
		t.Errorf("%d detached runs computed at a time, want %d", n, workers)
	}
}

// TestMaxDetached: at the bound the run that has computed longest is told to end, and
// the others go on.
func TestMaxDetached(t *testing.T) {
	const bound = 3
	d := dispatch.New(dispatch.Config{Workers: 1, MaxDetached: bound}.Unwatched())
	defer closeNow(t, d)
	var stop atomic.Bool
	ended := make(chan int, 2*bound)
	var all [2 * bound]*task
	var had [2 * bound]atomic.Int32
	for i := range all {
		all[i] = newTask(func(w *dispatch.Worker) bool {
			for !stop.Load() && w.Yield() {
				had[i].Add(1)
			}
			ended <- i
			return false
		})
		if i >= bound {
			eventually(t, "the longest run to have had its ten slices", func() bool { return had[i-bound].Load() > dispatch.Patience })
		}
		d.Schedule(&all[i].Task, nil)
		eventually(t, "the run to be detached", func() bool {
			s := d.Stats()
			return s.Detached == min(i+1, bound) && s.Injected == 0 && s.Parked == 1
		})
		if i >= bound {
			if got := await(t, ended, "the longest run to end"); got != i-bound {
				t.Errorf("run %d was told to end, want %d", got, i-bound)
			}
		}
	}
	if got := d.Stats().DetachedBytes; got != bound*dispatch.DetachedBytes {
		t.Errorf("%d bytes of detached runs, want %d", got, bound*dispatch.DetachedBytes)
	}
	stop.Store(true)
	eventually(t, "all runs to end", func() bool { return d.Stats().Detached == 0 })
}

// TestYoungRunsAreNotEnded: where more runs are under way than may be, none is ended that has computed
// less than ten slices; runs beyond the bound keep their lane until then.
func TestYoungRunsAreNotEnded(t *testing.T) {
	const bound, runs = 3, 200
	d := dispatch.New(dispatch.Config{Workers: 2, MaxDetached: bound}.Unwatched())
	defer closeNow(t, d)
	var ended, most atomic.Int32
	var done sync.WaitGroup
	done.Add(runs)
	for range runs {
		brief := newTask(func(w *dispatch.Worker) bool {
			defer done.Done()
			for range dispatch.Patience - 1 {
				if !w.Yield() {
					ended.Add(1)
					return false
				}
				most.Store(max(most.Load(), int32(d.Stats().Detached)))
			}
			return false
		})
		d.Schedule(&brief.Task, nil)
	}
	all := make(chan bool)
	go func() { done.Wait(); close(all) }()
	await(t, all, "all brief runs")
	if n := ended.Load(); n > 0 {
		t.Errorf("%d of %d runs were told to end within %d slices", n, runs, dispatch.Patience)
	}
	if n := most.Load(); n > bound {
		t.Errorf("%d runs were detached, more than %d", n, bound)
	}
}

// TestTheNewcomerEnds: a run beyond the bound that has computed longest itself is told to end, and no younger one.
func TestTheNewcomerEnds(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1, MaxDetached: 1}.Unwatched())
	defer closeNow(t, d)
	release, young := make(chan bool), make(chan bool, 1)
	first := newTask(func(w *dispatch.Worker) bool {
		w.Yield() // detached, with one slice
		<-release
		young <- w.Yield()
		return false
	})
	d.Schedule(&first.Task, nil)
	eventually(t, "the run to be detached", func() bool { return d.Stats().Detached == 1 })
	slices := make(chan int, 1)
	second := newTask(func(w *dispatch.Worker) bool {
		n := 1
		for w.Yield() {
			n++
		}
		slices <- n
		return false
	})
	d.Schedule(&second.Task, nil)
	if n := await(t, slices, "the newcomer to be told"); n != dispatch.Patience {
		t.Errorf("the newcomer was told to end after %d slices, want %d", n, dispatch.Patience)
	}
	close(release)
	if !await(t, young, "the first run") {
		t.Error("the run that had one slice was told to end")
	}
}

// TestMaxDetachedDeaf: runs that do not listen keep their lanes in the end, and the
// bound holds but for those that were told in vain.
func TestMaxDetachedDeaf(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1, MaxDetached: 1})
	defer closeNow(t, d)
	var stop atomic.Bool
	spin := func(w *dispatch.Worker) bool {
		for !stop.Load() {
			w.Yield()
		}
		return false
	}
	for i := range 3 {
		s := newTask(spin)
		d.Schedule(&s.Task, nil)
		eventually(t, "the run to begin", func() bool { return d.Stats().Injected == 0 })
		eventually(t, "the run to be detached", func() bool { return d.Stats().Detached == min(i+1, 2) })
	}
	ran := make(chan bool, 1)
	last := newTask(func(*dispatch.Worker) bool { ran <- true; return false })
	d.Schedule(&last.Task, nil)
	for range 1000 {
		runtime.Gosched()
	}
	select {
	case <-ran:
		t.Error("more runs detached than allowed")
	default:
	}
	if n := d.Stats().Detached; n != 2 {
		t.Errorf("%d detached, want 2", n)
	}
	stop.Store(true)
	await(t, ran, "the last")
}

// TestHeavyTasksWait: a task that was long waits for a token the next time, behind the
// long runs under way, and one that was short does not wait for them.
func TestHeavyTasksWait(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1}.Unwatched())
	defer closeNow(t, d)
	var hold, held atomic.Bool
	hold.Store(true)
	release := make(chan bool)
	ran := make(chan string, 10)
	holder := newTask(func(w *dispatch.Worker) bool {
		w.Yield()
		held.Store(true)
		<-release // with the token
		return false
	})
	long := newTask(func(w *dispatch.Worker) bool {
		w.Spend(int64(time.Second))
		if !w.Spent() {
			t.Error("a second is not the slice")
		}
		ran <- "long"
		return false
	})
	short := newTask(func(w *dispatch.Worker) bool {
		w.Spend(1)
		ran <- "short"
		return false
	})
	d.Schedule(&long.Task, nil)
	await(t, ran, "the long task")
	d.Schedule(&holder.Task, nil)
	eventually(t, "the holder to compute", held.Load)
	d.Schedule(&long.Task, nil)
	d.Schedule(&short.Task, nil)
	if got := await(t, ran, "the short task"); got != "short" {
		t.Errorf("%s came first", got)
	}
	// The monitor sees that nobody moves and lets one more compute.
	d.Look()
	d.Look()
	if got := await(t, ran, "the long task again"); got != "long" {
		t.Errorf("got %s", got)
	}
	release <- true
}

// TestHeavyTasksCool: after some short runs a task has its lane again.
func TestHeavyTasksCool(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1}.Unwatched())
	defer closeNow(t, d)
	onLane := make(chan bool, 1)
	work := int64(time.Second)
	tk := newTask(func(w *dispatch.Worker) bool {
		w.Spend(work)
		onLane <- d.Stats().Detached == 0
		return false
	})
	var got []bool
	for range 5 {
		d.Schedule(&tk.Task, nil)
		got = append(got, await(t, onLane, "the task"))
		eventually(t, "the run to be over", func() bool { s := d.Stats(); return s.Detached == 0 && s.Parked == 1 })
		work = 1
	}
	if want := []bool{true, false, false, true, true}; !slices.Equal(got, want) {
		t.Errorf("on a lane: %v, want %v", got, want)
	}
}

// TestHurry: what is urgent comes next, of tasks and of runs that wait.
func TestHurry(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1}.Unwatched())
	defer closeNow(t, d)
	const runs = 8
	var mu sync.Mutex
	var order []int
	var phase atomic.Int32
	var all [runs]*task
	for i := range all {
		all[i] = newTask(func(w *dispatch.Worker) bool {
			for phase.Load() == 0 {
				w.Yield()
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			return false
		})
	}
	// One holds the token while the others are brought into order.
	holding, release := make(chan bool), make(chan bool)
	holder := newTask(func(w *dispatch.Worker) bool {
		for d.Stats().Waiting < runs {
			w.Yield()
		}
		close(holding)
		<-release
		return false
	})
	for i := range all {
		d.Schedule(&all[i].Task, nil)
	}
	eventually(t, "the runs to be detached", func() bool { return d.Stats().Detached == runs })
	d.Schedule(&holder.Task, nil)
	await(t, holding, "the holder")
	phase.Store(1)
	d.Hurry(&all[5].Task)
	d.Hurry(&holder.Task) // has no seat: nothing happens
	close(release)
	eventually(t, "all to end", func() bool { return d.Stats().Detached == 0 })
	if order[0] != 5 {
		t.Errorf("the order is %v, want 5 first", order)
	}
}

// TestFreshTasksDoNotHoldUpTheKnown: thousands of new tasks that turn out long, and one
// that has been short before.
func TestFreshTasksDoNotHoldUpTheKnown(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1}.Unwatched())
	defer closeNow(t, d)
	var begun, before atomic.Int32
	ran := make(chan bool, 1)
	known := newTask(func(*dispatch.Worker) bool { before.Store(begun.Load()); ran <- true; return false })
	d.Schedule(&known.Task, nil)
	await(t, ran, "the first run")
	const crowd = 3000
	var stop atomic.Bool
	go1 := make(chan bool)
	gate := newTask(func(*dispatch.Worker) bool { <-go1; return false })
	d.Schedule(&gate.Task, nil)
	for range crowd {
		f := newTask(func(w *dispatch.Worker) bool {
			begun.Add(1)
			for w.Yield(); !stop.Load(); w.Yield() {
			}
			return false
		})
		d.Schedule(&f.Task, nil)
	}
	d.Schedule(&known.Task, nil)
	close(go1)
	await(t, ran, "the known task")
	stop.Store(true)
	if n := before.Load(); n > 2*16 {
		t.Errorf("%d new tasks came first", n)
	}
	eventually(t, "the crowd to end", func() bool { s := d.Stats(); return s.Detached == 0 && s.Injected == 0 })
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

// TestSpareGoroutinesAreBounded: after a crowd of blocking runs only some goroutines
// wait for the next one; the others have ended.
func TestSpareGoroutinesAreBounded(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, d)
	const crowd, spares = 100, 8
	began := make(chan bool, crowd)
	release := make(chan bool)
	task := func(end chan bool) *task {
		return newTask(func(w *dispatch.Worker) bool {
			w.Block()
			began <- true
			<-end
			return false
		})
	}
	open := make(chan bool)
	close(open)
	d.Schedule(&task(open).Task, nil)
	await(t, began, "the first run")
	eventually(t, "it to end", func() bool { return d.Stats().Detached == 0 })
	before := runtime.NumGoroutine()
	for range crowd {
		d.Schedule(&task(release).Task, nil)
		await(t, began, "a run")
	}
	if n := runtime.NumGoroutine(); n < before+crowd-spares {
		t.Fatalf("%d goroutines for a crowd of %d, %d before: the test shows nothing", n, crowd, before)
	}
	close(release)
	eventually(t, "the goroutines of the crowd to end", func() bool { return runtime.NumGoroutine() <= before+spares })
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
