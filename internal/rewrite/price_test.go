package rewrite

import (
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// TestHostCallThroughATable makes sure that a host function costs the same,
// however it is called.
func TestHostCallThroughATable(t *testing.T) {
	l := newLab(t, "interpreter", wazero.NewRuntimeConfigInterpreter())
	spent := map[string]uint64{}
	for name, call := range map[string][]byte{
		"direct":   {wasm.OpCall, 0},
		"indirect": {wasm.OpI32Const, 0, wasm.OpCallIndirect, 0, 0},
	} {
		i32 := []wasm.ValType{wasm.I32}
		turn := append(append([]byte(nil), call...), wasm.OpLocalGet, 0, wasm.OpEnd)
		m := &wasm.Module{
			Types:    []wasm.FuncType{{}, {Params: i32, Results: i32}, {Results: i32}},
			Imports:  []wasm.Import{{Module: wasmgen.HostModule, Name: wasmgen.HostName(0), Kind: wasm.KindFunc, Func: 0}},
			Funcs:    []uint32{1, 2},
			Tables:   []wasm.Table{{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: 1}}},
			Memories: []wasm.Limits{{Min: 1}},
			Exports: []wasm.Export{{Name: "memory", Kind: wasm.KindMemory}, {Name: "wasmactors_turn", Kind: wasm.KindFunc, Index: 1},
				{Name: "wasmactors_init", Kind: wasm.KindFunc, Index: 2}},
			Elems: []wasm.Elem{{Type: wasm.FuncRef, Offset: wasm.Expr{wasm.OpI32Const, 0, wasm.OpEnd}, Funcs: []uint32{0}}},
			Code:  []wasm.Body{{Code: turn}, {Code: []byte{wasm.OpI32Const, 0, wasm.OpEnd}}},
		}
		s, err := l.start(observed(instrument(t, m, Options{}).Module, m, true), false)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		got := s.run(step{EnterTurn, 7, 1}, plenty)
		if got.trap != "" || len(got.calls) != 1 || got.result != 7 {
			t.Fatalf("%s: %v", name, got)
		}
		spent[name] = got.fuel
	}
	if want := hostCost(wasmgen.HostModule, "h0"); spent["direct"] < want || spent["indirect"] < spent["direct"] {
		t.Errorf("fuel %v, a host call costs %d", spent, want)
	}
}

// TestStartFunctionsType makes sure that the rewriter refuses what would be valid
// only because it calls the start function itself.
func TestStartFunctionsType(t *testing.T) {
	m := wasmgen.Generate(nil, wasmgen.Options{}).Module
	for f, valid := range []bool{false, false, true} { // wasmactors_turn, wasmactors_init, _initialize
		start := uint32(m.NumImported(wasm.KindFunc) + f)
		m.Start = &start
		if _, err := Instrument(m, Options{}); (err == nil) != valid {
			t.Errorf("function %d: %v", f, err)
		}
	}
}

// TestFailedGrowthIsFree makes sure that what did not grow is neither paid for
// nor held against the instance.
func TestFailedGrowthIsFree(t *testing.T) {
	for name, code := range map[string][]byte{
		"memory": {wasm.OpI32Const, 0xff, 0xff, 3, wasm.OpMemoryGrow, 0},
		"table":  {wasm.OpRefNull, byte(wasm.FuncRef), wasm.OpI32Const, 0xff, 0xff, 0xff, 0, wasm.OpMisc, byte(wasm.MiscTableGrow), 0},
	} {
		for _, l := range newLabs(t) {
			m := wasmgen.Generate(nil, wasmgen.Options{}).Module
			m.Memories[0].Max, m.Memories[0].HasMax = 2, true
			m.Tables = []wasm.Table{{Elem: wasm.FuncRef, Limits: wasm.Limits{Max: 2, HasMax: true}}}
			m.Code[0].Code = append(code, wasm.OpEnd)
			s, err := l.start(observed(instrument(t, m, Options{}).Module, m, true), false)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			got := s.run(step{EnterTurn, 0, 1}, plenty)
			if uint32(got.result) != 1<<32-1 || got.trap != "" || got.fuel > pageCost+20 || s.global(GlobalDirty) != 0 {
				t.Errorf("%s, %s: dirty %d, %v", name, l.engine, s.global(GlobalDirty), got)
			}
		}
	}
}

