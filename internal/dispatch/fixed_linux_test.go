package dispatch_test

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// Each worker with a thread runs on that thread alone, and nothing else does.
func TestThreads(t *testing.T) {
	d := dispatch.New(dispatch.Config{Workers: 1, Fixed: true, Threads: true})
	defer closeNow(t, d)
	thread := make(chan int, 1)
	k := newTask(func(*dispatch.Worker) bool { thread <- syscall.Gettid(); return false })
	first := 0
	for range 50 {
		d.Schedule(&k.Task, nil)
		at := await(t, thread, "a run")
		if first == 0 {
			first = at
		}
		if at != first || at == syscall.Gettid() {
			t.Fatalf("a run on thread %d, the first was on %d", at, first)
		}
		runtime.Gosched()
	}
}
