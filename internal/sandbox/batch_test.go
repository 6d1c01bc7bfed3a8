package sandbox

import (
	"testing"

	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// EndBatch leaves one turn an entry, whether it comes before or during the run, also after
// a reset; Resume takes it back.
func TestEndBatch(t *testing.T) {
	x := get(t, load(t, newEngine(t, NewConfig()), "echo", ImageConfig{}))
	defer x.Put()
	handle := func(n int) Result {
		t.Helper()
		for range n {
			push(t, x, 0)
		}
		var out Result
		x.Run(entry(), &out)
		if out.Failure != nil {
			t.Fatal(out.Failure)
		}
		return out
	}
	for range 2 {
		if out := handle(5); out.Turns != 5 || out.Unread != 0 {
			t.Fatalf("%+v", out)
		}
		x.EndBatch()
		for range 2 {
			if out := handle(5); out.Turns != 1 || out.Unread != 4 {
				t.Fatalf("ended: %+v", out)
			}
		}
		x.Resume()
		if out := handle(3); out.Turns != 3 {
			t.Fatalf("resumed: %+v", out)
		}
		x.EndBatch()
		if err := x.Reset(); err != nil {
			t.Fatal(err)
		}
		x.Resume()
	}
	done := make(chan bool)
	go func() { // while it runs: for the race detector
		for range 1000 {
			x.EndBatch()
		}
		close(done)
	}()
	for range 200 {
		if out := handle(8); out.Turns < 1 || out.Turns+out.Unread != 8 {
			t.Fatalf("%+v", out)
		}
		x.Resume()
	}
	<-done
}

// EndBatch may come from any goroutine while an instance is made again.
func TestEndBatchWhileAnInstanceIsMadeAnew(t *testing.T) {
	i := load(t, newEngine(t, NewConfig()), "echo", ImageConfig{})
	x := get(t, i)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			x.EndBatch()
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 100 {
		x.setHidden(hiddenDirty, rewrite.DirtyTable) // so that a reset does not do
		if err := x.Reset(); err != nil {
			t.Fatal(err)
		}
		x.Resume()
	}
	close(stop)
	<-stopped
	x.Put()
}
