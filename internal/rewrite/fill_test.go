package rewrite

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// TestFillsByStores: a small fill of constant size does what the instruction does, to the last byte of the memory, and
// traps beyond it before it has changed anything.
func TestFillsByStores(t *testing.T) {
	const size = 64 << 16
	sizes := []int{33, 63, 64, 65, 127, 448, 511, mostStored, mostStored + 1}
	for n := range 20 {
		sizes = append(sizes, n)
	}
	for engine, cfg := range engines() {
		for i, n := range sizes {
			value := []int{0, 0x5a, -1, 0x1ff}[i%4]
			t.Run(fmt.Sprint(n, ", ", engine), func(t *testing.T) {
				m := turnOf(wasmgen.Code([]byte{wasm.OpLocalGet, 0}, number(value), number(n), []byte{wasm.OpMisc, byte(wasm.MiscMemoryFill), 0}))
				h := newHost(t, cfg)
				h.stub(t, m)
				code := instrument(t, m, Options{}).Module
				if fills, want := countFills(t, code), n == 0 || n > mostStored; (fills > 0) != want {
					t.Errorf("%d instructions that fill", fills)
				}
				x := h.instantiate(t, code)
				mem, _ := x.mod.Memory().Read(0, size)
				for _, to := range []int{0, 77, size - n, size - n + 1, size - 1, -1} {
					for i := range mem {
						mem[i] = byte(i*7 + 3)
					}
					want := bytes.Clone(mem)
					legal := to >= 0 && to+n <= size
					for i := range n {
						if legal {
							want[to+i] = byte(value)
						}
					}
					if _, _, err := x.call(EnterTurn, uint64(uint32(to)), 1, 1000); (err == nil) != legal {
						t.Fatalf("to %d: %v", to, err)
					}
					if !bytes.Equal(mem, want) {
						t.Errorf("to %d: the memory is another one", to)
					}
				}
			})
		}
	}
}

// TestStoresAreBounded: a module that does nothing but fill becomes about twice as large, and not thirty times.
func TestStoresAreBounded(t *testing.T) {
	const fills = 20_000
	one := wasmgen.Code([]byte{wasm.OpLocalGet, 0}, number(0), number(mostStored), []byte{wasm.OpMisc, byte(wasm.MiscMemoryFill), 0})
	m := turnOf(bytes.Repeat(one, fills))
	code := instrument(t, m, Options{}).Module
	if n, most := len(code.Code[0].Code), 5*len(one)*fills/2; n > most {
		t.Errorf("%d bytes of code have become %d", len(one)*fills, n)
	}
	if left := countFills(t, code); left == 0 || left == fills {
		t.Errorf("%d of %d fills are left", left, fills)
	}
}

// countFills is how many instructions of the guest's functions are memory.fill.
func countFills(t *testing.T, m *wasm.Module) (n int) {
	t.Helper()
	it := wasm.NewInstrs(m.Code[0].Code, 0)
	var ins wasm.Instr
	for {
		ok, err := it.Next(&ins)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return n
		}
		if ins.Op == wasm.OpMisc && ins.Sub == wasm.MiscMemoryFill {
			n++
		}
	}
}
