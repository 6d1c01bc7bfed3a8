package journal

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// A key that keeps a large state again and again, without a pause, has no more in the log than can be read: it is written anew in between, however
// fast it is, and its next owner goes on from what it was.
func TestAKeyThatStoresWithoutAPause(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	defer s.close()
	s.states, s.early, s.large = true, false, 600<<10
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	n, most := thorough.SlowOf(120, 300), 0
	for i := range n {
		s.number = uint64(i)
		if s.ask(l, "k0", uint64(i+1)) == nil {
			t.Fatal("it cannot be asked")
		}
		if i%20 == 19 {
			for range 400 {
				s.pass(time.Millisecond)
				bytes := 0
				for _, e := range s.LogOf("carts", "k0") {
					bytes += len(e.Record)
				}
				most = max(most, bytes)
			}
		}
	}
	s.pass(5 * time.Second)
	t.Logf("at most %d bytes in the log, %v", most, s.stats)
	if most > cluster.MaxRead/2 || s.failure != "" {
		t.Errorf("%d bytes, %s", most, s.failure)
	}
	s.pass(10 * time.Second) // it ends
	if has, err := s.atLast(l, "k0"); err != nil || len(has) != n {
		t.Errorf("%d numbers, %v", len(has), err)
	}
}

// unsteady is a log of which some of what replaces records is lost, or done without a word.
type unsteady struct {
	cluster.Log
	n int
}

func (x *unsteady) Replace(kind, name string, record []byte, after uint64, done func(uint64, error)) {
	switch x.n++; x.n % 3 {
	case 0:
		x.Log.Replace(kind, name, record, after, done)
	case 1:
		done(0, errors.New("no answer"))
	default:
		x.Log.Replace(kind, name, record, after, func(uint64, error) { done(0, errors.New("no answer")) })
	}
}

// The same where it is not known what has become of it, while the shard is released in between, and while the log is full.
func TestAKeyThatStoresWithoutAPauseAndTheLogFails(t *testing.T) {
	s := newSim(1, map[string]int{}, broken{})
	defer s.close()
	s.states, s.early, s.large = true, false, 600<<10
	s.start()
	s.pass(3 * time.Second)
	l := s.running()[0]
	l.journal.opt.Log = &unsteady{Log: l.journal.opt.Log}
	for i := range 90 {
		if s.ask(l, "k0", uint64(i+1)) == nil {
			t.Fatal("it cannot be asked")
		}
		if i%10 == 9 {
			s.FillLog(i%30 == 19)
			s.pass(2 * time.Second) // a key that has failed begins again
			for range 100 {
				s.pass(time.Millisecond)
				bytes := 0
				for _, e := range s.LogOf("carts", "k0") {
					bytes += len(e.Record)
				}
				if bytes > cluster.MaxRead/2+cluster.MaxRecord {
					t.Fatalf("%d bytes", bytes)
				}
			}
		}
		if i == 45 {
			l.journal.Release("carts", shard.Of("k0", simShards))
			l.journal.Serve("carts", shard.Of("k0", simShards), l.journal.kinds["carts"].shards[shard.Of("k0", simShards)].epoch, 0)
		}
	}
	s.FillLog(false)
	s.pass(20 * time.Second)
	has, err := s.atLast(l, "k0")
	t.Logf("%d numbers, %v", len(has), s.stats)
	if err != nil || len(has) < s.stats["stored"] || s.stats["stored"] < 30 || s.failure != "" || l.journal.Figures().Waiting != 0 {
		t.Errorf("%v, %s, %+v", err, s.failure, l.journal.Figures())
	}
}

// TestSimulationOfStates with states that are so large that turns wait for room, over all faults.
func TestSimulationOfLargeStates(t *testing.T) {
	n := uint64(max(*seeds, thorough.SlowOf(3, 20)))
	if race.Enabled || testing.Short() {
		n = 1
	}
	stats := map[string]int{}
	for i := range n {
		s := newSim(*first+i, stats, broken{})
		s.states, s.large = true, 700<<10
		if why := s.run(); why != "" {
			t.Fatal(why)
		}
	}
	t.Log(stats["stored"], stats["read"], stats["written anew"], stats["behind"])
	if stats["stored"] == 0 || stats["behind"] == 0 {
		t.Errorf("%v, %d have waited", stats, stats["behind"])
	}
}
