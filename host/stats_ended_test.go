package host

import (
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/supervision"
)

// A failure counts for its type although its actor has stopped by the time that the supervisor hears of
// it: an operator's order overtakes the report, or the supervisor is behind.
func TestFailuresOfTheEndedCount(t *testing.T) {
	l := newStage(t, func(c Config) Config {
		return c.WithGuardian(supervision.Default().WithOtherwise(supervision.Restart).WithSilence(true))
	})
	for range 3 {
		a := l.spawn("", Func(func(ctx *Context, m Message) error {
			ctx.System().Stop(ctx.Self()) // at once, and not with the turn
			return errors.New("fails")
		}))
		_ = l.Tell(a, 1)
		l.run()
		if l.alive(a) {
			t.Fatal("it has not stopped")
		}
	}
	st := l.View().Stats()
	sum := TypeStats{}
	for _, t := range st.Types {
		sum.Crashes += t.Crashes
		sum.Restarts += t.Restarts
	}
	if st.Crashes != 3 || sum.Crashes != 3 || sum.Restarts != st.Restarts {
		t.Errorf("%d crashes, %d restarts in all; by type %+v", st.Crashes, st.Restarts, sum)
	}
}

// What those have done who have stopped counts once and stays, without that of the guardians; bounds are shown.
func TestTotalsOfTheEnded(t *testing.T) {
	s, clock := manual(t, func(c Config) Config { return c.WithMemory(64 << 20).WithMaxActors(100) })
	l := &lab{s, t, clock, s.Subscribe(1000, nil)}
	a := l.spawn("a", newCounter())
	l.tell(a, 1, 2)
	for range 3 {
		l.View().Stats() // a census does not change what counts later
	}
	l.Stop(a)
	l.run()
	got := l.View().Totals()
	if want := (TypeStats{Turns: 2}); got.Ended["native"] != want || len(got.Ended) != 1 {
		t.Errorf("%+v", got.Ended)
	}
	if got.HeldLimit != 64<<20 || got.ActorLimit != 100 {
		t.Errorf("bounds %d and %d", got.HeldLimit, got.ActorLimit)
	}
	if st := l.View().Stats(); st.Turns != 2 || st.Types["native"].Actors != 0 {
		t.Errorf("%+v", st)
	}
}
