package supervision

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision/backoff"
	"pgregory.net/rapid"
)

var rnd = rand.New(rand.NewPCG(1, 2))

func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func failure(k abi.FailureKind) *abi.Failure {
	return &abi.Failure{Kind: k, Reason: "because", Message: "bad row 7"}
}

// Semantics D03: the default decider.
func TestD03_DefaultDecider(t *testing.T) {
	for k, want := range map[abi.FailureKind]Directive{
		abi.FailureInit: Stop, abi.FailureKilled: Stop, abi.FailureDeathPact: Stop, abi.FailureHost: Escalate,
		abi.FailureTrap: Restart, abi.FailureGuestPanic: Restart, abi.FailureGuestError: Restart, abi.FailureFuel: Restart,
		abi.FailureDeadline: Restart, abi.FailureMemoryLimit: Restart, abi.FailureStackOverflow: Restart,
		abi.FailureABIViolation: Restart, abi.FailureExit: Restart, abi.FailureNativePanic: Restart, abi.FailureTableLimit: Restart,
	} {
		if got := Default().Decide("t", failure(k)); got != want {
			t.Errorf("%v: %v, want %v", k, got, want)
		}
	}
}

// Semantics D04: what a custom strategy does not cover escalates.
func TestD04_UncoveredEscalates(t *testing.T) {
	s := Default().WithRules(
		Rule{Kinds: []abi.FailureKind{abi.FailureTrap}, Directive: Stop},
		Rule{Reason: "bad row *", Type: "gate?ay", Directive: Resume},
	)
	for _, c := range []struct {
		typ  string
		kind abi.FailureKind
		want Directive
	}{{"x", abi.FailureTrap, Stop}, {"gateway", abi.FailureGuestPanic, Resume}, {"getaway", abi.FailureGuestPanic, Escalate}, {"x", abi.FailureFuel, Escalate}} {
		if got := s.Decide(c.typ, failure(c.kind)); got != c.want {
			t.Errorf("%s %v: %v, want %v", c.typ, c.kind, got, c.want)
		}
	}
	if got := s.WithOtherwise(Restart).Decide("x", failure(abi.FailureFuel)); got != Restart {
		t.Errorf("otherwise: %v", got)
	}
	if got := Stopping().Decide("x", failure(abi.FailureTrap)); got != Stop {
		t.Errorf("D09: %v", got)
	}
}

// Semantics 3.3: the table and its worked rows.
func TestC_3_3_Window(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		within time.Duration
		at     []int
		stops  int // index of the failure that is refused, -1 for none
	}{
		{"N = 0", 0, 0, []int{0}, 0},
		{"N = 0 in a window", 0, time.Second, []int{0}, 0},
		{"lifetime", 2, 0, []int{0, 1_000_000, 2_000_000}, 2},
		{"inside", 3, time.Second, []int{0, 100, 200, 300}, 3},
		{"re-opened", 3, time.Second, []int{0, 400, 800, 1200, 1300, 1400}, -1},
		{"across a boundary", 3, time.Second, []int{0, 998, 999, 1001, 1002, 1003, 1004}, 6},
		{"N < 0 in a window", -1, time.Second, []int{0, 1001, 1500}, 2},
		{"unlimited", -1, 0, []int{0, 0, 0, 0, 0, 0}, -1},
	} {
		s := Default().WithMaxRestarts(c.n, c.within)
		var child Child
		for i, ms := range c.at {
			d := s.Failed(&child, &Group{}, Transient, "t", failure(abi.FailureTrap), at(ms), rnd)
			want := Restart
			if i == c.stops {
				want = Stop
			}
			if d.Directive != want {
				t.Errorf("%s: failure %d at %d ms: %v, want %v", c.name, i, ms, d.Directive, want)
			}
			if i == c.stops {
				break
			}
		}
	}
}

