package dispatch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// log collects the names of tasks in the order of their runs.
type log []string

func (l *log) task(name string, run func(w *dispatch.Worker) bool) *task {
	return newTask(func(w *dispatch.Worker) bool {
		*l = append(*l, name)
		return run != nil && run(w)
	})
}

func (l *log) want(t *testing.T, names string) {
	t.Helper()
	if got := fmt.Sprint(*l); got != "["+names+"]" {
		t.Errorf("order %v, want [%s]", got, names)
	}
	*l = nil
}

func TestManualOrder(t *testing.T) {
	d := dispatch.NewManual()
	var l log
	a, b := l.task("a", nil), l.task("b", nil)
	d.Schedule(&a.Task, nil)
	d.Schedule(&b.Task, nil)
	d.Schedule(&a.Task, nil) // queued already
	if n := d.RunUntilIdle(100); n != 2 {
		t.Errorf("%d runs", n)
	}
	l.want(t, "a b")
	if d.Step() {
		t.Error("a step without work")
	}

	// What a run wakes comes next, the last one first; what that displaces
	// waits behind, in order.
	c := l.task("c", func(w *dispatch.Worker) bool {
		d.Schedule(&a.Task, w)
		d.Schedule(&b.Task, w)
		return false
	})
	d.Schedule(&c.Task, nil)
	if n := d.RunUntilIdle(2); n != 2 {
		t.Errorf("%d runs of 2", n)
	}
	d.RunUntilIdle(100)
	l.want(t, "c b a")
}

func TestMoreGoesToTheBack(t *testing.T) {
	d := dispatch.NewManual()
	var l log
	turns := 3
	a := l.task("a", func(*dispatch.Worker) bool { turns--; return turns > 0 })
	b, c := l.task("b", nil), l.task("c", nil)
	first := l.task("first", func(w *dispatch.Worker) bool {
		for _, t := range []*task{a, b, c} {
			d.Schedule(&t.Task, w)
		}
		return false
	})
	d.Schedule(&first.Task, nil)
	d.RunUntilIdle(100)
	l.want(t, "first c a b a a")
}

func TestScheduleDuringRunRunsAgain(t *testing.T) {
	d := dispatch.NewManual()
	var l log
	var self *task
	again := 2
	self = l.task("self", func(w *dispatch.Worker) bool {
		if again--; again >= 0 {
			d.Schedule(&self.Task, w)
			d.Schedule(&self.Task, nil)
		}
		return false
	})
	d.Schedule(&self.Task, nil)
	d.RunUntilIdle(100)
	l.want(t, "self self self")
}

// TestSlotDoesNotStarve: two tasks that wake each other for ever let a third one
// run within the streak that is allowed to them.
func TestSlotDoesNotStarve(t *testing.T) {
	d := dispatch.NewManual()
	var ping, pong, third *task
	runs, at := 0, []int(nil)
	ping = newTask(func(w *dispatch.Worker) bool { runs++; d.Schedule(&pong.Task, w); return false })
	pong = newTask(func(w *dispatch.Worker) bool { runs++; d.Schedule(&ping.Task, w); return false })
	third = newTask(func(*dispatch.Worker) bool { runs++; at = append(at, runs); return true })
	start := newTask(func(w *dispatch.Worker) bool {
		d.Schedule(&third.Task, w)
		d.Schedule(&ping.Task, w)
		return false
	})
	d.Schedule(&start.Task, nil)
	d.RunUntilIdle(1000)
	if len(at) < 1000/20 {
		t.Fatalf("the third task ran %d times in 1000", len(at))
	}
	for i := 1; i < len(at); i++ {
		if gap := at[i] - at[i-1]; gap > 17 {
			t.Fatalf("the third task waited for %d runs", gap)
		}
	}
}

// TestInjectorDoesNotStarve: a lane that never runs dry takes what comes from
// outside in time.
func TestInjectorDoesNotStarve(t *testing.T) {
	d := dispatch.NewManual()
	for range 5 {
		busy := newTask(func(*dispatch.Worker) bool { return true })
		d.Schedule(&busy.Task, nil)
	}
	d.RunUntilIdle(50)
	ran := false
	outside := newTask(func(*dispatch.Worker) bool { ran = true; return false })
	d.Schedule(&outside.Task, nil)
	d.RunUntilIdle(16)
	if !ran {
		t.Fatal("not within 16 runs")
	}
}

