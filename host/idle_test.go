package host

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// Idle waits for an end to be told: who takes its last step is in no table any more, and
// its watcher has no work yet.
func TestIdleWaitsForEnds(t *testing.T) {
	s := newSystem(t, NewConfig("idle"))
	var told atomic.Int64
	watcher, err := s.Spawn("watcher", Func(func(c *Context, m Message) error {
		if m.Kind == abi.KindTerminated {
			told.Add(1)
			return nil
		}
		var uid uint64
		if err := m.Decode(&uid); err != nil {
			return err
		}
		if err := c.Watch(Ref{uid: abi.Ref(uid)}); err != nil {
			return err
		}
		c.Stop(Ref{uid: abi.Ref(uid)})
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(1000) {
		ref, err := s.Spawn("", Func(func(*Context, Message) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Tell(watcher, uint64(ref.uid)); err != nil {
			t.Fatal(err)
		}
		if err := s.Idle(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := told.Load(); got != n+1 {
			t.Fatalf("idle after %d ends, and %d were told", n+1, got)
		}
	}
}
