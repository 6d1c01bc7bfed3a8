package rewrite

import (
	"slices"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// instrumenter holds what is known while a module is rewritten.
type instrumenter struct {
	src *wasm.Module
	opt Options
	out *wasm.Module

	imported               int // imported functions of src
	next                   int // import index of wasmactors.next, or -1; all imports are functions
	turn, init, initialize int // old indices of the guest's entries, -1 for none
	usesData               bool
	usesRefFunc            bool
	funcs                  []function
	takenList              []int
	takenImport            []bool
	takenImports           []uint32 // old indices of imported functions whose address is taken
	deepTable              bool     // functions whose address is taken have the depth as an argument
	indirect               []uint64 // price of an indirect call, by type, see priceIndirect
	flat                   bool     // every instruction costs one unit

	// New indices.
	index                []uint32 // of every old function
	address              []uint32 // its index in tables: of a wrapper, where it has one
	refuel, exceeded     uint32
	nextFunc, enterFunc  uint32
	fuel, quantum, spent uint32 // globals
	count, begun, ended  uint32
	outLen, dirty, stop  uint32
	block                uint32
	sites                [][]site          // of the bodies, with Options.Sites
	types                []uint32          // of functions of src, by their old index
	typeIndex            map[string]uint32 // types of out by their key
	deepTypes            []uint32          // new index, less one, of types of src with the depth; 0: not made yet
	chargers             [chargers]uint32  // helper functions, by new index; 0 for those that are not needed
	needs                [chargers]bool
	steps                uint64 // see Result.Steps
	storeRoom            int    // see byStores
}

// Helper functions for code that would be long in line.
const (
	chargeBytes   = iota // i32 -> i32: charges for bytes of memory
	chargeEntries        // i32 -> i32: charges for entries of a table
	growMemory           // i32 -> i32: memory.grow
	chargeCost           // i64 -> (): charges that
	fillMemory           // i32 i32 i32 -> (): memory.fill
	copyMemory           // i32 i32 i32 -> (): memory.copy
	chargers
)

var chargerNames = [chargers]string{"wasmactors.bytes", "wasmactors.entries", "wasmactors.grow", "wasmactors.charge", "wasmactors.fill", "wasmactors.copy"}

// layout decides where everything goes: imports, types, globals.
func (in *instrumenter) layout() {
	m := in.src
	out := &wasm.Module{Elems: m.Elems, Start: nil, DataCount: m.DataCount, Data: m.Data}
	in.out = out
	out.Types = append(out.Types, m.Types...)
	in.typeIndex = make(map[string]uint32, len(m.Types))
	for i := len(m.Types) - 1; i >= 0; i-- { // backwards, so that the first of equal ones remains
		in.typeIndex[in.key(&m.Types[i])] = uint32(i)
	}
	in.deepTypes = make([]uint32, len(m.Types))
	for i := range m.Imports {
		if i != in.next {
			out.Imports = append(out.Imports, m.Imports[i])
		}
	}
	kept := uint32(len(out.Imports))
	in.refuel, in.exceeded = kept, kept+1
	i32, i64 := wasm.I32, wasm.I64
	out.Imports = append(out.Imports,
		wasm.Import{Module: ImportModule, Name: ImportRefuel, Func: in.typeOf([]wasm.ValType{i64}, []wasm.ValType{i64})},
		wasm.Import{Module: ImportModule, Name: ImportExceeded, Func: in.typeOf([]wasm.ValType{i32}, nil)})
	first := uint32(len(out.Imports))
	in.nextFunc = first + uint32(len(m.Funcs)+len(in.wrapped()))
	for k, needed := range in.needs {
		if needed {
			in.chargers[k] = in.nextFunc
			in.nextFunc++
		}
	}
	in.enterFunc = in.nextFunc + 1
	in.index = make([]uint32, in.imported+len(m.Funcs))
	for i := range in.index {
		switch {
		case i == in.next:
			in.index[i] = in.nextFunc
		case i < in.imported:
			in.index[i] = uint32(i)
			if in.next >= 0 && i > in.next {
				in.index[i]--
			}
		default:
			in.index[i] = first + uint32(i-in.imported)
		}
	}
	in.address = slices.Clone(in.index)
	for i, typ := range m.Funcs {
		if in.funcs[i].deep {
			typ = in.deepType(typ)
		}
		out.Funcs = append(out.Funcs, typ)
	}
	for _, f := range in.wrapped() {
		in.address[f] = first + uint32(len(out.Funcs))
		out.Funcs = append(out.Funcs, in.deepType(in.types[f]))
	}
	for k, needed := range in.needs {
		switch {
		case needed && k == chargeCost:
			out.Funcs = append(out.Funcs, in.typeOf([]wasm.ValType{i64}, nil))
		case needed && (k == fillMemory || k == copyMemory):
			out.Funcs = append(out.Funcs, in.typeOf([]wasm.ValType{i32, i32, i32}, nil))
		case needed:
			out.Funcs = append(out.Funcs, in.typeOf([]wasm.ValType{i32}, []wasm.ValType{i32}))
		}
	}
	out.Funcs = append(out.Funcs,
		in.typeOf([]wasm.ValType{i32}, []wasm.ValType{i32}),
		in.typeOf([]wasm.ValType{i32, i32, i32, i64}, []wasm.ValType{i64, i64}))

	out.Tables = in.clampTables()
	for _, l := range m.Memories {
		if !l.HasMax || l.Max > in.opt.MemoryPages {
			l.Max, l.HasMax = in.opt.MemoryPages, true
		}
		out.Memories = append(out.Memories, l)
	}
	out.Globals = append(out.Globals, m.Globals...)
	hidden := func(t wasm.ValType, name string) uint32 {
		init := wasm.Expr{wasm.OpI64Const, 0, wasm.OpEnd}
		if t == i32 {
			init[0] = wasm.OpI32Const
		}
		i := uint32(len(out.Globals))
		out.Globals = append(out.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: t, Mutable: true}, Init: init})
		out.Exports = append(out.Exports, wasm.Export{Name: name, Kind: wasm.KindGlobal, Index: i})
		return i
	}
	out.Exports = append(out.Exports, *m.FindExport("memory"), wasm.Export{Name: ExportEnter, Kind: wasm.KindFunc, Index: in.enterFunc})
	in.fuel, in.quantum, in.spent = hidden(i64, GlobalFuel), hidden(i64, GlobalQuantum), hidden(i64, GlobalSpent)
	in.count, in.begun, in.ended = hidden(i32, GlobalCount), hidden(i32, GlobalBegun), hidden(i32, GlobalEnded)
	in.outLen, in.dirty, in.stop = hidden(i32, GlobalOut), hidden(i32, GlobalDirty), hidden(i32, GlobalStop)
	if in.opt.Sites {
		in.block = hidden(i64, GlobalBlock)
	}
}

