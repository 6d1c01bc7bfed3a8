package wasmgen

import (
	"encoding/binary"
	"math"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// fn is a function that is being written.
type fn struct {
	*generator
	code    []byte
	params  []wasm.ValType
	results []wasm.ValType
	locals  []wasm.ValType // parameters included
	groups  []wasm.LocalGroup
	scratch map[wasm.ValType]uint32 // used between two instructions only
	labels  [][]wasm.ValType        // what branches to them carry
	leaf    bool                    // neither loops nor calls
}

func (g *generator) bodies() {
	for i := range g.m.Funcs {
		g.m.Code = append(g.m.Code, g.body(i))
	}
}

func (g *generator) body(i int) wasm.Body {
	typ := g.m.Types[g.m.Funcs[i]]
	f := &fn{generator: g, params: typ.Params, results: typ.Results, scratch: map[wasm.ValType]uint32{}, leaf: g.leaves[g.imported+i]}
	f.locals = append(f.locals, typ.Params...)
	for range g.n(4) {
		group := wasm.LocalGroup{N: uint32(g.n(4)), Type: g.valType()}
		if g.chance(4) {
			group.N = uint32(g.n(400)) // a large frame
		}
		f.groups = append(f.groups, group)
		for range group.N {
			f.locals = append(f.locals, group.Type)
		}
	}
	f.labels = [][]wasm.ValType{typ.Results}
	switch {
	case i < entries:
		f.i32Const(gas)
		f.index(wasm.OpGlobalSet, gasGlobal)
	case !f.leaf && !g.opt.Endless:
		f.burn()
	}
	if i == entryTurn && g.next >= 0 {
		f.batch()
	} else {
		f.block(typ.Results, 4+g.n(3))
	}
	f.op(wasm.OpEnd)
	return wasm.Body{Locals: f.groups, Code: f.code}
}

// batch is a turn's body that asks for its envelopes.
func (f *fn) batch() {
	f.op(wasm.OpBlock, 0x40, wasm.OpLoop, 0x40)
	f.labels = append(f.labels, nil, nil)
	if !f.opt.Endless {
		f.burn()
	}
	f.expr(wasm.I32, 1)
	f.index(wasm.OpCall, uint32(f.next))
	f.op(opEqz, wasm.OpBrIf, 1)
	f.stmts(4)
	f.op(wasm.OpBr, 0, wasm.OpEnd, wasm.OpEnd)
	f.labels = f.labels[:len(f.labels)-2]
	f.expr(wasm.I32, 2)
}

// burn takes one unit of gas; the function returns if none is left.
func (f *fn) burn() {
	f.index(wasm.OpGlobalGet, gasGlobal)
	f.i32Const(1)
	f.op(opSub)
	f.index(wasm.OpGlobalSet, gasGlobal)
	f.index(wasm.OpGlobalGet, gasGlobal)
	f.i32Const(0)
	f.op(opLtS, wasm.OpIf, 0x40)
	for _, t := range f.results {
		f.zero(t)
	}
	f.op(wasm.OpReturn, wasm.OpEnd)
}

const (
	opEqz = 0x45
	opLtS = 0x48
	opLtU = 0x49
	opAdd = 0x6a
	opSub = 0x6b
	opAnd = 0x71
	opOr  = 0x72
)

func (f *fn) op(b ...byte) {
	f.code = append(f.code, b...)
	f.budget--
}

func (f *fn) index(op byte, i uint32) {
	f.code = wasm.AppendU32(append(f.code, op), i)
	f.budget--
}

func (f *fn) misc(sub uint32, operands ...uint32) {
	f.index(wasm.OpMisc, sub)
	for _, x := range operands {
		f.code = wasm.AppendU32(f.code, x)
	}
}

func (f *fn) i32Const(v int32) { f.code = wasm.AppendS64(append(f.code, wasm.OpI32Const), int64(v)) }

func (f *fn) zero(t wasm.ValType) { f.code = zero(f.code, t) }

func zero(b []byte, t wasm.ValType) []byte {
	switch t {
	case wasm.I32:
		return append(b, wasm.OpI32Const, 0)
	case wasm.I64:
		return append(b, wasm.OpI64Const, 0)
	case wasm.F32:
		return append(b, wasm.OpF32Const, 0, 0, 0, 0)
	case wasm.F64:
		return append(b, wasm.OpF64Const, 0, 0, 0, 0, 0, 0, 0, 0)
	case wasm.V128:
		return append(append(b, wasm.OpSIMD, 12), make([]byte, 16)...)
	}
	return append(b, wasm.OpRefNull, byte(t))
}

var (
	corners   = []int64{0, 1, -1, 2, 7, 8, 31, 32, 63, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, math.MaxInt32, math.MinInt32, math.MaxUint32, math.MaxInt64, math.MinInt64}
	floats    = []float64{0, 1, -1, math.Copysign(0, -1), 0.5, 1.5, -2.5, 1e10, -1e30, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32, math.SmallestNonzeroFloat32, math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 31, 1 << 63, -(1 << 31)}
	nanBits32 = []uint64{0x7f800001, 0xffc00000, 0x7fc00001}                         // signalling, negative, with a payload
	nanBits64 = []uint64{0x7ff0000000000001, 0xfff8000000000000, 0x7ff8000000000001} // likewise
)

// constant appends a constant of type t, no reference.
func (g *generator) constant(b []byte, t wasm.ValType) []byte {
	if g.spent() {
		return zero(b, t)
	}
	how := g.n(4)
	switch t {
	case wasm.I32, wasm.I64:
		var v int64
		switch how {
		case 0:
			v = int64(g.byte())
		case 1:
			v = int64(g.u64(8))
		default:
			v = pick(&g.choices, corners)
		}
		if t == wasm.I32 {
			return wasm.AppendS64(append(b, wasm.OpI32Const), int64(int32(v)))
		}
		return wasm.AppendS64(append(b, wasm.OpI64Const), v)
	case wasm.F32:
		bits := uint64(math.Float32bits(float32(pick(&g.choices, floats))))
		switch how {
		case 0:
			bits = g.u64(4)
		case 1:
			bits = pick(&g.choices, nanBits32)
		}
		return binary.LittleEndian.AppendUint32(append(b, wasm.OpF32Const), uint32(bits))
	case wasm.F64:
		bits := math.Float64bits(pick(&g.choices, floats))
		switch how {
		case 0:
			bits = g.u64(8)
		case 1:
			bits = pick(&g.choices, nanBits64)
		}
		return binary.LittleEndian.AppendUint64(append(b, wasm.OpF64Const), bits)
	case wasm.V128:
		b = append(b, wasm.OpSIMD, 12)
		lane := g.u64(8)
		if how > 1 {
			lane = uint64(pick(&g.choices, corners))
		}
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, lane), g.u64(8))
	}
	panic("wasmgen: no constant of this type")
}

