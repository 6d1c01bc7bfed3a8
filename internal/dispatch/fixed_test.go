package dispatch_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// A fixed pool runs so many tasks at a time, however long they block, and says so or not.
func TestFixedIsFixed(t *testing.T) {
	const size, tasks = 2, 6
	d := dispatch.New(dispatch.Config{Workers: size, Fixed: true})
	defer closeNow(t, d)
	var now, most atomic.Int32
	leave := make(chan bool)
	ended := make(chan bool, tasks)
	for i := range tasks {
		k := newTask(func(w *dispatch.Worker) bool {
			if i%2 == 0 {
				w.Block()
				w.Yield()
			}
			most.Store(max(most.Load(), now.Add(1)))
			<-leave
			now.Add(-1)
			ended <- true
			return false
		})
		d.Schedule(&k.Task, nil)
	}
	eventually(t, "the pool to be full", func() bool { return now.Load() == size })
	time.Sleep(50 * time.Millisecond) // several ticks of a monitor, if there were one
	if n := now.Load(); n != size || d.Stats().Detached != 0 {
		t.Errorf("%d run at a time in a pool of %d, %d have left", n, size, d.Stats().Detached)
	}
	for range tasks {
		leave <- true
		await(t, ended, "a task")
	}
	if n := most.Load(); n > size {
		t.Errorf("%d ran at a time", n)
	}
}

// What a run wakes does not wait behind it while another worker is free.
func TestFixedPassesOn(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 2, Fixed: true})
	defer closeNow(t, d)
	for range 200 {
		ran, done := make(chan bool, 1), make(chan bool, 1)
		second := newTask(func(*dispatch.Worker) bool { ran <- true; return false })
		first := newTask(func(w *dispatch.Worker) bool {
			d.Schedule(&second.Task, w)
			<-ran
			done <- true
			return false
		})
		d.Schedule(&first.Task, nil)
		await(t, done, "the first, which waits for the second")
	}
}