// clampTables sets the maximum of each table, so that none exceeds the limit of one table,
// and all together do not exceed theirs. Room beyond the declared minimums goes first to
// tables that declare a maximum, and then in equal parts to the others.
func (in *instrumenter) clampTables() []wasm.Table {
	tables := slices.Clone(in.src.Tables)
	left, open := uint64(in.opt.TableTotal), uint64(0)
	for _, t := range tables {
		left -= uint64(t.Min)
	}
	grow := func(t *wasm.Table, by uint64) {
		t.Max, t.HasMax = uint32(min(uint64(t.Min)+by, uint64(in.opt.TableLimit))), true
		left -= uint64(t.Max - t.Min)
	}
	for i := range tables {
		if t := &tables[i]; t.HasMax {
			grow(t, min(uint64(t.Max-t.Min), left))
		} else {
			open++
		}
	}
	for i := range tables {
		if t := &tables[i]; !t.HasMax {
			grow(t, left/open)
			open--
		}
	}
	return tables
}

// key is the same for equal types only.
func (in *instrumenter) key(t *wasm.FuncType) string {
	in.steps += uint64(1 + len(t.Params) + len(t.Results))
	return t.Key()
}

// typeOf is the index of a function type, added if need be.
func (in *instrumenter) typeOf(params, results []wasm.ValType) uint32 {
	t := wasm.FuncType{Params: params, Results: results}
	k := in.key(&t)
	i, ok := in.typeIndex[k]
	if !ok {
		i = uint32(len(in.out.Types))
		in.out.Types = append(in.out.Types, t)
		in.typeIndex[k] = i
	}
	return i
}

// blockType encodes the type of a block without parameters.
func (in *instrumenter) blockType(results []wasm.ValType) []byte {
	switch len(results) {
	case 0:
		return []byte{0x40}
	case 1:
		return []byte{byte(results[0])}
	}
	t := in.typeOf(nil, results)
	return wasm.AppendS64(nil, int64(t))
}

// finish adds the injected functions, remaps references to functions, and writes the names.
func (in *instrumenter) finish() {
	for _, f := range in.wrapped() {
		in.out.Code = append(in.out.Code, in.wrapper(f))
	}
	for k, needed := range in.needs {
		if needed {
			in.out.Code = append(in.out.Code, in.charger(k))
		}
	}
	in.out.Code = append(in.out.Code, in.nextBody(), in.enterBody(nil))
	in.out.Elems = make([]wasm.Elem, len(in.src.Elems))
	for i, e := range in.src.Elems {
		if e.Funcs != nil {
			funcs := make([]uint32, len(e.Funcs))
			for j, f := range e.Funcs {
				funcs[j] = in.address[f]
			}
			e.Funcs = funcs
		}
		exprs := make([]wasm.Expr, 0, len(e.Exprs))
		for _, x := range e.Exprs {
			exprs = append(exprs, in.remapExpr(x))
		}
		if e.UseExprs {
			e.Exprs = exprs
		}
		in.out.Elems[i] = e
	}
	for i := range in.src.Globals {
		in.out.Globals[i].Init = in.remapExpr(in.src.Globals[i].Init)
	}
	in.declareRefs()
	in.names()
}

// declareRefs declares functions for ref.func that were declared only by an export: exports
// that the host does not need are dropped.
func (in *instrumenter) declareRefs() {
	if !in.usesRefFunc {
		return
	}
	var funcs []uint32
	for _, e := range in.src.Exports {
		if e.Kind == wasm.KindFunc {
			funcs = append(funcs, in.address[e.Index])
		}
	}
	if len(funcs) > 0 {
		in.out.Elems = append(in.out.Elems, wasm.Elem{Mode: wasm.Declarative, Type: wasm.FuncRef, Funcs: funcs})
	}
}

func (in *instrumenter) remapExpr(x wasm.Expr) wasm.Expr {
	it := wasm.NewInstrs(x, 0)
	var ins wasm.Instr
	if ok, err := it.Next(&ins); ok && err == nil && ins.Op == wasm.OpRefFunc {
		y := wasm.AppendU32([]byte{wasm.OpRefFunc}, in.address[ins.X])
		return append(y, x[ins.End:]...)
	}
	return x
}