// temp is a local to keep a value between two instructions. Nothing else may see
// it, since it may be a NaN of any bits.
func (f *fn) temp(t wasm.ValType) uint32 {
	l, ok := f.scratch[t]
	if !ok {
		l = f.local(t)
		f.locals[l] = hidden
		f.scratch[t] = l
	}
	return l
}

// hidden is the type of locals that cannot be chosen.
const hidden wasm.ValType = 0

// local adds a local.
func (f *fn) local(t wasm.ValType) uint32 {
	f.groups = append(f.groups, wasm.LocalGroup{N: 1, Type: t})
	f.locals = append(f.locals, t)
	return uint32(len(f.locals) - 1)
}

// localOf finds a local of type t, at random.
func (f *fn) localOf(t wasm.ValType) (uint32, bool) {
	var fit []uint32
	for i, u := range f.locals {
		if u == t {
			fit = append(fit, uint32(i))
		}
	}
	if len(fit) == 0 {
		return 0, false
	}
	return pick(&f.choices, fit), true
}

// globalOf finds a global of type t other than the gas.
func (f *fn) globalOf(t wasm.ValType, mutable bool) (uint32, bool) {
	var fit []uint32
	for i, g := range f.m.Globals {
		if i != gasGlobal && g.Type == t && (g.Mutable || !mutable) {
			fit = append(fit, uint32(i))
		}
	}
	if len(fit) == 0 {
		return 0, false
	}
	return pick(&f.choices, fit), true
}

// risky says whether to do what may trap here.
func (f *fn) risky() bool { return f.trapping && f.chance(6) }
