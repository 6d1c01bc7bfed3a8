package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
)

// All nodes have crashed at once, and come back together under the same names: each has a number again when the leases of before are over, and
// keeps it, whatever the others write into the entries of before.
func TestAllNodesComeBackAtOnce(t *testing.T) {
	w := &net{World: clustertest.New(1), t: t}
	first := w.Machine(func() uint16 { return 1000 })
	for i := range 3 {
		b, err := cbor.Marshal(cluster.Member{Number: uint16(i + 1), ID: uint64(i + 100), Name: fmt.Sprint("n", i), Beat: 9, Oldest: 1, Newest: 2})
		if err != nil {
			t.Fatal(err)
		}
		first.Put(fmt.Sprint("node.", i+1), b, 0, func(_ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	w.pass(time.Second)
	w.start(3, 400*time.Millisecond, func(c *cluster.Config) { c.Brief = cluster.DefaultLease / 2 })
	w.pass(6 * time.Second)
	for _, m := range w.members {
		if m.self.Number < 4 || m.lost != nil {
			t.Errorf("%s is node %d: %v", m.self.Name, m.self.Number, m.lost)
		}
	}
	w.pass(30 * time.Second)
	for _, m := range w.members {
		if len(m.Members()) != 3 || m.lost != nil {
			t.Errorf("%s sees %d members: %v", m.self.Name, len(m.Members()), m.lost)
		}
	}
}
