package cluster_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// A cluster of 1000 nodes, of which 20 are real and the others are entries of the directory: a change is seen by all within two seconds,
// and what the directory has of them is less than a megabyte.
func TestTheViewOfAThousandNodes(t *testing.T) {
	const nodes, real = 1000, 20
	w := join(t, real, nil)
	size := 0
	put := func(m cluster.Member, revision uint64) {
		b, err := cbor.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		size += len(b)
		w.members[0].machine.Put(fmt.Sprint("node.", m.Number), b, revision, func(_ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	heap := func() uint64 {
		var m runtime.MemStats
		for range 2 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	certificate := make([]byte, 600)
	for i := real + 1; i <= nodes; i++ {
		put(cluster.Member{Number: uint16(i), ID: uint64(i), Name: fmt.Sprint("node-", i), Roles: []string{"back"}, Zone: "zone-a", Oldest: 1, Newest: 1, Identity: certificate}, 0)
	}
	w.pass(2 * time.Second)
	for _, m := range w.members {
		if n := len(m.Members()); n != nodes {
			t.Errorf("node %d sees %d nodes", m.self.Number, n)
		}
	}
	each := (float64(heap()) - float64(before)) / real
	t.Logf("%d entries of %d bytes in all; a node's view takes %.0f KiB, the directory's own copy shared among %d", nodes-real, size, each/1024, real)
	if size > 1<<20 || each > 4<<20 {
		t.Errorf("the entries have %d bytes, the view of a node %.0f", size, each)
	}
	last, ok := w.members[1].Member(nodes)
	if !ok {
		t.Fatal("the last node is not there")
	}
	gone := last.Evicted()
	w.members[0].machine.Put(gone.Key, gone.Value, gone.Revision, func(_ uint64, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	w.pass(2 * time.Second)
	for _, m := range w.members {
		if _, ok := m.Member(nodes); ok {
			t.Errorf("node %d still sees the one that has gone", m.self.Number)
		}
	}
	runtime.KeepAlive(w)
}
