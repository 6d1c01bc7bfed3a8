package dispatch_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// counted is a task that notes its runs and that they do not overlap.
type counted struct {
	dispatch.Task
	inside atomic.Int32
	runs   int // guarded by the dispatcher
	sent   atomic.Int64
	seen   atomic.Int64
	twice  atomic.Bool
}

func (c *counted) Run(*dispatch.Worker) bool {
	if c.inside.Add(1) != 1 {
		c.twice.Store(true)
	}
	c.runs++
	c.seen.Store(c.sent.Load())
	c.inside.Add(-1)
	return false
}

// TestVisit: a visit is never at the same time as a run, and what is scheduled during one
// is not lost.
func TestVisit(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 2})
	defer closeNow(t, d)
	c := &counted{}
	c.Init(c)
	var wg sync.WaitGroup
	visits := atomic.Int64{}
	for range 4 {
		wg.Go(func() {
			for range 20_000 {
				c.sent.Add(1)
				d.Schedule(&c.Task, nil)
				if d.Visit(&c.Task, func() {
					if c.inside.Add(1) != 1 {
						c.twice.Store(true)
					}
					_ = c.runs // the race detector looks
					c.inside.Add(-1)
				}) {
					visits.Add(1)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "the last run", func() bool { return c.seen.Load() == c.sent.Load() && !c.Running() })
	if c.twice.Load() {
		t.Error("a visit within a run")
	}
	if !d.Visit(&c.Task, func() {}) {
		t.Error("an idle task is not visited")
	}
}

// TestVisitOfAManualTask: one that waits to run is not visited.
func TestVisitOfAManualTask(t *testing.T) {
	d := dispatch.NewManual()
	defer closeNow(t, d)
	c := &counted{}
	c.Init(c)
	d.Schedule(&c.Task, nil)
	if d.Visit(&c.Task, func() { t.Error("visited") }) {
		t.Error("it says so")
	}
	d.Step()
	if !d.Visit(&c.Task, func() { d.Schedule(&c.Task, nil) }) || !d.Step() || c.runs != 2 {
		t.Errorf("%d runs", c.runs)
	}
}
