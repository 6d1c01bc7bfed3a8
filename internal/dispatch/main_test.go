package dispatch_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// TestMain also checks that no test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

func closeNow(tb testing.TB, d *dispatch.Dispatcher) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := d.Close(ctx); err != nil {
		tb.Errorf("close: %v", err)
	}
}

// await waits for c to be closed or to deliver.
func await[T any](tb testing.TB, c <-chan T, what string) (v T) {
	tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case v = <-c:
	case <-timeout.C:
		tb.Fatalf("waited in vain for %s", what)
	}
	return v
}

// eventually polls until the condition holds.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !condition(); {
		if time.Now().After(end) {
			tb.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// task is a task that runs a function.
type task struct {
	dispatch.Task
	run func(w *dispatch.Worker) bool
}

func (t *task) Run(w *dispatch.Worker) bool { return t.run(w) }

func newTask(run func(w *dispatch.Worker) bool) *task {
	t := &task{run: run}
	t.Init(t)
	return t
}
