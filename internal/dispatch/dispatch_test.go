package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// TestNoLostWakeUp asks an idle dispatcher from outside, over and over: one
// wake-up lost, and an answer never comes.
func TestNoLostWakeUp(t *testing.T) {
	rounds := 50000
	if testing.Short() {
		rounds = 5000
	}
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprint("workers=", workers), func(t *testing.T) {
			d := dispatch.New(dispatch.Config{Workers: workers})
			defer closeNow(t, d)
			reply := make(chan int, 1)
			echo := newActor(d, mailbox.Limits{}, func(w *dispatch.Worker, e *mailbox.Envelope) {
				n := int(e.Correlation)
				cacheOf(w).Free(e)
				reply <- n
			})
			relay := newActor(d, mailbox.Limits{}, func(w *dispatch.Worker, e *mailbox.Envelope) {
				_ = echo.send(e, w)
			})
			for i := range rounds {
				e := mailbox.New()
				e.Correlation = uint64(i)
				if err := relay.send(e, nil); err != nil {
					t.Fatal(err)
				}
				if got := await(t, reply, "an answer"); got != i {
					t.Fatalf("answer %d to %d", got, i)
				}
				if i%16 == 0 {
					runtime.Gosched() // let the workers park
				}
			}
		})
	}
}

// node is a task of the hammer: counts what it owes and notices overlaps.
type node struct {
	dispatch.Task
	d      *dispatch.Dispatcher
	all    []*node
	in     atomic.Int32
	owed   atomic.Int64 // Schedules whose work is not done yet
	budget *atomic.Int64
	bad    *atomic.Int64
	local  *sync.Map
	rnd    *rand.Rand // used within Run only: an overlap is a race
}

func (n *node) Run(w *dispatch.Worker) bool {
	if n.in.Add(1) != 1 {
		n.bad.Add(1)
	}
	defer n.in.Add(-1)
	own, ok := w.Local.(*atomic.Int32)
	if !ok {
		own = new(atomic.Int32)
		w.Local = own
		if _, seen := n.local.LoadOrStore(w, own); seen {
			n.bad.Add(1) // lost its Local
		}
	}
	if own.Add(1) != 1 {
		n.bad.Add(1) // two goroutines share a Local
	}
	defer own.Add(-1)

	n.owed.Swap(0)
	for range n.rnd.IntN(3) {
		if n.budget.Add(-1) > 0 {
			n.all[n.rnd.IntN(len(n.all))].poke(w)
		}
	}
	switch n.rnd.IntN(200) {
	case 0:
		w.Yield()
	case 1:
		for range 5 {
			w.Yield()
		}
	case 2:
		w.Block()
		runtime.Gosched()
		w.Yield()
		w.Block()
	}
	for range n.rnd.IntN(2) {
		if n.budget.Add(-1) > 0 {
			n.all[n.rnd.IntN(len(n.all))].poke(w)
		}
	}
	return n.rnd.IntN(8) == 0
}

func (n *node) poke(w *dispatch.Worker) {
	n.owed.Add(1)
	n.d.Schedule(&n.Task, w)
}

// TestHammer runs a random net of tasks with everything at once: wake-ups from
// inside and outside, requeues, long runs, blocking runs. No run may overlap
// with itself and no wake-up may be lost.
func TestHammer(t *testing.T) {
	budget := int64(400_000)
	if testing.Short() {
		budget = 60_000
	}
	for _, c := range []dispatch.Config{
		{Workers: 1}, {Workers: 2}, {Workers: 8}, {Workers: 3, MaxDetached: 2},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			d := dispatch.New(c)
			defer closeNow(t, d)
			var left, bad atomic.Int64
			left.Store(budget)
			nodes := make([]*node, 700)
			var local sync.Map
			for i := range nodes {
				nodes[i] = &node{d: d, all: nodes, budget: &left, bad: &bad, local: &local, rnd: rand.New(rand.NewPCG(uint64(i), 1))}
				nodes[i].Init(nodes[i])
			}
			var wg sync.WaitGroup
			for g := range 3 {
				wg.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(g), 2))
					for left.Add(-1) > 0 {
						nodes[rnd.IntN(len(nodes))].poke(nil)
						if rnd.IntN(64) == 0 {
							runtime.Gosched()
						}
					}
				})
			}
			wg.Wait()
			eventually(t, "every wake-up to be answered", func() bool {
				for _, n := range nodes {
					if n.owed.Load() != 0 || n.in.Load() != 0 {
						return false
					}
				}
				return true
			})
			if bad.Load() != 0 {
				t.Errorf("%d violations", bad.Load())
			}
			eventually(t, "all workers to park", func() bool {
				s := d.Stats()
				return s.Parked == s.Workers && s.Detached == 0 && s.Injected == 0
			})
		})
	}
}

