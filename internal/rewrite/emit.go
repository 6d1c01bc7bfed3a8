package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// Opcodes of the arithmetic that is injected.
const (
	opI32Eqz       = 0x45
	opI32Eq        = 0x46
	opI32Ne        = 0x47
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI32GeU       = 0x4f
	opI64Ne        = 0x52
	opI64LtS       = 0x53
	opI64LtU       = 0x54
	opI64LeU       = 0x58
	opI64GeS       = 0x59
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opI32Or        = 0x72
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI64Or        = 0x84
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI32WrapI64   = 0xa7
	opI64ExtendI32 = 0xad // unsigned
	blockEmpty     = 0x40
	blockNone      = -64 // the same, as wasm.Instr has it
)

// writer emits code.
type writer struct {
	in  *instrumenter
	buf []byte

	opened
	depth  uint32 // parameter, i64, where the function has it
	callee uint32 // scratch local, i32, where the function needs it

	sites sites // where the code comes from
	noted bool  // local 0 is noted when it refuels

	compact bool              // loops charge by calling a helper function
	local   bool              // the fuel is in a local
	fuel    uint32            // that local, i64
	after   uint32            // scratch local of the same, i64
	cost    uint32            // scratch local, i64, where the function has one
	size    uint32            // scratch local, i32, likewise
	filled  uint32            // scratch local, i32: where a fill by stores begins
	filling uint32            // scratch local, v128: what it writes
	nans    [nanShapes]uint32 // scratch locals for values that may be NaN
}

func (w *writer) op(ops ...byte)  { w.buf = append(w.buf, ops...) }
func (w *writer) raw(text []byte) { w.buf = append(w.buf, text...) }
func (w *writer) u32(v uint32)    { w.buf = wasm.AppendU32(w.buf, v) }
func (w *writer) get(l uint32)    { w.op(wasm.OpLocalGet); w.u32(l) }
func (w *writer) set(l uint32)    { w.op(wasm.OpLocalSet); w.u32(l) }
func (w *writer) tee(l uint32)    { w.op(wasm.OpLocalTee); w.u32(l) }
func (w *writer) call(f uint32)   { w.op(wasm.OpCall); w.u32(f) }

func (w *writer) i32(v int32) {
	w.op(wasm.OpI32Const)
	w.buf = wasm.AppendS64(w.buf, int64(v))
}

func (w *writer) i64(v int64) {
	w.op(wasm.OpI64Const)
	w.buf = wasm.AppendS64(w.buf, v)
}

func (w *writer) global(op byte, g uint32) { w.op(op); w.u32(g) }

// mark sets a bit of the dirty word.
func (w *writer) mark(bit int32) {
	w.global(wasm.OpGlobalGet, w.in.dirty)
	w.i32(bit)
	w.op(opI32Or)
	w.global(wasm.OpGlobalSet, w.in.dirty)
}

// misc emits an instruction of the 0xfc group, after its charge.
func (w *writer) misc(ins *wasm.Instr, text []byte) {
	switch ins.Sub {
	case wasm.MiscMemoryInit:
		w.callCharger(chargeBytes)
	case wasm.MiscMemoryCopy:
		w.callCharger(copyMemory)
		return
	case wasm.MiscMemoryFill:
		w.callCharger(fillMemory)
		return
	case wasm.MiscTableInit, wasm.MiscTableCopy, wasm.MiscTableFill:
		w.callCharger(chargeEntries)
		w.mark(DirtyTable)
	case wasm.MiscTableGrow:
		w.tee(w.size)
		w.raw(text)
		w.afterGrow(DirtyTable, entryShift, true, func() {})
		return
	case wasm.MiscDataDrop, wasm.MiscElemDrop:
		w.mark(DirtySegment)
	}
	w.raw(text)
}
