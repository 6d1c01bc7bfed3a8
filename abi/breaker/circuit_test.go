package breaker

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"
)

var epoch = time.Unix(1_700_000_000, 0)

func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

// script drives a circuit: begin and end calls by name at times in seconds.
type script struct {
	t     *testing.T
	c     Circuit
	calls map[string]Call
	heard []string
}

func newScript(t *testing.T, s Settings) *script {
	x := &script{t: t, calls: map[string]Call{}}
	x.c = New(s, func(from, to State) { x.heard = append(x.heard, from.String()+">"+to.String()) })
	return x
}

func (x *script) begin(s float64, name string, ok bool) {
	x.t.Helper()
	call, got := x.c.Begin(at(s))
	if got != ok {
		x.t.Fatalf("%s at %v: %v", name, s, got)
	}
	x.calls[name] = call
}

func (x *script) end(s float64, name string, failed bool) { x.c.End(x.calls[name], failed, at(s)) }

func (x *script) wants(s float64, state State, heard ...string) {
	x.t.Helper()
	if got := x.c.State(at(s)); got != state || !slices.Equal(x.heard, heard) {
		x.t.Fatalf("at %v: %v after %v, want %v after %v", s, got, x.heard, state, heard)
	}
	x.heard = nil
}

func (x *script) fail(s float64, n int) {
	x.t.Helper()
	for i := range n {
		name := fmt.Sprint("f", i)
		x.begin(s, name, true)
		x.end(s, name, true)
	}
}

var sample = Settings{MaxFailures: 5, CallTimeout: 10 * time.Second, ResetTimeout: time.Minute}

// TestK15_Circuit: the sample of the source, 5 failures, 10 s, 1 min.
func TestK15_Circuit(t *testing.T) {
	x := newScript(t, sample)
	x.fail(0, 4)
	x.begin(0, "good", true)
	x.end(1, "good", false) // a success resets
	x.fail(1, 4)
	x.wants(1, Closed)
	x.begin(1, "slow", true)
	x.end(11.5, "slow", false) // more than 10 s is a failure, the fifth
	x.wants(11.5, Open, "closed>open")
	if d := x.c.Remaining(at(20)); d != 51500*time.Millisecond {
		t.Errorf("%v remain", d)
	}
	x.begin(71.4, "early", false)
	x.wants(71.5, HalfOpen, "open>half-open")
	x.begin(72, "probe", true)
	x.begin(72, "second", false) // exactly one is tried
	x.end(73, "probe", true)
	x.wants(132.9, Open, "half-open>open") // a full reset timeout again
	x.begin(133, "probe", true)
	x.end(134, "probe", false)
	x.wants(134, Closed, "open>half-open", "half-open>closed")
	x.fail(134, 4) // the count starts over
	x.wants(134, Closed)
	x.fail(134, 1)
	x.wants(134, Open, "closed>open")
}

// TestK15_LateEnds: a call counts only in the period in which it has begun.
func TestK15_LateEnds(t *testing.T) {
	x := newScript(t, sample)
	x.begin(0, "a", true)
	x.begin(0, "b", true)
	x.fail(1, 5)
	x.end(2, "a", false)
	x.wants(2, Open, "closed>open")
	x.begin(61, "probe", true)
	x.end(62, "b", false)
	x.wants(62, HalfOpen, "open>half-open")
	x.end(63, "probe", false)
	x.wants(63, Closed, "half-open>closed")
}

// A call exactly as long as the timeout has done well; the one that is tried and does not come back has
// failed when its time is over, and the circuit is open for a full reset from there.
func TestK15_Timeouts(t *testing.T) {
	x := newScript(t, Settings{MaxFailures: 1, CallTimeout: 10 * time.Second, ResetTimeout: time.Minute})
	x.begin(0, "exact", true)
	x.end(10, "exact", false)
	x.wants(10, Closed)
	x.fail(10, 1)
	x.begin(70, "lost", true)
	x.begin(80, "other", false)
	x.wants(139, Open, "closed>open", "open>half-open", "half-open>open")
	x.begin(140, "again", true)
	x.end(140, "lost", false)
	x.wants(140, HalfOpen, "open>half-open")
	x.c.Forget(x.calls["again"]) // counts neither way: another one is tried
	x.begin(141, "third", true)
	x.end(142, "third", false)
	x.wants(142, Closed, "half-open>closed")
	never := newScript(t, Settings{CallTimeout: NoTimeout})
	never.begin(0, "long", true)
	never.end(1e8, "long", false)
	never.wants(1e8, Closed)
}

