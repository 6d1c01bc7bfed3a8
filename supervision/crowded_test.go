package supervision

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// A start without room is tried again after a delay that grows to a bound, and starts over after another
// failure. Limits and directives are those of any failure, and a backoff's own delay is the one that counts.
func TestCrowded(t *testing.T) {
	fail := func(s Strategy, c *Child, crowded bool) Decision {
		d := s.Directed(Restart, c, new(Group), Permanent, at(0), top)
		if crowded {
			d = s.Crowded(c, d, top)
		}
		return d
	}
	var c Child
	s := Default()
	for i, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
		if d := fail(s, &c, true); d.Directive != Restart || d.Delay != want*time.Millisecond {
			t.Errorf("%d: %+v, want %d ms", i, d, want)
		}
	}
	if d := fail(s, &c, false); d.Delay != 0 {
		t.Errorf("another failure: %+v", d)
	}
	if d := fail(s, &c, true); d.Delay != crowdedLeast {
		t.Errorf("after another failure: %+v", d)
	}
	fail(s, &c, true)
	c.Reset()
	if d := fail(s, &c, true); d.Delay != crowdedLeast {
		t.Errorf("counted anew: %+v", d)
	}
	c = Child{}
	if d := s.Crowded(&c, s.Directed(Restart, &c, new(Group), Permanent, at(0), bottom), bottom); d.Delay != crowdedLeast/2 {
		t.Errorf("at the least: %+v", d)
	}
	if d := s.Crowded(&c, s.Directed(Stop, &c, new(Group), Permanent, at(0), top), top); d.Directive != Stop || d.Delay != 0 {
		t.Errorf("a stop: %+v", d)
	}
	c = Child{}
	limited := s.WithMaxRestarts(2, 0)
	fail(limited, &c, true)
	fail(limited, &c, true)
	if d := fail(limited, &c, true); d.Directive != Stop || d.Delay != 0 || d.Refused == "" {
		t.Errorf("beyond the limit: %+v", d)
	}
	for on, want := range map[Ends]time.Duration{OnAny: 7 * time.Second, OnFailure: 7 * time.Second, OnStop: crowdedLeast} {
		c = Child{}
		if d := fail(s.WithBackoff(Backoff{Policy: backoff.WithJitter(backoff.Constant(7*time.Second), backoff.NoJitter()), On: on}), &c, true); d.Delay != want {
			t.Errorf("with a backoff on %v: %+v", on, d)
		}
	}
}

// fixed is randomness that is not.
type fixed float64

func (f fixed) Float64() float64 { return float64(f) }
func (f fixed) IntN(n int) int   { return int(f) * (n - 1) }

const top, bottom fixed = 1, 0
