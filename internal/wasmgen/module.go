package wasmgen

import (
	"strconv"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Module is a generated module: a guest that imports functions only, exports its
// memory and what wasmactors calls, and for tests its globals as "g0", "g1" and so
// on, but for references.
type Module struct {
	*wasm.Module
	// Endless modules may run forever; all others end, whatever they are given.
	Endless bool
	// RawNaNs says that the bits of NaNs may be anything.
	RawNaNs bool
	// Batching modules ask for their envelopes through wasmactors.next.
	Batching bool
}

// Options say what to generate. The zero value leaves it to the choices.
type Options struct {
	Endless bool // without the counter that ends a module
}

// HostModule is what the functions are imported from, wasmactors.next aside.
const HostModule = "env"

// HostFuncs are the types of the functions that modules import from HostModule.
var HostFuncs = []wasm.FuncType{
	{},
	{Params: types(wasm.I32), Results: types(wasm.I32)},
	{Params: types(wasm.I32, wasm.I64), Results: types(wasm.I64)},
	{Params: types(wasm.F32), Results: types(wasm.F64)},
	{Params: types(wasm.F64, wasm.I32), Results: types(wasm.F32)},
	{Results: types(wasm.I32, wasm.I64)},
	{Params: types(wasm.I64), Results: types(wasm.ExternRef, wasm.I32)},
	{Params: types(wasm.I32, wasm.I32, wasm.I32)},
}

// HostName is the name of host function i.
func HostName(i int) string { return "h" + strconv.Itoa(i) }

// What a module may run before it returns from everything: entries of functions
// and rounds of loops. It is below the calls that wazero's interpreter can nest.
const gas = 1200

// instrBudget bounds the instructions of a module, roughly.
const instrBudget = 4000

type table struct {
	wasm.Table
	entries []int32 // what the active segments put there, -1 for null
	stable  int     // entries below are only changed where traps are welcome
}

type generator struct {
	choices
	m   *wasm.Module
	opt Options

	sigs     []uint32 // types of all functions
	imported int
	next     int // index of wasmactors.next, or -1
	leaves   map[int]bool
	tables   []table
	declared []uint32 // functions that ref.func may name
	segments int
	budget   int

	simd, rawNaNs, trapping, direct bool
}

// Generate makes the module of these choices.
func Generate(b []byte, o Options) *Module {
	g := &generator{choices: choices{b: b}, m: &wasm.Module{}, opt: o, next: -1, leaves: map[int]bool{}, budget: instrBudget}
	g.simd = g.chance(100)
	g.rawNaNs = g.chance(32)
	g.trapping = g.chance(90)
	g.direct = g.chance(64)
	g.imports()
	g.signatures()
	g.makeTables()
	g.makeMemory()
	g.makeGlobals()
	g.exports()
	g.makeElems()
	g.makeData()
	g.bodies()
	g.customs()
	return &Module{Module: g.m, Endless: o.Endless, RawNaNs: g.rawNaNs, Batching: g.next >= 0}
}

var (
	numTypes   = []wasm.ValType{wasm.I32, wasm.I64, wasm.F32, wasm.F64}
	plainTypes = []wasm.ValType{wasm.I32, wasm.I64, wasm.F32, wasm.F64, wasm.FuncRef, wasm.ExternRef}
	allTypes   = []wasm.ValType{wasm.I32, wasm.I64, wasm.V128, wasm.F32, wasm.F64, wasm.V128, wasm.FuncRef, wasm.ExternRef}
)

func (g *generator) valType() wasm.ValType {
	if g.simd {
		return pick(&g.choices, allTypes)
	}
	if g.chance(160) { // more of what can be computed with
		return pick(&g.choices, plainTypes[:4])
	}
	return pick(&g.choices, plainTypes)
}

func (g *generator) valTypes(most int) []wasm.ValType {
	var ts []wasm.ValType
	for range g.n(most + 1) {
		ts = append(ts, g.valType())
	}
	return ts
}

// typeOf is a type's index. Now and then an equal type is added again.
func (g *generator) typeOf(params, results []wasm.ValType) uint32 {
	if !g.chance(8) {
		for i, t := range g.m.Types {
			if sameTypes(t.Params, params) && sameTypes(t.Results, results) {
				return uint32(i)
			}
		}
	}
	g.m.Types = append(g.m.Types, wasm.FuncType{Params: params, Results: results})
	return uint32(len(g.m.Types) - 1)
}

func sameTypes(a, b []wasm.ValType) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func types(ts ...wasm.ValType) []wasm.ValType { return ts }

func (g *generator) imports() {
	add := func(module, name string, params, results []wasm.ValType) {
		g.m.Imports = append(g.m.Imports, wasm.Import{Module: module, Name: name, Kind: wasm.KindFunc, Func: g.typeOf(params, results)})
		g.sigs = append(g.sigs, g.m.Imports[g.imported].Func)
		g.imported++
	}
	for range g.n(4) {
		if g.next < 0 && g.chance(40) {
			g.next = g.imported
			add("wasmactors", "next", types(wasm.I32), types(wasm.I32))
		}
		i := g.n(len(HostFuncs))
		add(HostModule, HostName(i), HostFuncs[i].Params, HostFuncs[i].Results)
	}
}

// The entries, by position behind the imports.
const (
	entryTurn = iota
	entryInit
	entryInitialize // exported or not
	entryStart      // or not
	entries
)

func (g *generator) signatures() {
	add := func(t uint32) {
		g.m.Funcs = append(g.m.Funcs, t)
		g.sigs = append(g.sigs, t)
	}
	add(g.typeOf(types(wasm.I32), types(wasm.I32)))
	add(g.typeOf(nil, types(wasm.I32)))
	add(g.typeOf(nil, nil))
	add(g.typeOf(nil, nil))
	for range 1 + g.n(10) {
		if g.chance(80) {
			g.leaves[len(g.sigs)] = true
		}
		add(g.typeOf(g.valTypes(4), g.valTypes(3)))
	}
}

// referable keeps the entries, which set the gas, out of tables: called from
// there, a module would not end.
func (g *generator) referable(f int) bool {
	return g.opt.Endless || f < g.imported || f >= g.imported+entries
}

// function chooses one that can be referred to.
func (g *generator) function() uint32 {
	f := g.n(len(g.sigs))
	if !g.referable(f) {
		f = len(g.sigs) - 1
	}
	return uint32(f)
}

func (g *generator) makeTables() {
	n := g.n(4)
	if g.direct {
		n = 1
	}
	for i := range n {
		t := table{Table: wasm.Table{Elem: wasm.FuncRef}}
		switch {
		case g.direct:
			t.Min = uint32(64 + g.n(64))
		case i > 0 && g.chance(90):
			t.Elem = wasm.ExternRef
			t.Min = uint32(g.n(12))
		default:
			t.Min = uint32(g.n(40))
		}
		if g.chance(200) {
			t.HasMax, t.Max = true, t.Min+uint32(g.n(20))
		}
		for range t.Min {
			t.entries = append(t.entries, -1)
		}
		t.stable = int(t.Min) / 2
		g.tables = append(g.tables, t)
		g.m.Tables = append(g.m.Tables, t.Table)
	}
}

func (g *generator) makeMemory() {
	l := wasm.Limits{Min: 1 + uint32(g.n(2))}
	if g.trapping && g.chance(16) {
		l.Min = 0
	}
	if g.chance(200) {
		l.HasMax, l.Max = true, l.Min+uint32(g.n(3))
	}
	g.m.Memories = []wasm.Limits{l}
}

// gasGlobal is the counter that ends a module.
const gasGlobal = 0

func (g *generator) makeGlobals() {
	add := func(t wasm.ValType, mutable bool, init []byte) {
		i := len(g.m.Globals)
		g.m.Globals = append(g.m.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: t, Mutable: mutable}, Init: append(init, wasm.OpEnd)})
		if !t.IsRef() {
			g.m.Exports = append(g.m.Exports, wasm.Export{Name: "g" + strconv.Itoa(i), Kind: wasm.KindGlobal, Index: uint32(i)})
		}
	}
	add(wasm.I32, true, []byte{wasm.OpI32Const, 0})
	for range g.n(8) {
		t := g.valType()
		mutable := !g.chance(64)
		switch {
		case t == wasm.FuncRef && g.chance(200):
			f := g.function()
			g.declared = append(g.declared, f)
			add(t, mutable, wasm.AppendU32([]byte{wasm.OpRefFunc}, f))
		case t.IsRef():
			add(t, mutable, []byte{wasm.OpRefNull, byte(t)})
		default:
			add(t, mutable, g.constant(nil, t))
		}
	}
}

func (g *generator) exports() {
	export := func(name string, kind wasm.ExternKind, i int) {
		g.m.Exports = append(g.m.Exports, wasm.Export{Name: name, Kind: kind, Index: uint32(i)})
	}
	export("memory", wasm.KindMemory, 0)
	export("wasmactors_turn", wasm.KindFunc, g.imported+entryTurn)
	export("wasmactors_init", wasm.KindFunc, g.imported+entryInit)
	if !g.chance(90) {
		export("_initialize", wasm.KindFunc, g.imported+entryInitialize)
	}
	if g.chance(90) {
		f := uint32(g.imported + entryStart)
		g.m.Start = &f
	}
	for f := range g.sigs {
		if g.chance(60) {
			export("f"+strconv.Itoa(f), wasm.KindFunc, f)
			if g.referable(f) {
				g.declared = append(g.declared, uint32(f))
			}
		}
	}
	if !g.direct && len(g.tables) > 0 && g.chance(60) {
		export("t", wasm.KindTable, g.n(len(g.tables)))
	}
}

func (g *generator) customs() {
	if g.chance(40) {
		g.m.Customs = append(g.m.Customs, wasm.Custom{Name: "wasmgen", Data: []byte{1, 2, 3}})
	}
}
