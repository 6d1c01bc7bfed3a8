package wasmgen

import (
	"encoding/binary"
	"math"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// values leaves one value of each type.
func (f *fn) values(ts []wasm.ValType, depth int) {
	for _, t := range ts {
		f.expr(t, depth)
	}
}

// expr leaves a value of type t.
func (f *fn) expr(t wasm.ValType, depth int) {
	if depth <= 0 || f.budget <= 0 || f.spent() {
		f.simple(t)
		return
	}
	switch kind := f.n(16); {
	case kind < 2:
		f.simple(t)
	case kind == 2:
		f.choose(t, depth)
	case kind == 3:
		f.branchy(t, depth)
	case kind < 6 && f.callFor(t, depth):
	case t.IsRef():
		f.reference(t)
	case kind < 8:
		f.load(t, depth)
	case kind == 8 && f.tee(t, depth):
	case kind == 9 && t == wasm.I32:
		f.size(depth)
	default:
		ops := plainOps[t]
		if f.simd && (len(ops) == 0 || f.chance(100)) {
			ops = simdOps[t]
		}
		f.apply(pick(&f.choices, ops), depth)
	}
}

// simple is a value that takes no operands.
func (f *fn) simple(t wasm.ValType) {
	switch f.n(4) {
	case 0, 1:
		if l, ok := f.localOf(t); ok {
			f.index(wasm.OpLocalGet, l)
			return
		}
	case 2:
		if g, ok := f.globalOf(t, false); ok {
			f.index(wasm.OpGlobalGet, g)
			return
		}
	}
	if t.IsRef() {
		f.op(wasm.OpRefNull, byte(t))
		return
	}
	f.code = f.constant(f.code, t)
	f.budget--
}

func (f *fn) reference(t wasm.ValType) {
	if f.direct {
		f.simple(t)
		return
	}
	if t == wasm.FuncRef && len(f.declared) > 0 && f.chance(100) {
		f.index(wasm.OpRefFunc, pick(&f.choices, f.declared))
		return
	}
	for i := range f.tables {
		if tab := &f.tables[i]; tab.Elem == t && tab.Min > 0 && f.chance(128) {
			f.i32Const(int32(f.n(int(tab.Min))))
			f.index(wasm.OpTableGet, uint32(i))
			return
		}
	}
	f.simple(t)
}

// choose is a select.
func (f *fn) choose(t wasm.ValType, depth int) {
	f.expr(t, depth-1)
	f.expr(t, depth-1)
	f.expr(wasm.I32, depth-1)
	if t.IsRef() || f.chance(64) {
		f.op(wasm.OpSelectT, 1, byte(t))
		return
	}
	f.op(wasm.OpSelect)
}

func (f *fn) tee(t wasm.ValType, depth int) bool {
	l, ok := f.localOf(t)
	if ok {
		f.expr(t, depth-1)
		f.index(wasm.OpLocalTee, l)
	}
	return ok
}

// size is the size of something, or grows it, or a question about a reference.
func (f *fn) size(depth int) {
	tab := f.n(max(1, len(f.tables)))
	switch kind := f.n(5); {
	case kind == 0:
		f.op(wasm.OpMemorySize, 0)
	case kind == 1:
		f.expr(wasm.I32, depth-1)
		f.growth(f.m.Memories[0].HasMax, 1)
		f.op(wasm.OpMemoryGrow, 0)
	case kind == 2:
		f.expr(pick(&f.choices, types(wasm.FuncRef, wasm.ExternRef)), depth-1)
		f.op(wasm.OpRefIsNull)
	case f.direct || len(f.tables) == 0:
		f.simple(wasm.I32)
	case kind == 3:
		f.misc(wasm.MiscTableSize, uint32(tab))
	default:
		f.expr(f.tables[tab].Elem, depth-1)
		f.expr(wasm.I32, depth-1)
		f.growth(f.tables[tab].HasMax, 3)
		f.misc(wasm.MiscTableGrow, uint32(tab))
	}
}

// growth changes the number by which something grows, so that what has no maximum
// does not. Endless modules are for those who set one.
func (f *fn) growth(bounded bool, usual int32) {
	switch {
	case f.opt.Endless || bounded && !f.risky():
		f.mask(usual)
	case !bounded:
		f.mask(0)
	}
}

func (f *fn) mask(v int32) {
	f.i32Const(v)
	f.op(opAnd)
}

// address leaves one from which 300 bytes can be accessed.
func (f *fn) address(depth int) {
	f.expr(wasm.I32, depth)
	if !f.risky() {
		f.mask(0x7ff9)
	}
}

func (f *fn) memArg(a *access) {
	offset := uint32(f.byte())
	if f.risky() {
		offset = uint32(f.u64(4))
	}
	f.code = wasm.AppendU32(wasm.AppendU32(f.code, uint32(f.n(a.align+1))), offset)
}

func (f *fn) load(t wasm.ValType, depth int) {
	a := pick(&f.choices, loadsOf[t])
	f.address(depth - 1)
	if a.lanes > 0 {
		f.expr(wasm.V128, depth-1)
	}
	f.access(&a)
}

func (f *fn) store(depth int) {
	a := pick(&f.choices, stores)
	if a.typ == wasm.V128 && !f.simd {
		a = stores[0]
	}
	f.address(depth)
	f.expr(a.typ, depth)
	f.access(&a)
}

func (f *fn) access(a *access) {
	f.op(a.code)
	if a.code == wasm.OpSIMD {
		f.code = wasm.AppendU32(f.code, a.sub)
	}
	f.memArg(a)
	if a.lanes > 0 {
		f.op(byte(f.n(a.lanes)))
	}
}

// apply uses an operator.
func (f *fn) apply(o op, depth int) {
	for _, p := range o.params {
		f.expr(p, depth-1)
	}
	if o.traps != never && !f.risky() {
		f.keepFromTrapping(&o)
	}
	f.operator(&o)
	if o.nan != 0 && !f.rawNaNs {
		f.canonical(o.nan)
	}
}

func (f *fn) operator(o *op) {
	f.op(o.code)
	if o.code == wasm.OpMisc || o.code == wasm.OpSIMD {
		f.code = wasm.AppendU32(f.code, o.sub)
	}
	switch {
	case o.lanes == 32:
		for range 16 {
			f.code = append(f.code, byte(f.n(32)))
		}
	case o.lanes > 0:
		f.code = append(f.code, byte(f.n(o.lanes)))
	}
}

// keepFromTrapping changes the operand on top: a divisor to one above zero, a
// number to one in the range of every conversion.
func (f *fn) keepFromTrapping(o *op) {
	t := o.params[0]
	switch t {
	case wasm.I32:
		f.op(wasm.OpI32Const, 1, 0x76, wasm.OpI32Const, 1, opOr)
	case wasm.I64:
		f.op(wasm.OpI64Const, 1, 0x88, wasm.OpI64Const, 1, 0x84)
	default:
		l := f.temp(t)
		f.index(wasm.OpLocalTee, l)
		f.zero(t)
		f.index(wasm.OpLocalGet, l)
		abs, less, bound := byte(0x8b), byte(0x5d), binary.LittleEndian.AppendUint32([]byte{wasm.OpF32Const}, math.Float32bits(1<<30))
		if t == wasm.F64 {
			abs, less, bound = 0x99, 0x63, binary.LittleEndian.AppendUint64([]byte{wasm.OpF64Const}, math.Float64bits(1<<30))
		}
		f.op(abs)
		f.op(bound...)
		f.op(less, wasm.OpSelect)
		if o.code&1 == 1 { // unsigned
			f.op(abs)
		}
	}
}

// canonical replaces NaNs on top by the one of arithmetic, lane by lane.
func (f *fn) canonical(kind byte) {
	t, equal := wasm.F32, []byte{0x5b, wasm.OpSelect}
	nan := binary.LittleEndian.AppendUint32([]byte{wasm.OpF32Const}, 0x7fc00000)
	switch kind {
	case nanF64:
		t, equal = wasm.F64, []byte{0x61, wasm.OpSelect}
		nan = binary.LittleEndian.AppendUint64([]byte{wasm.OpF64Const}, 0x7ff8000000000000)
	case nanF32x4, nanF64x2:
		t, equal = wasm.V128, []byte{wasm.OpSIMD, 65, wasm.OpSIMD, 82}
		lanes := uint64(0x7fc000007fc00000)
		if kind == nanF64x2 {
			lanes, equal[1] = 0x7ff8000000000000, 71
		}
		nan = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{wasm.OpSIMD, 12}, lanes), lanes)
	}
	l := f.temp(t)
	f.index(wasm.OpLocalTee, l)
	f.op(nan...)
	f.index(wasm.OpLocalGet, l)
	f.index(wasm.OpLocalGet, l)
	f.op(equal...)
}
