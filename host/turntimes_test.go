package host

import (
	"testing"
	"time"
)

// One turn in 127 is timed, by type, and the number of types is bounded.
func TestTurnsAreTimedByType(t *testing.T) {
	l := newStage(t, nil)
	slow := l.spawn("slow", Func(func(*Context, Message) error {
		l.clock.Advance(3 * time.Millisecond)
		return nil
	}))
	const turns = 10 * timedEvery
	for range turns {
		if err := l.Tell(slow, 1); err != nil {
			t.Fatal(err)
		}
		l.run()
	}
	c := l.View().Totals().TurnTimes["native"]
	if n := c.N(); n < 9 || n > 11 || c.Sum != time.Duration(n)*3*time.Millisecond {
		t.Errorf("%d of %d turns are timed, %v in all", n, turns, c.Sum)
	}
}
