package clustertest

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
)

func TestContract(t *testing.T) {
	var w *World
	Contract(t, func(t *testing.T, n int) (all []End) {
		w = New(1)
		for i := range n {
			m := w.Machine(func() uint16 { return uint16(i + 1) })
			all = append(all, End{m, m, cluster.Member{Number: uint16(i + 1)}})
		}
		return all
	}, func(done func() bool) bool {
		for range 10_000 {
			if done() {
				return true
			}
			w.Clock.Advance(time.Millisecond)
		}
		return done()
	})
}
