package rewrite

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
)

// shapes are functions of testdata/shapes.wat, built by wat2wasm, that do not
// trap; twice is imported.
var shapes = []string{"nested", "params", "values", "table", "returns", "dead", "calls", "recur", "mutual", "around", "twice", "bulk"}

func (h *host) twice(t *testing.T, calls *int) {
	t.Helper()
	_, err := h.runtime.NewHostModuleBuilder("test").NewFunctionBuilder().WithFunc(func(n uint32) uint32 {
		*calls++
		return 2 * n
	}).Export("twice").Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
}

// TestShapes: a module computes the same before and after it is rewritten, and
// spends the same fuel on both engines, whatever the quantum is.
func TestShapes(t *testing.T) {
	ctx := context.Background()
	raw, err := os.ReadFile("testdata/shapes.wasm")
	if err != nil {
		t.Fatal(err)
	}
	res := instrument(t, read(t, "testdata/shapes.wasm"), Options{})
	type key struct {
		shape int
		n     uint64
	}
	fuel := map[key]int64{}
	for engine, cfg := range engines() {
		var plainCalls, meteredCalls int
		plain := newHost(t, cfg)
		plain.twice(t, &plainCalls)
		mod, err := plain.runtime.Instantiate(ctx, raw)
		if err != nil {
			t.Fatal(err)
		}
		turn := mod.ExportedFunction("wasmactors_turn")
		h := newHost(t, cfg)
		h.twice(t, &meteredCalls)
		x := h.instantiate(t, res.Module)
		for _, quantum := range []int64{1, 50, 1_000_000_000} {
			for shape, name := range shapes {
				for _, n := range []uint64{0, 1, 2, 5, 6, 13, 40, 100} {
					if name == "nested" || name == "bulk" {
						n %= 30 // it grows the memory
					}
					what := uint64(shape) | n<<4
					want, err := turn.Call(ctx, what)
					if err != nil {
						t.Fatal(name, n, err)
					}
					granted := int64(0)
					h.refuel = func(left int64) int64 {
						more := max(quantum, -left)
						granted += more
						return left + more
					}
					got, spent, err := x.call(EnterTurn, what, 1, quantum)
					if err != nil || uint32(got) != uint32(want[0]) {
						t.Errorf("%s, %s(%d), quantum %d: got %d, want %d, error %v", engine, name, n, quantum, uint32(got), uint32(want[0]), err)
					}
					if name == "bulk" {
						continue // what it has grown lets the next turn fail to grow
					}
					total := int64(spent) + granted
					if f, ok := fuel[key{shape, n}]; ok && f != total {
						t.Errorf("%s, %s(%d), quantum %d: spent %d, before %d", engine, name, n, quantum, total, f)
					}
					fuel[key{shape, n}] = total
				}
			}
		}
		if plainCalls != meteredCalls || plainCalls == 0 {
			t.Errorf("%s: the imported function was called %d times before, %d after", engine, plainCalls, meteredCalls)
		}
	}
}

// TestDepthIsBounded: what recurs, directly or through a table, ends at the same
// depth on both engines, and deeper with a larger stack.
func TestDepthIsBounded(t *testing.T) {
	deepest := func(cfg wazero.RuntimeConfig, shape, stack uint32) int {
		res := instrument(t, read(t, "testdata/shapes.wasm"), Options{StackBytes: stack})
		h := newHost(t, cfg)
		calls := 0
		h.twice(t, &calls)
		x := h.instantiate(t, res.Module)
		low, high := uint64(0), uint64(100_000)
		for low < high {
			n := (low + high + 1) / 2
			_, _, err := x.call(EnterTurn, uint64(shape)|n<<4, 1, 1<<40)
			switch {
			case err == nil:
				low = n
			case errors.Is(err, errStack):
				high = n - 1
			default:
				t.Fatal(err)
			}
		}
		return int(low)
	}
	for _, shape := range []uint32{7, 8} {
		got := map[string][2]int{}
		for engine, cfg := range engines() {
			got[engine] = [2]int{deepest(cfg, shape, 20_000), deepest(cfg, shape, 40_000)}
		}
		d := got["compiler"]
		if d != got["interpreter"] || d[0] < 20 || d[1] < 2*d[0]-5 || d[1] > 2*d[0]+5 {
			t.Errorf("%s: deepest calls %v", shapes[shape], got)
		}
	}
}

// TestFuelAtTrap: what a turn has spent when it traps is the same on both engines
// and with every quantum, though a local may have held some of the fuel.
func TestFuelAtTrap(t *testing.T) {
	const traps = 12
	res := instrument(t, read(t, "testdata/shapes.wasm"), Options{})
	seen := map[int64]bool{}
	for _, cfg := range engines() {
		h := newHost(t, cfg)
		h.twice(t, new(int))
		x := h.instantiate(t, res.Module)
		for _, quantum := range []int64{1, 70, 1000, 1_000_000} {
			granted := quantum
			h.refuel = func(left int64) int64 {
				more := max(quantum, -left)
				granted += more
				return left + more
			}
			if _, _, err := x.call(EnterTurn, traps|500<<4, 1, quantum); err == nil {
				t.Fatal("no trap")
			}
			seen[granted-int64(x.global(GlobalFuel))] = true
		}
	}
	if len(seen) != 1 || seen[0] {
		t.Errorf("spent at the trap: %v", seen)
	}
}

// TestWorkCosts: a hundred times round costs more than a hundred units, whatever
// it is that goes round.
func TestWorkCosts(t *testing.T) {
	res := instrument(t, read(t, "testdata/shapes.wasm"), Options{})
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	h.twice(t, new(int))
	x := h.instantiate(t, res.Module)
	for shape, name := range shapes {
		if name == "dead" || name == "twice" || name == "returns" {
			continue // these do not go round
		}
		var spent [2]uint64
		for k, n := range []uint64{1, 101} {
			_, fuel, err := x.call(EnterTurn, uint64(shape)|n<<4, 1, 1<<40)
			if err != nil {
				t.Fatal(name, err)
			}
			spent[k] = fuel
		}
		least := uint64(100)
		if name == "values" {
			least = 76 // it leaves there
		}
		if spent[1]-spent[0] < least {
			t.Errorf("%s: once costs %d, 101 times %d", name, spent[0], spent[1])
		}
	}
}
