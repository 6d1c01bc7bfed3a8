package journal

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// keepers is a run of keys that keep their latest state.
func keepers(seed uint64, stats map[string]int, b broken) string {
	s := newSim(seed, stats, b)
	s.states = true
	return s.run()
}

// TestSimulationOfStates is TestSimulation of keys that keep their latest state: what was confirmed is in it, once, whoever owns the key.
func TestSimulationOfStates(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = thorough.SlowOf(20, 60)
		if race.Enabled || testing.Short() {
			n = 12
		}
	}
	stats := map[string]int{}
	for i := range uint64(n) {
		if why := keepers(*first+i, stats, broken{}); why != "" {
			t.Error(why)
			break
		}
	}
	for _, k := range []string{"stored", "read", "written anew", "loaded"} {
		if t.Logf("%s: %d", k, stats[k]); stats[k] == 0 {
			t.Errorf("%s: never", k)
		}
	}
}

// However often keys keep their state, the log has a few records of each, and one when there is nothing any more.
func TestKeptStatesAreGivenBack(t *testing.T) {
	n := uint64(thorough.SlowOf(2000, 100_000))
	if race.Enabled || testing.Short() {
		n = 300
	}
	s := newSim(1, map[string]int{}, broken{})
	defer s.close()
	s.states, s.early, s.small = true, false, true
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	most := 0
	for i := range n {
		s.number = i % 7 // what there is does not grow
		if s.ask(l, fmt.Sprint("k", i%simKeys), 1+i%7) == nil {
			t.Fatal("it cannot be asked")
		}
		s.settle()
		if i%8 == 7 {
			s.pass(20 * time.Millisecond)
		}
		if i%100 == 99 {
			for k := range simKeys {
				bytes := 0
				for _, e := range s.LogOf("carts", fmt.Sprint("k", k)) {
					bytes += len(e.Record)
				}
				most = max(most, bytes)
			}
		}
	}
	s.pass(time.Second)
	t.Logf("%d states: a key has at most %d bytes in the log", n, most)
	if s.failure != "" || s.stats["stored"] != int(n) || most > 16<<10 {
		t.Errorf("%s, %v, %d bytes", s.failure, s.stats, most)
	}
	for k := range simKeys { // of an empty state nothing is kept
		s.ask(l, fmt.Sprint("k", k), empties)
	}
	s.pass(time.Second)
	for k := range simKeys {
		list := s.LogOf("carts", fmt.Sprint("k", k))
		if len(list) != 1 || len(list[0].Record) > 64 {
			t.Errorf("key %d has %d records, the first of %d bytes", k, len(list), len(list[0].Record))
		}
	}
}
