package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// eraser has keys erased while all else goes on. What was erased does not come back, and nothing else goes.
type eraser struct {
	*sim
	era  map[string]int      // by key: erasures that have begun or ended
	gone map[string][]uint64 // by key: numbers that were confirmed before an erasure that was confirmed
}

// act has a key erased by the owner of its shard, if it knows of it.
func (x *eraser) act() {
	if x.dice.IntN(3) > 0 {
		return
	}
	key := fmt.Sprint("k", x.dice.IntN(simKeys))
	for _, l := range x.running() {
		l.journal.mu.Lock()
		p := l.journal.kinds["carts"].shards[shard.Of(key, simShards)]
		served := p != nil && p.served
		l.journal.mu.Unlock()
		if served {
			x.erase(l, key)
			return
		}
	}
}

func (x *eraser) erase(l *life, key string) {
	was := x.acked[key]
	x.era[key]++
	x.acked[key] = nil // until it is known what has come of it
	l.journal.Erase("carts", key, time.Duration(x.dice.IntN(1500))*time.Millisecond, func(err error) {
		x.era[key]++
		switch {
		case err == nil:
			x.stats["erased"]++
			x.gone[key] = append(x.gone[key], was...)
		case errors.Is(err, ErrLives), errors.Is(err, ErrNothing), errors.Is(err, errBusy):
			x.stats["not erased"]++
			x.acked[key] = was
		default:
			x.stats["perhaps erased"]++
		}
	})
}

// read checks what was read of a key: nothing twice, nothing that was erased before it was asked for, and all that was confirmed by then and
// cannot have been erased.
func (x *eraser) read(q *question, has []uint64) {
	seen := map[uint64]bool{}
	for _, n := range has {
		if seen[n] {
			x.failf("key %s has %d twice", q.key, n)
		}
		seen[n] = true
	}
	if x.early {
		return
	}
	for _, n := range q.gone {
		if seen[n] {
			x.failf("key %s has %d again, which was erased: %v", q.key, n, has)
		}
	}
	for _, n := range q.before {
		if !seen[n] && slices.Contains(x.acked[q.key], n) {
			x.failf("key %s has lost %d, which was confirmed and not erased: %v", q.key, n, has)
		}
	}
}

// erasures is a run in which keys are erased.
func erasures(seed uint64, stats map[string]int, b broken) string {
	s := newSim(seed, stats, b)
	s.early, s.dice = false, rand.New(rand.NewPCG(seed, 13))
	s.eraser = &eraser{sim: s, era: map[string]int{}, gone: map[string][]uint64{}}
	return s.run()
}

// TestSimulationOfErasures is TestSimulation with keys that are erased.
func TestSimulationOfErasures(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = thorough.SlowOf(20, 60)
		if race.Enabled || testing.Short() {
			n = 12
		}
	}
	stats := map[string]int{}
	for i := range uint64(n) {
		if why := erasures(*first+i, stats, broken{}); why != "" {
			t.Error(why)
			break
		}
	}
	for _, k := range []string{"stored", "read", "erased", "not erased", "perhaps erased"} {
		if t.Logf("%s: %d", k, stats[k]); stats[k] == 0 && n >= 20 {
			t.Errorf("%s: never", k)
		}
	}
}
