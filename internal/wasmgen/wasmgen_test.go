package wasmgen

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// seeds is how many modules a test makes: WASMACTORS_LONG, if it is set.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("WASMACTORS_LONG"), 10, 64); err == nil {
		return max(n, 2000)
	}
	return 2000
}

func TestWazeroAccepts(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	for seed := range seeds() {
		for _, o := range []Options{{}, {Endless: true}} {
			m := Generate(Seed(seed), o)
			b := m.Encode()
			if _, err := wasm.Decode(b); err != nil {
				t.Fatalf("seed %d %+v: %v", seed, o, err)
			}
			c, err := r.CompileModule(ctx, b)
			if err != nil {
				t.Fatalf("seed %d %+v: %v", seed, o, err)
			}
			c.Close(ctx)
		}
	}
}

func TestDeterministic(t *testing.T) {
	for seed := range uint64(50) {
		choices := Seed(seed)
		a, b := Generate(choices, Options{}), Generate(slices.Clone(choices), Options{})
		if !bytes.Equal(a.Encode(), b.Encode()) {
			t.Fatalf("seed %d: two modules", seed)
		}
	}
}

// TestFewerChoicesMakeSimplerModules is what shrinking needs.
func TestFewerChoicesMakeSimplerModules(t *testing.T) {
	least := len(Generate(nil, Options{}).Encode())
	if least > 400 {
		t.Errorf("without choices a module has %d bytes", least)
	}
	var sizes [5]int
	for seed := range uint64(200) {
		choices := Seed(seed)
		for quarter := range sizes {
			sizes[quarter] += len(Generate(choices[:len(choices)*quarter/4], Options{}).Encode())
		}
	}
	if !slices.IsSorted(sizes[:]) {
		t.Errorf("sizes with 0 to 4 quarters of the choices: %d", sizes)
	}
}

// name is an instruction as coverage counts it.
func name(in *wasm.Instr) string {
	if in.Op == wasm.OpMisc || in.Op == wasm.OpSIMD {
		return fmt.Sprintf("0x%02x %d", in.Op, in.Sub)
	}
	return fmt.Sprintf("0x%02x", in.Op)
}

// accepted are all instructions that internal/wasm decodes.
func accepted() []string {
	var list []string
	try := func(code ...byte) {
		operands := make([]byte, 20)
		if code[0] == wasm.OpRefNull {
			operands[0] = byte(wasm.FuncRef)
		}
		it := wasm.NewInstrs(append(code, operands...), 0)
		var in wasm.Instr
		if ok, err := it.Next(&in); ok && err == nil {
			list = append(list, name(&in))
		}
	}
	for op := range 256 {
		if op != int(wasm.OpMisc) && op != int(wasm.OpSIMD) {
			try(byte(op))
			continue
		}
		for sub := range uint32(1024) {
			try(wasm.AppendU32([]byte{byte(op)}, sub)...)
		}
	}
	return list
}

// TestEveryInstruction makes sure that what internal/wasm accepts is generated:
// instructions, kinds of segments, of exports and of block types.
func TestEveryInstruction(t *testing.T) {
	seen := map[string]int{}
	for seed := range seeds() / 2 {
		m := Generate(Seed(seed), Options{})
		for i := range m.Code {
			it := wasm.NewInstrs(m.Code[i].Code, 0)
			var in wasm.Instr
			for {
				ok, err := it.Next(&in)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				seen[name(&in)]++
				if in.Op == wasm.OpLoop && in.Block >= 0 && len(m.Types[in.Block].Params) > 0 {
					seen["loop with parameters"]++
				}
			}
		}
		for i := range m.Elems {
			e := &m.Elems[i]
			seen[fmt.Sprintf("elem of mode %d, %v, expressions %v", e.Mode, e.Type, e.UseExprs)]++
		}
		for i := range m.Data {
			seen[fmt.Sprintf("data of mode %d, explicit %v", m.Data[i].Mode, m.Data[i].Explicit)]++
		}
		for _, e := range m.Exports {
			seen["export of "+e.Kind.String()]++
		}
		if m.Start != nil {
			seen["start"]++
		}
		if m.Batching {
			seen["batching"]++
		}
		if len(m.Tables) > 1 {
			seen["several tables"]++
		}
	}
	want := append(accepted(), "loop with parameters", "start", "batching", "several tables",
		"export of func", "export of table", "export of memory", "export of global",
		"data of mode 0, explicit false", "data of mode 0, explicit true", "data of mode 1, explicit false")
	for mode := range 3 {
		want = append(want, fmt.Sprintf("elem of mode %d, funcref, expressions false", mode),
			fmt.Sprintf("elem of mode %d, funcref, expressions true", mode), fmt.Sprintf("elem of mode %d, externref, expressions true", mode))
	}
	total, missing := 0, 0
	for _, w := range want {
		total += seen[w]
		if seen[w] == 0 {
			missing++
			t.Errorf("not generated: %s", w)
		}
	}
	slices.SortFunc(want, func(a, b string) int { return seen[a] - seen[b] })
	t.Logf("%d of %d kinds generated over %d seeds, %d in all; the rarest: %s %d times, %s %d times", len(want)-missing, len(want), seeds()/2, total, want[0], seen[want[0]], want[1], seen[want[1]])
}

func BenchmarkGenerate(b *testing.B) {
	size := 0
	seed := uint64(0)
	for b.Loop() {
		size += len(Generate(Seed(seed), Options{}).Encode())
		seed++
	}
	b.ReportMetric(float64(size)/float64(b.N), "bytes/module")
}
