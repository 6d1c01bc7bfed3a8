//go:build !wasip1

package actor

import (
	"testing"
)

// An answer to a question of one incarnation has the number of no question of another one.
func TestIncarnationsNumberTheirQuestionsApart(t *testing.T) {
	f := begun(t)
	seen := map[uint64]uint64{}
	for incarnation := range uint64(5) {
		f.startWith(t, incarnation)
		for range 100 {
			ctx.asks.add(nil)
			if before, there := seen[ctx.asks.last]; there {
				t.Fatalf("incarnations %d and %d have a question %d", before, incarnation, ctx.asks.last)
			}
			seen[ctx.asks.last] = incarnation
		}
	}
}
