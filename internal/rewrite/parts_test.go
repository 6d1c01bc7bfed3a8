package rewrite

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// turnOf is a module of 4 MiB whose turn is this code.
func turnOf(code []byte) *wasm.Module {
	m := wasmgen.Generate(nil, wasmgen.Options{}).Module
	m.Memories[0] = wasm.Limits{Min: 64, Max: 200, HasMax: true}
	m.Code[0] = wasm.Body{Code: wasmgen.Code(code, []byte{wasm.OpI32Const, 0, wasm.OpEnd})}
	return m
}

func number(v int) []byte { return wasm.AppendS64([]byte{wasm.OpI32Const}, int64(int32(v))) }

// TestPartsDoTheSame: a large copy or fill does what the instruction does, overlapping in both directions, traps before
// it has changed anything, and calls the host for each part.
func TestPartsDoTheSame(t *testing.T) {
	const part, size = partBytes, 4 << 20
	for name, c := range map[string]struct {
		copies      bool
		to, from, n int
		calls       int
	}{
		"fill":                   {false, 77, 0x5a, 3*part + 999, 3},
		"fill, one part":         {false, 77, 0x5a, part, 0},
		"fill to the end":        {false, size - 2*part - 1, 0x5a, 2*part + 1, 2},
		"fill beyond the end":    {false, size - 2*part, 0x5a, 2*part + 1, 0},
		"fill far beyond":        {false, -1, 0x5a, -1, 0},
		"copy up":                {true, 1234, 5, 3*part + 17, 3},
		"copy down":              {true, 5, 1234, 3*part + 17, 3},
		"copy to itself":         {true, 5, 5, 2*part + 17, 2},
		"copy apart":             {true, 2 * part, 0, 2*part - 1, 1},
		"copy from the end":      {true, 0, 1, size - 1, 3},
		"copy from beyond":       {true, 0, 2, size - 1, 0},
		"copy to beyond the end": {true, 2, 0, size - 1, 0},
	} {
		for engine, cfg := range engines() {
			t.Run(fmt.Sprint(name, ", ", engine), func(t *testing.T) {
				op := []byte{wasm.OpMisc, byte(wasm.MiscMemoryFill), 0}
				if c.copies {
					op = []byte{wasm.OpMisc, byte(wasm.MiscMemoryCopy), 0, 0}
				}
				m := turnOf(wasmgen.Code(number(c.to), number(c.from), number(c.n), op))
				h := newHost(t, cfg)
				h.stub(t, m)
				x := h.instantiate(t, instrument(t, m, Options{}).Module)
				mem, _ := x.mod.Memory().Read(0, size)
				for i := range mem {
					mem[i] = byte(i ^ i>>8 ^ i>>17)
				}
				want := bytes.Clone(mem)
				legal := c.n >= 0 && c.to >= 0 && c.to+c.n <= size && (!c.copies || c.from+c.n <= size)
				switch {
				case !legal:
				case c.copies:
					copy(want[c.to:], want[c.from:c.from+c.n])
				default:
					for i := range c.n {
						want[c.to+i] = byte(c.from)
					}
				}
				calls := 0
				h.refuel = func(left int64) int64 {
					if calls++; legal && -left > part>>byteShift {
						t.Errorf("%d units at once", -left)
					}
					return 0
				}
				if _, _, err := x.call(EnterTurn, 0, 1, 1000); (err == nil) != legal {
					t.Fatal(err)
				}
				if !bytes.Equal(mem, want) {
					t.Error("the memory is another one")
				}
				if calls < c.calls {
					t.Errorf("%d calls of the host", calls)
				}
			})
		}
	}
}

// TestGrowthIsSeen: after a growth, however much fuel there is, the host may take some of it.
func TestGrowthIsSeen(t *testing.T) {
	for by, want := range map[int]bool{1: true, 100: true, 1000: false} {
		for engine, cfg := range engines() {
			m := turnOf(wasmgen.Code(number(by), []byte{wasm.OpMemoryGrow, 0, wasm.OpDrop}))
			h := newHost(t, cfg)
			h.stub(t, m)
			x := h.instantiate(t, instrument(t, m, Options{}).Module)
			seen := int64(-1)
			h.refuel = func(left int64) int64 { seen = left; return 1234 }
			if _, _, err := x.call(EnterTurn, 0, 1, 1e9); err != nil {
				t.Fatal(err)
			}
			if (seen > 0) != want {
				t.Errorf("%s, by %d pages: the host was told %d", engine, by, seen)
			}
			if left := int64(x.global(GlobalFuel)); want && left != 1234 {
				t.Errorf("%s: %d units are left", engine, left)
			}
		}
	}
}

// TestTurnsShareTheirFuel: a turn of a batch begins with what the one before has left, and each knows what it
// has spent.
func TestTurnsShareTheirFuel(t *testing.T) {
	for engine, cfg := range engines() {
		m := read(t, "../../host/testdata/echo.wasm")
		h := newHost(t, cfg)
		h.stub(t, m)
		x := h.instantiate(t, instrument(t, m, Options{}).Module)
		in, _ := x.mod.Memory().Read(0x1000, 0x4000)
		message := []byte{0x86, 0, 0, 0, 0, 0xf6, 0x41, 0x07}
		for i := range 50 {
			copy(in[i*len(message):], message)
		}
		granted := int64(2000)
		h.refuel = func(left int64) int64 {
			granted += 2000
			return left + 2000
		}
		var spent [2]int64
		for k, n := range []uint64{1, 50} {
			granted = 2000
			got, s, err := x.call(EnterTurn, n*uint64(len(message)), n, 2000)
			if err != nil || got>>32 != n {
				t.Fatal(engine, got>>32, err)
			}
			spent[k] = int64(s) + granted - 2000
			if left := int64(x.global(GlobalFuel)); left < 0 || left >= 4000 || k == 1 && granted-left > spent[k]+spent[k]/10 {
				t.Errorf("%s: of %d units granted to %d turns %d are left, which say that they have spent %d", engine, granted, n, left, spent[k])
			}
		}
		if spent[1] < 40*spent[0] || spent[1] > 50*spent[0] {
			t.Errorf("%s: one turn spends %d, 50 spend %d", engine, spent[0], spent[1])
		}
	}
}
