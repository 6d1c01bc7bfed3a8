package clustertest

import (
	"testing"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// The log of a simulation is what a journal needs.
func TestLogContract(t *testing.T) {
	w := New(1)
	m := w.Machine(func() uint16 { return 1 })
	LogContract(t, []cluster.Log{m.Log(), w.Machine(func() uint16 { return 2 }).Log()}, func(done func() bool) bool {
		for range 100_000 {
			if done() {
				return true
			}
			w.Clock.AdvanceToNext()
		}
		return false
	})
}
