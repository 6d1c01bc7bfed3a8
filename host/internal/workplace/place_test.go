package workplace

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// counter counts its runs.
type counter struct{ n atomic.Int32 }

func (c *counter) Run(*dispatch.Worker) bool { c.n.Add(1); return false }

// Each actor gets the place that it asks for, threads are bounded and come back, and a system that is stepped by hand has
// neither pools nor threads.
func TestPlaces(t *testing.T) {
	usual := dispatch.NewManual()
	var s Pools
	s.Open(usual, []Pool{{"files", 1}}, 1, false)
	var plain, filed, pinned, more Place
	for _, x := range []struct {
		p      *Place
		pool   string
		pinned bool
		want   error
	}{
		{&plain, "", false, nil}, {&filed, "files", false, nil}, {&pinned, "", true, nil}, {&more, "", true, errs.ErrLimit}, {&more, "tape", false, errs.ErrBadProps},
	} {
		if err := s.Take(x.p, x.pool, x.pinned); !errors.Is(err, x.want) {
			t.Errorf("pool %q, pinned %v: %v, want %v", x.pool, x.pinned, err, x.want)
		}
	}
	if plain.At() != usual || filed.At() == usual || pinned.At() == usual || pinned.At() == filed.At() || s.Threads() != 1 {
		t.Error("they are not where they should be")
	}
	var c counter
	plain.Init(&c)
	if plain.Wake(nil); !usual.Step() || c.n.Load() != 1 {
		t.Error("the usual place does not run")
	}
	s.Leave(&plain, false)
	s.Leave(&filed, false)
	if s.Leave(&pinned, true); s.Threads() != 0 {
		t.Error("the thread is not given back")
	}
	if err := s.Take(&more, "", true); err != nil {
		t.Errorf("the thread is not free: %v", err)
	}
	s.Leave(&more, true)
	s.Close(context.Background())

	var manual Pools
	manual.Open(usual, []Pool{{"files", 1}}, 1, true)
	for _, pinned := range []bool{true, true, false} {
		pool := ""
		if !pinned {
			pool = "files"
		}
		if err := manual.Take(&more, pool, pinned); err != nil || more.At() != usual {
			t.Errorf("pinned %v: %v", pinned, err)
		}
		manual.Leave(&more, pinned)
	}
	if err := manual.Take(&more, "tape", false); !errors.Is(err, errs.ErrBadProps) {
		t.Error(err)
	}
	manual.Close(context.Background())
}
