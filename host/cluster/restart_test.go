package cluster_test

import (
	"errors"
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

// lifeBefore puts the entry of a node's life before into the directory, as its crash has left it.
func (w *net) lifeBefore(number uint16, id uint64, name string) (renew func(renewed *bool)) {
	w.t.Helper()
	m := w.Machine(func() uint16 { return 1000 + number })
	entry := cluster.Member{Number: number, ID: id, Name: name, Oldest: 1, Newest: 2}
	at := uint64(0)
	put := func(renewed *bool) {
		b, err := cbor.Marshal(entry)
		if err != nil {
			w.t.Fatal(err)
		}
		m.Put(fmt.Sprint("node.", number), b, at, func(now uint64, err error) {
			if err == nil {
				at, *renewed = now, true
			}
		})
		entry.Beat++
	}
	put(new(bool))
	w.pass(100 * time.Millisecond)
	entry.Born = at
	return put
}

// A node that knows that its last life is over ends it at once, and has another number long before its lease is over. All others see it gone.
// The life of another start, or of another node, is left alone.
func TestTheLastLifeIsOver(t *testing.T) {
	for _, c := range []struct {
		what  string
		over  uint64
		quick bool
	}{{"it is known", 100, true}, {"nothing is known", 0, false}, {"another life is known", 99, false}, {"the life of another node is known", 101, false}} {
		w := &net{World: clustertest.New(1), t: t}
		w.lifeBefore(1, 100, "n0")
		w.lifeBefore(2, 101, "other")
		gone := map[uint64]bool{}
		w.Changed(func(_ *clustertest.Machine, _, now cluster.Entry) {
			if x, err := cluster.DecodeMember(now); err == nil && x.Gone {
				gone[x.ID] = true
			}
		})
		w.start(1, time.Second, func(cfg *cluster.Config) { cfg.Over = c.over })
		quick := w.members[0].self.Number != 0
		if quick != c.quick {
			t.Errorf("%s: it has joined at once: %v", c.what, quick)
		}
		if gone[100] != c.quick || gone[101] {
			t.Errorf("%s: these lives were ended: %v", c.what, gone)
		}
		w.pass(8 * time.Second)
		if m := w.members[0]; m.self.Number == 0 || m.lost != nil {
			t.Errorf("%s: it has not joined in the end: %v", c.what, m.lost)
		}
	}
}

// A life that renews its lease is not over, whatever the node was told: it keeps its number, and the node is refused. If its end is first, its
// renewal is refused, so that it knows.
func TestALifeThatRenewsIsNotOver(t *testing.T) {
	first := map[bool]int{}
	for after := time.Duration(0); after < 520*time.Millisecond; after += 250 * time.Microsecond {
		if after == 5*time.Millisecond {
			after = 490 * time.Millisecond
		}
		w := &net{World: clustertest.New(1), t: t}
		renew := w.lifeBefore(1, 100, "n0")
		var refused error
		m := w.ExactMachine(func() uint16 { return 0 })
		gone, renewed := false, false
		w.Changed(func(_ *clustertest.Machine, _, now cluster.Entry) {
			if x, err := cluster.DecodeMember(now); err == nil && x.ID == 100 {
				gone = x.Gone
			}
		})
		n, err := cluster.New(cluster.Config{Name: "n0", ID: 1, Over: 100, Directory: m, Links: m, Clock: m, Since: m.Since})
		if err != nil {
			t.Fatal(err)
		}
		n.Join(func(_ cluster.Member, err error) { refused = err })
		w.pass(after)
		renew(&renewed)
		w.pass(time.Second)
		first[renewed]++
		if gone == renewed || renewed != errors.Is(refused, cluster.ErrName) {
			t.Errorf("after %v: it has renewed: %v, it has lost its number: %v; the node is told: %v", after, renewed, gone, refused)
		}
	}
	if first[true] < 20 || first[false] < 20 {
		t.Errorf("%d renewals were first, %d ends", first[true], first[false])
	}
}
