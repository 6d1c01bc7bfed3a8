package host

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// A turn in Go that fails has done nothing: no child has started, nobody is watched, no timer is set, no ask waits, nothing
// is stashed. One that ends well has done all of it.
func TestAFailedTurnHasDoneNothing(t *testing.T) {
	for _, fails := range []bool{true, false} {
		s, clock := manual(t, nil)
		started := 0
		child := Native(func() Actor { started++; return actorFunc(func(*Context, Message) error { return nil }) })
		other := must(s.Spawn("other", newCounter()))(t)
		ref := must(s.Spawn("a", Func(func(ctx *Context, m Message) error {
			if m.Kind != abi.KindMessage {
				return nil
			}
			kid, err := ctx.Spawn("kid", child)
			if _, again := ctx.Spawn("kid", child); err != nil || kid.IsZero() || !errors.Is(again, ErrNameTaken) {
				t.Error(kid, err, again)
			}
			err = errors.Join(ctx.Watch(other), ctx.Watch(kid), ctx.After(1, time.Second, 0, nil), ctx.Ask(other, "get", 7, time.Minute), ctx.Stash())
			if fails {
				return errors.Join(err, errors.New("no"))
			}
			return err
		})))(t)
		must(0, s.Tell(ref, 1))(t)
		for s.table.Get(ref.UID()).box.Len() > 0 {
			s.Step()
		}
		a := s.table.Get(ref.UID())
		n := 1
		if fails {
			n = 0
		}
		if a.work.Timers.Len() != n || a.work.Watch.Len() != 2*n || a.work.Stash.Len() != n || a.work.Asks.Len() != n {
			t.Errorf("fails: %v: %d timers, %d watches, %d stashed, %d asks", fails, a.work.Timers.Len(), a.work.Watch.Len(), a.work.Stash.Len(), a.work.Asks.Len())
		}
		s.RunUntilIdle(1000)
		if started != n || (a.child("kid") != nil) == fails || clock.Pending() > n {
			t.Errorf("fails: %v: the child has started %d times, %d timers", fails, started, clock.Pending())
		}
	}
}

// The limit of timers counts what the turn has set and cancelled so far, each key once.
func TestTimersOfATurnKeepToTheLimit(t *testing.T) {
	s, _ := manual(t, nil)
	var got []error
	ref := must(s.Spawn("a", Func(func(ctx *Context, m Message) error {
		set := func(key uint64) { got = append(got, ctx.After(key, time.Minute, 0, nil)) }
		set(1)
		set(2)
		set(3) // too many
		set(1) // replaced
		ctx.Cancel(1)
		ctx.Cancel(1) // has none any more
		set(3)
		set(4) // too many
		ctx.Cancel(3)
		ctx.Cancel(2)
		set(3)
		set(4)
		set(5) // too many
		return nil
	}).WithLimits(Limits{Timers: 2})))(t)
	for _, want := range [][]int{{2, 5, 8}, {0, 1, 3, 8}} { // in the second turn 3 and 4 are there
		got = nil
		must(0, s.Tell(ref, 1))(t)
		s.RunUntilIdle(1000)
		a := s.table.Get(ref.UID())
		if a.work.Timers.Len() != 2 || !a.work.Timers.Has(3) || !a.work.Timers.Has(4) {
			t.Errorf("%d timers", a.work.Timers.Len())
		}
		var refused []int
		for i, err := range got {
			if errors.Is(err, ErrLimit) {
				refused = append(refused, i)
			} else if err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(refused, want) {
			t.Errorf("%v are refused, want %v", refused, want)
		}
	}
}
