package debug_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/debug"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/runtime"
)

// burners spend all fuel of a turn, and write to much of their memory.
func burners(t testing.TB) map[string]func(e *runtime.Engine, fuel uint64) *blackbox.File {
	return map[string]func(e *runtime.Engine, fuel uint64) *blackbox.File{
		"wat": func(e *runtime.Engine, fuel uint64) *blackbox.File {
			return crashAt(t, e, must(os.ReadFile("testdata/burner.wasm"))(t), "burner", fuel, 1, 1)
		},
		"go": func(e *runtime.Engine, fuel uint64) *blackbox.File {
			return crashAt(t, e, must(shopCode())(t), "burner", fuel, 1, 1)
		},
	}
}

// To go back repeats little of a long turn, wherever that is: its fuel is counted, by a clock that goes with it. So it does where checkpoints
// have to be dropped, and they stay within their bound then.
func TestBackRepeatsLittle(t *testing.T) {
	fuel, rounds := thorough.SlowOf[uint64](40_000_000, 100_000_000), thorough.SlowOf(4, 15)
	e := engine(t, false)
	for name, make := range burners(t) {
		for _, most := range []int{0, 48 << 20} {
			t.Run(fmt.Sprintf("%s within %d MiB", name, most>>20), func(t *testing.T) {
				d := must(debug.OpenByFuel(context.Background(), e, make(e, fuel), most))(t)
				defer d.Close()
				if end := d.At(); end.Fuel < fuel*9/10 {
					t.Fatalf("the turn ends at %v", end)
				}
				// Each step back needs two ways: to the places before, and to the one that was found.
				bound := 4 * uint64(debug.Spacing)
				if most > 0 {
					bound *= 4
				}
				rng := rand.New(rand.NewPCG(5, 6))
				worst := uint64(0)
				for range rounds {
					do(t, d, fmt.Sprintf("goto :%d", 1_000_000+rng.Uint64N(fuel*9/10)))
					for range 3 {
						from, at := d.Spent(), d.At()
						do(t, d, fmt.Sprint("back ", 1+rng.IntN(5)))
						if !before(d.At(), at) {
							t.Fatalf("it has gone from %v to %v", at, d.At())
						}
						worst = max(worst, d.Spent()-from)
					}
				}
				n, bytes := d.Checkpoints()
				t.Logf("at most %d units of fuel are repeated; %d checkpoints take %d KiB", worst, n, bytes>>10)
				if worst > bound {
					t.Errorf("%d units of fuel are repeated, more than %d", worst, bound)
				}
				if most > 0 && bytes > most {
					t.Errorf("the checkpoints take %d bytes", bytes)
				}
				if most == 0 && n < int(fuel)/int(2*debug.Spacing) {
					t.Errorf("%d checkpoints", n)
				}
			})
		}
	}
}

func before(p, q debug.Place) bool {
	return p.Turn < q.Turn || p.Turn == q.Turn && (q.End || p.Fuel < q.Fuel)
}

// BenchmarkBack goes one place back, from places at random in a turn of 1000 million units of fuel. max-ms is the longest step.
func BenchmarkBack(b *testing.B) {
	for name, make := range burners(b) {
		b.Run(name, func(b *testing.B) {
			e := engine(b, false)
			d := must(debug.Open(context.Background(), e, make(e, 1_000_000_000), replay.Options{}))(b)
			defer d.Close()
			rng := rand.New(rand.NewPCG(7, 8))
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				do(b, d, fmt.Sprintf("goto :%d", 1_000_000+rng.Uint64N(990_000_000)))
				b.StartTimer()
				begun := time.Now()
				do(b, d, "back")
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
			b.ReportMetric(ms(took[len(took)/2]), "median-ms")
			b.ReportMetric(ms(took[len(took)-1]), "max-ms")
			n, bytes := d.Checkpoints()
			b.ReportMetric(float64(n), "checkpoints")
			b.ReportMetric(float64(bytes>>20), "MiB")
		})
	}
}