// TestBulkCostsItsSize compares instructions that do nothing with ones that do much.
func TestBulkCostsItsSize(t *testing.T) {
	l := newLab(t, "interpreter", wazero.NewRuntimeConfigInterpreter())
	null := []byte{wasm.OpRefNull, byte(wasm.FuncRef)}
	zero := []byte{wasm.OpI32Const, 0}
	for _, c := range []struct {
		name  string
		first [][]byte // two operands, the size follows
		code  []byte
		n     int64
		costs uint64
	}{
		{"memory.fill", [][]byte{zero, zero}, []byte{byte(wasm.MiscMemoryFill), 0}, 6400, 400},
		{"memory.copy", [][]byte{zero, zero}, []byte{byte(wasm.MiscMemoryCopy), 0, 0}, 6400, 400},
		{"memory.init", [][]byte{zero, zero}, []byte{byte(wasm.MiscMemoryInit), 0, 0}, 640, 40},
		{"table.fill", [][]byte{zero, null}, []byte{byte(wasm.MiscTableFill), 0}, 80, 40},
		{"table.copy", [][]byte{zero, zero}, []byte{byte(wasm.MiscTableCopy), 0, 0}, 80, 40},
		{"table.init", [][]byte{zero, zero}, []byte{byte(wasm.MiscTableInit), 0, 0}, 80, 40},
	} {
		var spent [2]uint64
		for k, n := range []int64{0, c.n} {
			m := wasmgen.Generate(nil, wasmgen.Options{}).Module
			count := uint32(1)
			m.DataCount, m.Data = &count, []wasm.Data{{Mode: wasm.Passive, Bytes: make([]byte, 1000)}}
			m.Tables = []wasm.Table{{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: 100}}}
			m.Elems = []wasm.Elem{{Mode: wasm.Passive, Type: wasm.FuncRef, Funcs: make([]uint32, 100)}}
			code := slices.Concat(c.first[0], c.first[1], wasm.AppendS64([]byte{wasm.OpI32Const}, n), []byte{wasm.OpMisc}, c.code)
			m.Code[0].Code = append(code, wasm.OpI32Const, 0, wasm.OpEnd)
			s, err := l.start(observed(instrument(t, m, Options{}).Module, m, true), false)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			got := s.run(step{EnterTurn, 0, 1}, plenty)
			if got.trap != "" {
				t.Fatalf("%s: %v", c.name, got)
			}
			spent[k] = got.fuel
		}
		if spent[1]-spent[0] != c.costs {
			t.Errorf("%s: %d units for nothing, %d for %d", c.name, spent[0], spent[1], c.n)
		}
	}
}

// TestRegionThatEndsInAnInnerLoop has an outer loop that goes round from within an
// inner one, which is never left at its end: the outer one's code is paid for.
func TestRegionThatEndsInAnInnerLoop(t *testing.T) {
	const rounds, padding = 1000, 20
	m := wasmgen.Generate(nil, wasmgen.Options{}).Module
	code := []byte{wasm.OpLoop, blockEmpty}
	code = append(code, slices.Repeat([]byte{wasm.OpI32Const, 0, wasm.OpDrop}, padding)...)
	code = append(code, wasm.OpLoop, blockEmpty, wasm.OpGlobalGet, 0, wasm.OpI32Const, 1, opI32Add, wasm.OpGlobalSet, 0, wasm.OpGlobalGet, 0)
	code = append(wasm.AppendS64(append(code, wasm.OpI32Const), rounds), 0x49 /* i32.lt_u */, wasm.OpBrIf, 1)
	m.Code[0].Code = append(code, wasm.OpI32Const, 0, wasm.OpReturn, wasm.OpEnd, wasm.OpEnd, wasm.OpI32Const, 0, wasm.OpEnd)
	l := newLab(t, "interpreter", wazero.NewRuntimeConfigInterpreter())
	s, err := l.start(observed(instrument(t, m, Options{}).Module, m, true), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	got := s.run(step{EnterTurn, 0, 1}, plenty)
	if got.trap != "" || got.fuel < rounds*(2*padding+8) {
		t.Errorf("%d rounds of %d instructions: %v", rounds, 2*padding+8, got)
	}
}
