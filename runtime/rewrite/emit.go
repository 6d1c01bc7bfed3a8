package rewrite

import "github.com/wasmactors/wasmactors/runtime/wasm"

// Opcodes of the arithmetic that is injected.
const (
	opI32Eqz       = 0x45
	opI32Eq        = 0x46
	opI32Ne        = 0x47
	opI32LtU       = 0x49
	opI32GeU       = 0x4f
	opI64LtS       = 0x53
	opI32Add       = 0x6a
	opI32Or        = 0x72
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI64Or        = 0x84
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendI32 = 0xad // unsigned
	blockEmpty     = 0x40
)

// writer emits code.
type writer struct {
	in   *instrumenter
	buf  []byte
	left uint32 // scratch local, i64
	size uint32 // scratch local, i32, where the function has one
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

// charge takes cost from the fuel and refuels if it is spent.
func (w *writer) charge(cost uint64) {
	w.global(wasm.OpGlobalGet, w.in.fuel)
	w.i64(int64(cost))
	w.subtract()
}

// subtract takes what is on the stack from the fuel below it.
func (w *writer) subtract() {
	w.op(opI64Sub)
	w.tee(w.left)
	w.global(wasm.OpGlobalSet, w.in.fuel)
	w.get(w.left)
	w.i64(0)
	w.op(opI64LtS, wasm.OpIf, blockEmpty)
	w.refuel()
	w.op(wasm.OpEnd)
}

func (w *writer) refuel() {
	w.get(w.left)
	w.call(w.in.refuel)
	w.global(wasm.OpGlobalSet, w.in.fuel)
}

// chargeBoth takes cost from the fuel and weight from the stack with one branch.
func (w *writer) chargeBoth(cost, weight uint64, fuel bool) {
	w.global(wasm.OpGlobalGet, w.in.depth)
	w.i64(int64(weight))
	w.op(opI64Sub)
	if !fuel {
		w.tee(w.left)
		w.global(wasm.OpGlobalSet, w.in.depth)
		w.get(w.left)
		w.i64(0)
		w.op(opI64LtS, wasm.OpIf, blockEmpty)
		w.i32(CodeStack)
		w.call(w.in.exceeded)
		w.op(wasm.OpEnd)
		return
	}
	w.global(wasm.OpGlobalSet, w.in.depth)
	w.global(wasm.OpGlobalGet, w.in.fuel)
	w.i64(int64(cost))
	w.op(opI64Sub)
	w.tee(w.left)
	w.global(wasm.OpGlobalSet, w.in.fuel)
	w.get(w.left)
	w.global(wasm.OpGlobalGet, w.in.depth)
	w.op(opI64Or)
	w.i64(0)
	w.op(opI64LtS, wasm.OpIf, blockEmpty)
	w.global(wasm.OpGlobalGet, w.in.depth)
	w.i64(0)
	w.op(opI64LtS, wasm.OpIf, blockEmpty)
	w.i32(CodeStack)
	w.call(w.in.exceeded)
	w.op(wasm.OpEnd)
	w.refuel()
	w.op(wasm.OpEnd)
}

// chargeSize charges for the i32 on the stack, which stays there: its value,
// most at the most, shifted right.
func (w *writer) chargeSize(shift int, most uint32) {
	w.tee(w.size)
	w.global(wasm.OpGlobalGet, w.in.fuel)
	w.get(w.size)
	w.i32(int32(most))
	w.get(w.size)
	w.i32(int32(most))
	w.op(opI32LtU, wasm.OpSelect)
	w.op(opI64ExtendI32)
	w.i64(int64(shift))
	w.op(opI64ShrU)
	w.subtract()
}

// afterGrow looks at the result of a grow, which stays on the stack: if it has
// succeeded it marks the instance and charges for the number in the scratch local.
func (w *writer) afterGrow(bit int32, cost int64, shifted bool) {
	// The result goes to the i64 local and back: it is an i32.
	w.op(opI64ExtendI32)
	w.tee(w.left)
	w.i64(0xffffffff)
	w.op(0x52 /* i64.ne */, wasm.OpIf, blockEmpty)
	w.mark(bit)
	w.global(wasm.OpGlobalGet, w.in.fuel)
	w.get(w.size)
	w.op(opI64ExtendI32)
	w.i64(cost)
	if shifted {
		w.op(opI64ShrU)
	} else {
		w.op(opI64Mul)
	}
	w.op(opI64Sub)
	w.global(wasm.OpGlobalSet, w.in.fuel) // the next charge notices
	w.op(wasm.OpEnd)
	w.get(w.left)
	w.op(0xa7 /* i32.wrap_i64 */)
}

// mark sets a bit of the dirty word.
func (w *writer) mark(bit int32) {
	w.global(wasm.OpGlobalGet, w.in.dirty)
	w.i32(bit)
	w.op(opI32Or)
	w.global(wasm.OpGlobalSet, w.in.dirty)
}

// misc copies an instruction of the 0xfc group, with what must come before.
func (w *writer) misc(ins *wasm.Instr, text []byte) {
	memory := uint32(min(uint64(w.in.opt.MemoryPages)<<16, 1<<32-1))
	switch ins.Sub {
	case wasm.MiscMemoryInit, wasm.MiscMemoryCopy, wasm.MiscMemoryFill:
		w.chargeSize(byteShift, memory)
	case wasm.MiscTableInit, wasm.MiscTableCopy, wasm.MiscTableFill:
		w.chargeSize(entryShift, w.in.opt.TableLimit)
		w.mark(DirtyTable)
	case wasm.MiscTableGrow:
		w.tee(w.size)
		w.raw(text)
		w.afterGrow(DirtyTable, entryShift, true)
		return
	case wasm.MiscDataDrop, wasm.MiscElemDrop:
		w.mark(DirtySegment)
	}
	w.raw(text)
}
