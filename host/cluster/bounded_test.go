package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// measured is a log that counts what it takes, and says how full it is.
type measured struct {
	cluster.Log
	used, most uint64
	calls      int
}

func (m *measured) Size() (used, most uint64) { return m.used, m.most }

func (m *measured) Append(_ string, _ int, _ uint64, _ string, record []byte, done func(uint64, error)) {
	m.calls++
	m.used += uint64(len(record))
	done(uint64(m.calls), nil)
}

func (m *measured) Spare(_ string, _ int, _ uint64, _ string, _ []byte, done func(uint64, error)) {
	m.calls++
	done(uint64(m.calls), nil)
}

// A log has no more than its bundle says, and gives room beyond; what the keepers give it is never more for that.
func TestABoundedLog(t *testing.T) {
	log := &measured{most: 2 << 30}
	if cluster.Bounded(log, 0) != cluster.Log(log) {
		t.Error("a log without a bound is another one")
	}
	b := cluster.Bounded(log, cluster.LeastLog)
	add := func() error {
		c := make(chan error, 1)
		b.Append("carts", 0, 1, "ann", make([]byte, 1<<20-16<<10), func(_ uint64, err error) { c <- err })
		return <-c
	}
	for range 1000 {
		if err := add(); err != nil {
			break
		}
	}
	err := add()
	if full := uint64(cluster.LeastLog - cluster.LeastLog/8); log.used <= full || log.used > full+1<<20 || !errors.Is(err, cluster.ErrFull) || !strings.Contains(err.Error(), "cluster.journal.size") {
		t.Errorf("%d bytes: %v", log.used, err)
	}
	calls := log.calls
	b.Spare("carts", 0, 1, "ann", nil, func(_ uint64, err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if log.calls != calls+1 {
		t.Error("what gives room is not taken")
	}
	log.used = 0
	if err := add(); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
	size := b.(interface{ Size() (used, most uint64) }).Size
	if _, most := size(); most != cluster.LeastLog {
		t.Errorf("%d bytes", most)
	}
	log.most = 1 << 20
	if _, most := size(); most != 1<<20 {
		t.Errorf("more than the keepers give: %d bytes", most)
	}
}