// A sliding window never lets more than n restarts into any stretch of its length.
func TestSlidingWindowNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		s := Default().WithMaxRestarts(n, time.Second).WithSliding(true)
		var child Child
		var allowed []int
		now := 0
		for range 50 {
			now += rapid.IntRange(0, 600).Draw(t, "gap")
			if s.Permit(&child, at(now)) {
				allowed = append(allowed, now)
			} else {
				recent := 0
				for _, a := range allowed {
					if now-a <= 1000 {
						recent++
					}
				}
				if recent < n {
					t.Fatalf("refused at %d with %d of %d", now, recent, n)
				}
			}
		}
		for i := n; i < len(allowed); i++ {
			if allowed[i]-allowed[i-n] <= 1000 {
				t.Fatalf("%d restarts from %d to %d", n+1, allowed[i-n], allowed[i])
			}
		}
	})
}

func delays(t *testing.T, b Backoff) Strategy {
	t.Helper()
	p, err := backoff.Spec{Min: 200 * time.Millisecond, Max: 10 * time.Second}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	b.Policy = p
	return Default().WithBackoff(b)
}

// Crashes are counted; a start that succeeds resets nothing, a stable life does.
func TestBackoffResets(t *testing.T) {
	s := delays(t, Backoff{ResetAfter: time.Second})
	var c Child
	for i, step := range []struct {
		started, failed int
		want            time.Duration
	}{{0, 1, 200}, {300, 301, 400}, {800, 900, 800}, {2000, 2999, 1600}, {5000, 6000, 200}, {7000, 7001, 400}} {
		c.Started(at(step.started))
		d := s.Failed(&c, &Group{}, Transient, "t", failure(abi.FailureTrap), at(step.failed), rnd)
		if d.Delay != step.want*time.Millisecond {
			t.Errorf("failure %d: %v, want %v ms", i, d.Delay, step.want)
		}
	}
	if c.Total() != 6 {
		t.Errorf("%d failures in all", c.Total())
	}
	never := delays(t, Backoff{Reset: ResetNever})
	var k Child
	for i := range 4 {
		k.Started(at(i * 1_000_000))
		if d := never.Failed(&k, &Group{}, Transient, "t", failure(abi.FailureTrap), at(i*1_000_000+999_000), rnd); d.Delay != 200*time.Millisecond<<i {
			t.Errorf("never, failure %d: %v", i, d.Delay)
		}
	}
}

func TestBackoffGivesUp(t *testing.T) {
	for up, want := range map[GiveUp]Directive{GiveUpStop: Stop, GiveUpEscalate: Escalate} {
		s := delays(t, Backoff{Reset: ResetNever, MaxFailures: 2, GiveUp: up})
		var c Child
		for i := range 3 {
			d := s.Failed(&c, &Group{}, Transient, "t", failure(abi.FailureTrap), at(i), rnd)
			if i < 2 && d.Directive != Restart || i == 2 && (d.Directive != want || d.Refused == "") {
				t.Errorf("%v: failure %d: %+v", up, i, d)
			}
		}
	}
}

// Resume, Stop and Escalate consume no restarts.
func TestC_3_3_OnlyRestartsCount(t *testing.T) {
	s := Default().WithMaxRestarts(1, 0).WithRules(Rule{Kinds: []abi.FailureKind{abi.FailureFuel}, Directive: Resume}).WithOtherwise(Restart)
	var c Child
	for i := range 5 {
		if d := s.Failed(&c, &Group{}, Transient, "t", failure(abi.FailureFuel), at(i), rnd); d.Directive != Resume {
			t.Fatal(d)
		}
	}
	if d := s.Failed(&c, &Group{}, Transient, "t", failure(abi.FailureTrap), at(9), rnd); d.Directive != Restart {
		t.Error(d)
	}
}

func TestNamesParse(t *testing.T) {
	for _, d := range Directives() {
		if got, ok := ParseDirective(d.String()); !ok || got != d {
			t.Errorf("%v", d)
		}
	}
	for _, name := range Kinds() {
		if k, ok := ParseKind(name); !ok || k.String() != name {
			t.Errorf("%v", name)
		}
	}
	if _, ok := ParseDirective("none"); ok {
		t.Error("none is a directive")
	}
}
