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
	st := l.Stats()
	sum := TypeStats{}
	for _, t := range st.Types {
		sum.Crashes += t.Crashes
		sum.Restarts += t.Restarts
	}
	if st.Crashes != 3 || sum.Crashes != 3 || sum.Restarts != st.Restarts {
		t.Errorf("%d crashes, %d restarts in all; by type %+v", st.Crashes, st.Restarts, sum)
	}
}
