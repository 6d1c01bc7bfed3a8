package host

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
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
		if err := c.Watch(newRef(abi.Ref(uid), "")); err != nil {
			return err
		}
		c.Stop(newRef(abi.Ref(uid), ""))
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
		if err := s.Tell(watcher, uint64(ref.UID())); err != nil {
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

// Whether a system is idle is not asked of all its actors as long as one that has work still has it.
func TestOneBusyActorIsEnough(t *testing.T) {
	l := newLab(t, supervision.Default())
	timer := func(key uint64) Props {
		return Func(func(ctx *Context, m Message) error {
			if m.Kind == abi.KindMessage {
				return ctx.After(key, time.Minute, 0, nil)
			}
			return nil
		})
	}
	var all []*actor
	for i := range 50 {
		ref := l.spawn("", timer(uint64(i)))
		l.tell(ref, 1)
		all = append(all, l.table.Get(ref.UID()))
	}
	for _, a := range all {
		if l.witness(a) != a {
			t.Fatal("others are looked at")
		}
	}
	l.Stop(all[0].ref())
	l.run()
	if w := l.witness(all[0]); w == nil || w == all[0] {
		t.Errorf("%v", w)
	}
	l.pass(time.Minute)
	if w := l.witness(all[1]); w != nil {
		t.Errorf("%s has work", w.path)
	}
}
