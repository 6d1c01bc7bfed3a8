package testkit

import (
	"flag"
	"runtime"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/simulate"
)

var (
	oneSeed   = flag.Uint64("simulate.seed", 0, "testkit.Simulate: only this seed")
	mostSeeds = flag.Int("simulate.seeds", 0, "testkit.Simulate: so many seeds")
)

// DefaultSeeds is how many seeds Simulate tries, if nothing else is said.
const DefaultSeeds = 100

// SimulateOption changes a simulation.
type SimulateOption func(*simulating)

type simulating struct {
	on      []simulate.Class
	seeds   int
	options simulate.WorldOptions
	err     error
}

// Seeds sets how many seeds are tried, from 1. The flag -simulate.seeds takes precedence.
func Seeds(n int) SimulateOption { return func(s *simulating) { s.seeds = n } }

// Faults chooses classes of faults, such as "all", "none", "crash,drop" or "all,-clock"; see simulate.ParseFaults.
func Faults(text string) SimulateOption {
	return func(s *simulating) { s.on, s.err = simulate.ParseFaults(text) }
}

// Spared says which classes do not apply to which actors.
func Spared(f func(c simulate.Class, path string) bool) SimulateOption {
	return func(s *simulating) { s.options.Places.Spared = f }
}

// Lossy says to which actors messages may come twice, and in another order.
func Lossy(f func(path string) bool) SimulateOption {
	return func(s *simulating) { s.options.Places.Lossy = f }
}

// Simulated changes the configuration of the systems: limits, everything that does not concern time, seed, order and mailboxes.
func Simulated(change func(host.Config) host.Config) SimulateOption {
	return func(s *simulating) { s.options.Config = change }
}

// Simulate runs body under many seeds, each in a system of its own under faults that the seed chooses. It fails the test at the
// first seed whose run violates something, with a case that was made smaller. body is called by several goroutines at a time,
// also while a case is made smaller, so it shares nothing.
func Simulate(t testing.TB, body simulate.Body, opts ...SimulateOption) {
	t.Helper()
	s := simulating{on: simulate.Classes(), seeds: DefaultSeeds}
	for _, f := range opts {
		f(&s)
	}
	sweep := simulate.Sweeping{From: 1, Seeds: s.seeds, Jobs: runtime.GOMAXPROCS(0), Again: 32}
	if *mostSeeds > 0 {
		sweep.Seeds = *mostSeeds
	}
	if *oneSeed > 0 {
		sweep.From, sweep.Seeds = *oneSeed, 1
	}
	if s.err != nil {
		t.Fatalf("testkit: %v", s.err)
	}
	sweep.Plan = func(seed uint64) simulate.Plan { return simulate.NewPlan(seed, s.on) }
	player := simulate.Bodies{Body: body, Options: s.options}
	var failed *simulate.Outcome
	err := simulate.Sweep(t.Context(), sweep, func() (simulate.Player, error) { return player, nil }, func(o *simulate.Outcome) bool {
		if o.Failed() {
			failed = o
		}
		return failed == nil
	})
	switch {
	case err != nil:
		t.Fatalf("testkit: %v", err)
	case failed == nil:
		return
	case failed.Err != nil:
		t.Fatalf("testkit: seed %d: %v\n  repeat: go test -run '^%s$' -simulate.seed %d\n%s", failed.Plan.Seed, failed.Err, t.Name(), failed.Plan.Seed, indented(failed.Tail))
	}
	small := simulate.Shrink(t.Context(), player, failed, simulate.DefaultShrinking)
	v := small.Violation
	t.Fatalf("testkit: seed %d: %s: %s, %v after the beginning\n  repeat: go test -run '^%s$' -simulate.seed %d (host %s)\n  shrunk from %d faults and %d messages to %d and %d\n%s",
		failed.Plan.Seed, v.Rule, v.What, v.At, t.Name(), failed.Plan.Seed, failed.Plan.Host, len(failed.Faults), failed.Messages,
		len(small.Faults), small.Messages-min(small.Messages, uint64(len(small.Plan.Skip))), indented(small.Tail))
}

func indented(lines []string) string { return "    " + strings.Join(lines, "\n    ") }