// TestK15_Backoff: each trial in vain makes the next reset longer, up to a bound; a success forgets that.
func TestK15_Backoff(t *testing.T) {
	x := newScript(t, Settings{MaxFailures: 1, ResetTimeout: time.Second, Backoff: 2, MaxReset: 5 * time.Second})
	now := 0.0
	for _, want := range []float64{1, 2, 4, 5, 5} {
		x.fail(now, 1)
		if d := x.c.Remaining(at(now)); d != time.Duration(want*float64(time.Second)) {
			t.Fatalf("open for %v, want %v s", d, want)
		}
		now += want
	}
	x.begin(now, "good", true)
	x.end(now, "good", false)
	x.fail(now, 1)
	if d := x.c.Remaining(at(now)); d != time.Second {
		t.Errorf("open for %v after a success", d)
	}
	y := New(Settings{MaxFailures: 1, ResetTimeout: time.Hour, Backoff: 1000}, nil)
	for when, i := epoch, 0; i < 400; i++ { // the factor overflows a float
		call, ok := y.Begin(when)
		if !ok {
			t.Fatal("it is open")
		}
		y.End(call, true, when)
		d := y.Remaining(when)
		if d <= 0 || d > DefaultMaxReset {
			t.Fatalf("open for %v", d)
		}
		when = when.Add(d)
	}
}

// Random calls that overlap: the circuit is what its rules say, kept in another way.
func TestCircuitAgainstAModel(t *testing.T) {
	for seed := range int64(200) {
		rnd := rand.New(rand.NewSource(seed))
		c := New(Settings{MaxFailures: 3, CallTimeout: 4 * time.Second, ResetTimeout: 10 * time.Second}, nil)
		type call struct {
			c     Call
			era   int
			began int
		}
		var open []call
		era, failures, state, since, probe := 0, 0, Closed, 0, -1 // the model, in whole seconds
		to := func(s State, now int) { state, since, probe, failures, era = s, now, -1, 0, era+1 }
		for now := range 300 {
			for again := true; again; {
				again = false
				if state == Open && now >= since+10 {
					to(HalfOpen, now)
					again = true
				}
				if state == HalfOpen && probe >= 0 && now > probe+4 {
					to(Open, probe+4)
					again = true
				}
			}
			if rnd.Intn(2) == 0 {
				want := state == Closed || state == HalfOpen && probe < 0
				got, ok := c.Begin(at(float64(now)))
				if ok != want {
					t.Fatalf("seed %d at %d in %v: let through %v", seed, now, state, ok)
				}
				if ok {
					open = append(open, call{got, era, now})
					if state == HalfOpen {
						probe = now
					}
				}
			}
			if len(open) > 0 && rnd.Intn(2) == 0 {
				i := rnd.Intn(len(open))
				x := open[i]
				open = slices.Delete(open, i, i+1)
				failed := rnd.Intn(3) > 0
				c.End(x.c, failed, at(float64(now)))
				failed = failed || now > x.began+4
				if x.era == era {
					switch {
					case state == HalfOpen && failed:
						to(Open, now)
					case state == HalfOpen:
						to(Closed, now)
					case failed:
						if failures++; failures == 3 {
							to(Open, now)
						}
					default:
						failures = 0
					}
				}
			}
			if got := c.State(at(float64(now))); got != state || state == Closed && c.Failures() != failures {
				t.Fatalf("seed %d at %d: %v with %d failures, want %v with %d", seed, now, got, c.Failures(), state, failures)
			}
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for want, s := range map[string]Settings{
		"":                 {MaxFailures: 1, Backoff: 1, MaxReset: time.Hour},
		"MaxFailures is -": {MaxFailures: -1},
		"negative":         {CallTimeout: -1},
		"Backoff is 0.5":   {Backoff: 0.5},
		"below":            {ResetTimeout: time.Hour, MaxReset: time.Minute},
	} {
		if err := s.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if s := (Settings{}).withDefaults(); s.MaxFailures != 5 || s.CallTimeout != 10*time.Second || s.ResetTimeout != time.Minute || s.Backoff != 1 {
		t.Errorf("%+v", s)
	}
}

func TestCallsDoNotAllocate(t *testing.T) {
	n := 0
	c := New(Settings{MaxFailures: 1}, func(State, State) { n++ })
	now := epoch
	if a := testing.AllocsPerRun(100, func() {
		call, ok := c.Begin(now)
		if !ok {
			t.Fatal("not let through")
		}
		c.End(call, true, now)
		if _, ok := c.Begin(now); ok {
			t.Fatal("let through")
		}
		now = now.Add(time.Hour)
	}); a != 0 || n < 200 {
		t.Errorf("%v allocations, %d transitions", a, n)
	}
}
