package natscluster

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
)

// journalsOf opens the log of a bundle on all nodes.
func journalsOf(t *testing.T, all []*Cluster, bundle string) (logs []cluster.Log) {
	t.Helper()
	for _, c := range all {
		j, err := c.Journal(within(t, 30*time.Second), bundle)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, j)
	}
	return logs
}

// The journal of one keeper, from it and from a node that keeps nothing.
func TestJournalOfOneKeeper(t *testing.T) {
	all := opened(t, founded(t, 1, 3), &events{})
	clustertest.LogContract(t, journalsOf(t, all[:2], "shop.1"), eventually)
	clustertest.LogContract(t, journalsOf(t, all[1:], "shop.2"), eventually)
}

// The journal of three keepers: a fence of one is known to the others, and copies that are behind are not read.
func TestJournalOfThreeKeepers(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers")
	}
	clustertest.LogContract(t, journalsOf(t, opened(t, founded(t, 3, 3), &events{}), "shop.1"), eventually)
}

// Bundles have journals of their own.
func TestJournalsOfBundles(t *testing.T) {
	all := opened(t, founded(t, 1, 1), &events{})
	clustertest.LogContract(t, journalsOf(t, all, "a"), eventually)
	clustertest.LogContract(t, journalsOf(t, all, "b"), eventually)
}

// A log that has no room but for what replaces records takes no others.
func TestAJournalThatIsFull(t *testing.T) {
	j := journalsOf(t, opened(t, founded(t, 1, 1), &events{}), "shop")[0].(*Journal)
	j.full.Store(true)
	j.looked.Store(time.Now().Add(time.Hour).UnixNano())
	got := make(chan error, 1)
	j.Append("k", 1, 0, "ann", []byte("x"), func(_ uint64, err error) { got <- err })
	if err := <-got; err != cluster.ErrFull {
		t.Errorf("a record: %v", err)
	}
	j.Fence("k", 1, []byte("x"), 0, func(_ uint64, err error) { got <- err })
	if err := <-got; err != nil {
		t.Errorf("a fence: %v", err)
	}
	j.Spare("k", 1, 2, "ann", []byte("x"), func(_ uint64, err error) { got <- err })
	if err := <-got; err != nil {
		t.Errorf("a record that gives room: %v", err)
	}
	j.Spare("k", 1, 2, "ann", make([]byte, cluster.MaxSpare+1), func(_ uint64, err error) { got <- err })
	if err := <-got; err == nil {
		t.Error("a record that gives room may have any size")
	}
	j.looked.Store(0)
	j.Append("k", 1, 0, "ann", []byte("x"), func(_ uint64, err error) { got <- err })
	if err := <-got; err != cluster.ErrFull && err != cluster.ErrFenced { // the answer may be there already: then the record is one too late
		t.Errorf("a record, while it is asked how much room there is: %v", err)
	}
	if !eventually(func() bool { return !j.full.Load() }) {
		t.Error("a log that has room again is full for ever")
	}
}

// A keeper's log, and that of a node that asks it, say how full it is.
func TestJournalsSayHowFullTheyAre(t *testing.T) {
	for i, l := range journalsOf(t, opened(t, founded(t, 1, 2), &events{}), "shop") {
		if i == 0 {
			written(t, l)
		}
		s := l.(interface{ Size() (used, most uint64) })
		if !eventually(func() bool { used, most := s.Size(); return used > 100 && most == maxJournal }) {
			used, most := s.Size()
			t.Errorf("node %d: %d of %d bytes", i, used, most)
		}
	}
}