// TestStealing: what one run wakes is shared out, else these runs, which wait
// for each other, would never end.
func TestStealing(t *testing.T) {
	const workers = 4
	d := dispatch.New(dispatch.Config{Workers: workers})
	defer closeNow(t, d)
	var meet sync.WaitGroup
	meet.Add(workers - 1)
	done := make(chan bool, workers)
	start := newTask(func(w *dispatch.Worker) bool {
		for range workers - 1 {
			t := newTask(func(*dispatch.Worker) bool {
				meet.Done()
				meet.Wait()
				done <- true
				return false
			})
			d.Schedule(&t.Task, w)
		}
		return false
	})
	d.Schedule(&start.Task, nil)
	for range workers - 1 {
		await(t, done, "the runs to meet")
	}
}

func TestGoexitInRun(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, d)
	ran := make(chan int, 10)
	n := 0
	exits := newTask(func(w *dispatch.Worker) bool {
		n++
		ran <- n
		if n == 3 {
			w.Yield()
		}
		if n < 4 {
			runtime.Goexit()
		}
		return false
	})
	other := newTask(func(*dispatch.Worker) bool { ran <- -1; return false })
	for want := 1; want <= 4; want++ {
		// Again and again, since a wake-up during the run that vanishes counts, too.
		d.Schedule(&exits.Task, nil)
		if got := await(t, ran, "a run after Goexit"); got != want {
			t.Fatalf("run %d, want %d", got, want)
		}
		d.Schedule(&other.Task, nil)
		if got := await(t, ran, "another task's run"); got != -1 {
			t.Fatalf("got %d", got)
		}
		eventually(t, "the worker to park", func() bool { s := d.Stats(); return s.Parked == 1 && s.Detached == 0 })
	}
}

func TestCloseWaitsForRuns(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1})
	entered, leave := make(chan bool), make(chan bool)
	long := newTask(func(*dispatch.Worker) bool {
		entered <- true
		<-leave
		return true // and never again
	})
	after := newTask(func(*dispatch.Worker) bool { t.Error("ran after Close"); return false })
	d.Schedule(&long.Task, nil)
	await(t, entered, "the run")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("close while a run is under way: %v", err)
	}
	d.Schedule(&after.Task, nil)
	d.Schedule(&long.Task, nil)
	leave <- true
	closeNow(t, d)
	closeNow(t, d)
	d.Schedule(&after.Task, nil)
	if err := d.Close(ctx); err != nil {
		t.Fatalf("close of a closed dispatcher: %v", err)
	}
}

// TestCloseUnderLoad closes while everything is in motion.
func TestCloseUnderLoad(t *testing.T) {
	for round := range 30 {
		d := dispatch.New(dispatch.Config{Workers: 1 + round%4})
		var busy [50]*task
		var runs atomic.Int64
		for i := range busy {
			busy[i] = newTask(func(w *dispatch.Worker) bool {
				d.Schedule(&busy[(i+1)%len(busy)].Task, w)
				if runs.Add(1)%64 == 0 {
					w.Yield()
					w.Yield()
				}
				return true
			})
		}
		for _, b := range busy {
			d.Schedule(&b.Task, nil)
		}
		eventually(t, "some runs", func() bool { return runs.Load() > 1000 })
		closeNow(t, d)
		after := runs.Load()
		runtime.Gosched()
		if runs.Load() != after {
			t.Fatal("a run after Close")
		}
	}
}

func TestConfigBounds(t *testing.T) {
	for _, test := range []struct{ workers, want int }{
		{0, runtime.GOMAXPROCS(0)}, {-3, runtime.GOMAXPROCS(0)}, {3, 3}, {100000, dispatch.MaxWorkers},
	} {
		d := dispatch.New(dispatch.Config{Workers: test.workers})
		if got := d.Stats().Workers; got != test.want {
			t.Errorf("%d workers asked for: %d, want %d", test.workers, got, test.want)
		}
		closeNow(t, d)
	}
}

// TestForeignWorker: a worker of one dispatcher means nothing to another one.
func TestForeignWorker(t *testing.T) {
	a, b := dispatch.New(dispatch.Config{Workers: 1}), dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, a)
	defer closeNow(t, b)
	ran := make(chan bool)
	inB := newTask(func(*dispatch.Worker) bool { ran <- true; return false })
	release := make(chan bool)
	inA := newTask(func(w *dispatch.Worker) bool {
		b.Schedule(&inB.Task, w)
		<-release
		return false
	})
	a.Schedule(&inA.Task, nil)
	await(t, ran, "the other dispatcher")
	close(release)
}

// TestIdleIsQuiet: a dispatcher without work burns no processor time.
func TestIdleIsQuiet(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 4})
	defer closeNow(t, d)
	for range 200 {
		once := newTask(func(*dispatch.Worker) bool { return false })
		d.Schedule(&once.Task, nil)
	}
	eventually(t, "all workers to park", func() bool { return d.Stats().Parked == 4 })
	for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
		if s := d.Stats(); s.Parked != 4 {
			t.Fatalf("%+v without work", s)
		}
	}
}