// TestLaneOverflow wakes more tasks from one run than a lane holds.
func TestLaneOverflow(t *testing.T) {
	d := dispatch.NewManual()
	const n = 2000
	runs := make([]int, n)
	all := make([]*task, n)
	for i := range all {
		all[i] = newTask(func(*dispatch.Worker) bool { runs[i]++; return false })
	}
	start := newTask(func(w *dispatch.Worker) bool {
		for _, t := range all {
			d.Schedule(&t.Task, w)
		}
		return false
	})
	for round := 1; round <= 3; round++ {
		d.Schedule(&start.Task, nil)
		if got := d.RunUntilIdle(10 * n); got != n+1 {
			t.Fatalf("%d runs, want %d", got, n+1)
		}
		for i, r := range runs {
			if r != round {
				t.Fatalf("task %d ran %d times in %d rounds", i, r, round)
			}
		}
	}
}

// TestManualIsDeterministic: a random net of actors has the same history each
// time.
func TestManualIsDeterministic(t *testing.T) {
	history := func() []int {
		d := dispatch.NewManual()
		rnd := rand.New(rand.NewPCG(1, 2))
		var order []int
		nodes := make([]*actor, 300)
		for i := range nodes {
			nodes[i] = newActor(d, mailbox.Limits{Messages: 20}, func(w *dispatch.Worker, e *mailbox.Envelope) {
				order = append(order, i)
				cacheOf(w).Free(e)
				w.Yield() // does nothing here
				for range rnd.IntN(3) {
					e := message(w, payload16)
					if nodes[rnd.IntN(len(nodes))].send(e, w) != nil {
						cacheOf(w).Free(e)
					}
				}
			})
		}
		for i := range 50 {
			if err := nodes[i].send(message(nil, payload16), nil); err != nil {
				t.Fatal(err)
			}
		}
		d.RunUntilIdle(5000)
		return order
	}
	first, second := history(), history()
	if len(first) < 1000 || fmt.Sprint(first) != fmt.Sprint(second) {
		t.Fatalf("%d and %d messages, in different order", len(first), len(second))
	}
}

func TestManualMisuse(t *testing.T) {
	panics := func(name string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		f()
	}
	d := dispatch.New(dispatch.Config{Workers: 1})
	defer closeNow(t, d)
	panics("Step of a dispatcher with goroutines", func() { d.Step() })
	m := dispatch.NewManual()
	inner := newTask(func(*dispatch.Worker) bool {
		panics("Step within a run", func() { m.Step() })
		return false
	})
	m.Schedule(&inner.Task, nil)
	m.Step()
}

func TestManualClose(t *testing.T) {
	d := dispatch.NewManual()
	a := newTask(func(*dispatch.Worker) bool { t.Error("ran"); return false })
	d.Schedule(&a.Task, nil)
	for range 2 {
		if err := d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if d.Step() {
		t.Fatal("a step after Close")
	}
}

// TestNoAllocation pins the steady state of scheduling and running.
func TestNoAllocation(t *testing.T) {
	d := dispatch.NewManual()
	var tasks [4]*task
	for i := range tasks {
		left := 0
		tasks[i] = newTask(func(w *dispatch.Worker) bool {
			if left == 0 {
				left = 10
			}
			left--
			d.Schedule(&tasks[(i+1)%len(tasks)].Task, w)
			d.Schedule(&tasks[(i+2)%len(tasks)].Task, w)
			return left > 0
		})
	}
	allocs := testing.AllocsPerRun(100, func() {
		d.Schedule(&tasks[0].Task, nil)
		d.RunUntilIdle(1000)
	})
	if allocs != 0 {
		t.Fatalf("%v allocations in 1000 runs", allocs)
	}
}

// A shuffled dispatcher runs everything, in an order that the seed decides.
func TestShuffled(t *testing.T) {
	order := func(seed uint64) (ran []int) {
		d := dispatch.NewShuffled(seed)
		tasks := make([]dispatch.Task, 20)
		for i := range tasks {
			again := i%5 == 0
			tasks[i].Init(runFunc(func(*dispatch.Worker) bool {
				ran = append(ran, i)
				more := again
				again = false
				return more
			}))
			d.Schedule(&tasks[i], nil)
		}
		d.RunUntilIdle(1000)
		if d.Step() {
			t.Error("something is left")
		}
		return ran
	}
	seen := map[string]bool{}
	for seed := range uint64(10) {
		a := order(seed)
		if len(a) != 24 || !slices.Equal(a, order(seed)) {
			t.Fatalf("seed %d: %v", seed, a)
		}
		seen[fmt.Sprint(a)] = true
	}
	if len(seen) < 9 {
		t.Errorf("ten seeds are %d orders", len(seen))
	}
}

type runFunc func(*dispatch.Worker) bool

func (f runFunc) Run(w *dispatch.Worker) bool { return f(w) }
