package dispatch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// virtual is a dispatcher's queue without goroutines: a grant is a quantum.
type virtual struct {
	d    *Dispatcher
	runs map[*Task]*Worker
}

func newVirtual() *virtual { return &virtual{newDispatcher(2), map[*Task]*Worker{}} }

// wait has a task wait to begin, or its run for its next slice.
func (v *virtual) wait(t *Task) { v.d.sit(t, v.runs[t]) }

// grant lets the next one compute for a quantum.
func (v *virtual) grant() *Task {
	s := v.d.back.next(true)
	v.d.leave(s)
	v.d.granted(s)
	w := v.runs[s.task]
	if w == nil {
		w = &Worker{d: v.d}
		v.runs[s.task] = w
	}
	w.takes()
	w.spent += slice
	return s.task
}

// end ends a task's run.
func (v *virtual) end(t *Task) {
	v.runs[t].learn(t)
	delete(v.runs, t)
}

// spin lets a crowd that never ends take turns for a while.
func (v *virtual) spin(n, quanta int) {
	for range n {
		v.wait(new(Task))
	}
	for range quanta {
		v.wait(v.grant())
	}
}

// How many quanta pass before a task that needs some has had them does not depend on how many runs there are
// that never end.
func TestShortRunsComeBeforeEndlessOnes(t *testing.T) {
	worst := map[int]map[int]int{} // by what it needs, by the crowd
	for _, crowd := range []int{10, 1000, 5000} {
		v := newVirtual()
		v.spin(crowd, crowd*32)
		r := rand.New(rand.NewPCG(1, 2))
		for _, needs := range []int{1, 3, 10} {
			if worst[needs] == nil {
				worst[needs] = map[int]int{}
			}
			honest := new(Task)
			for range 100 {
				for range r.IntN(50) {
					v.wait(v.grant())
				}
				v.wait(honest)
				passed := 0
				for had := 0; had < needs; passed++ {
					k := v.grant()
					if k == honest {
						had++
					}
					if had < needs {
						v.wait(k)
					}
				}
				v.end(honest)
				worst[needs][crowd] = max(worst[needs][crowd], passed)
			}
		}
	}
	for needs, of := range worst {
		if of[5000] > 2*needs+2 || of[5000] > of[10]+2 {
			t.Errorf("before it has had %d there pass, by the number of others: %v", needs, of)
		}
	}
	t.Log(worst)
}

// Whoever has had much waits, but not for ever, however many come that have had little.
func TestNobodyWaitsForEver(t *testing.T) {
	v := newVirtual()
	old := new(Task)
	v.wait(old)
	for range 5000 {
		v.wait(v.grant())
	}
	const newcomers = 10
	for range newcomers {
		v.wait(new(Task))
	}
	longest, since := 0, 0
	for range 20_000 {
		since++
		k := v.grant()
		if k == old {
			longest, since = max(longest, since), 0
			v.wait(old)
			continue
		}
		v.end(k)
		v.wait(new(Task)) // another one, that has had nothing
	}
	if longest = max(longest, since); longest > fifoTurn*(newcomers+2) {
		t.Errorf("%d quanta pass between two slices", longest)
	}
}

// shareOfThree is how many of 10,000 slices three tasks get whose runs are short, and begin again at once, beside
// 100 that do not end.
func shareOfThree(lasts func(run int) int) (got int) {
	v := newVirtual()
	v.spin(100, 100*100)
	type run struct{ n, had int }
	three := map[*Task]*run{}
	for range 3 {
		k := new(Task)
		three[k] = new(run)
		v.wait(k)
	}
	for range 10_000 {
		k := v.grant()
		if r := three[k]; r != nil {
			got++
			if r.had++; r.had >= lasts(r.n) {
				r.n, r.had = r.n+1, 0
				v.end(k)
			}
		}
		v.wait(k)
	}
	return got
}

// Those that have had as much take turns; and a run that ends and begins again has not had nothing.
func TestEndlessRunsTakeTurns(t *testing.T) {
	v := newVirtual()
	got := map[*Task]int{}
	for range 50 {
		v.wait(new(Task))
	}
	for i := range 50 * 1000 {
		k := v.grant()
		got[k]++
		if i%7 == 0 { // some end their turn and begin the next
			v.end(k)
		}
		v.wait(k)
	}
	for k, n := range got {
		if n < 500 || n > 2000 {
			t.Errorf("%d slices of %d, level %d", n, 1000, k.seat.level)
		}
	}
	var k Task
	const gap = 2 // there are two lanes
	v.d.turns.Store(0)
	for _, c := range []struct {
		turns  uint64 // that have passed
		slices int64
		had    uint32
	}{{0, 100, 100}, {gap - 1, 0, 100}, {0, 1, 101}, {gap - 1, 1, 102}, {gap, 0, 102}, {0, 8, 59}, {1000, 0, 59}, {0, 7, 7}, {0, 1 << 40, math.MaxUint32}} {
		v.d.turns.Add(c.turns)
		w := &Worker{d: v.d, spent: c.slices * slice}
		if w.learn(&k); k.had != c.had {
			t.Errorf("after %d slices it has had %d, not %d", c.slices, k.had, c.had)
		}
	}
	for name, lasts := range map[string]func(i int) int{
		"one slice":           func(int) int { return 1 },
		"two":                 func(int) int { return 2 },
		"one, two and three":  func(i int) int { return 1 + i%3 },
		"many that do little": func(i int) int { return 1 + 9*(i%10/9) },
	} {
		got := shareOfThree(lasts)
		t.Logf("runs of %s: %d of 10000", name, got)
		if got > 900 || got < 100 {
			t.Errorf("runs of %s: three of 103 have %d of 10000 slices", name, got)
		}
	}
	for slices, want := range map[int64]uint8{0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 1 << 17: 18, 1<<18 - 1: 18, 1 << 18: 19, 1 << 40: 19} {
		if got := levelOf(slices); got != want {
			t.Errorf("%s: level %d, not %d", fmt.Sprint(slices), got, want)
		}
	}
}

// again is a task that spends a slice a run, and has more to do until it has had enough.
type again struct {
	Task
	runs int
	done chan struct{}
}

func (a *again) Run(w *Worker) (more bool) {
	w.Spend(slice)
	if a.runs--; a.runs == 0 {
		close(a.done)
	}
	return a.runs > 0
}

// Who goes on at once makes no pause by that another one gets its token.
func TestGoingOnIsNoPause(t *testing.T) {
	const runs = 50
	d := New(Config{Workers: 1}.Unwatched())
	var tasks [3]*again
	for i := range tasks {
		tasks[i] = &again{runs: runs, done: make(chan struct{})}
		tasks[i].Init(tasks[i])
		d.Schedule(&tasks[i].Task, nil)
	}
	for _, k := range tasks {
		<-k.done
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, k := range tasks {
		if k.had != runs {
			t.Errorf("task %d has had %d slices of %d", i, k.had, runs)
		}
	}
}
