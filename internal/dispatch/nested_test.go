package dispatch_test

import (
	"testing"

	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// What a run wakes runs right behind it, depth first; its own task comes again after that.
func TestNested(t *testing.T) {
	d := dispatch.NewNested()
	var l log
	wakes := func(name string, again *bool, tasks ...*task) *task {
		return l.task(name, func(w *dispatch.Worker) bool {
			for _, t := range tasks {
				d.Schedule(&t.Task, w)
			}
			more := again != nil && *again
			if more {
				*again = false
			}
			return more
		})
	}
	more := true
	d1, d2 := wakes("d1", nil), wakes("d2", nil)
	c1, c2, c3 := wakes("c1", nil, d1, d2), wakes("c2", nil), wakes("c3", nil, d1)
	root, other := wakes("root", &more, c1, c2, c3), wakes("other", nil)
	d.Schedule(&root.Task, nil)
	d.Schedule(&other.Task, nil)
	if n := d.RunUntilIdle(100); n != 15 {
		t.Errorf("%d runs", n)
	}
	l.want(t, "root c1 d1 d2 c2 c3 d1 root c1 d1 d2 c2 c3 d1 other")
}
