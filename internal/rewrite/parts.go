package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// partBytes is how much of memory one instruction fills or copies at most: more is done in parts, each charged
// before it is done, so that the host is called between them. A part takes 0.1 ms, and 1 ms if none of it was
// touched before.
const partBytes = 1 << 20

// parts is the body of fillMemory and copyMemory. Parameter 0 is where to, 1 the value or where
// from, 2 how much.
//
//	while n > partBytes and all of it is within the memory {
//	  charge for a part
//	  fill: the first part; to += partBytes
//	  copy: the first part if to <= from; to, from += partBytes; else the last one
//	  n -= partBytes
//	}
//	charge for the rest; do it, or trap
func (w *writer) parts(copies bool) {
	const to, from, n = 0, 1, 2
	advance := func(local uint32) {
		w.get(local)
		w.i32(partBytes)
		w.op(opI32Add)
		w.set(local)
	}
	within := func(at uint32) {
		w.get(at)
		w.op(opI64ExtendI32)
		w.get(n)
		w.op(opI64ExtendI32, opI64Add)
		w.memoryBytes()
		w.op(opI64LeU)
	}
	instruction := func() {
		if copies {
			w.op(wasm.OpMisc, byte(wasm.MiscMemoryCopy), 0, 0)
		} else {
			w.op(wasm.OpMisc, byte(wasm.MiscMemoryFill), 0)
		}
	}
	w.op(wasm.OpLoop, blockEmpty)
	w.get(n)
	w.i32(partBytes)
	w.op(opI32GtU, wasm.OpIf, blockEmpty)
	within(to)
	if copies {
		within(from)
		w.op(opI32And)
	}
	w.op(wasm.OpIf, blockEmpty)
	w.i64(partBytes >> byteShift)
	w.set(w.cost)
	w.charge(inLocal)
	if copies {
		w.get(to)
		w.get(from)
		w.op(opI32LeU, wasm.OpIf, blockEmpty)
	}
	w.get(to)
	w.get(from)
	w.i32(partBytes)
	instruction()
	advance(to)
	if copies {
		advance(from)
		w.op(wasm.OpElse)
		for _, at := range []uint32{to, from} {
			w.get(at)
			w.get(n)
			w.op(opI32Add)
			w.i32(partBytes)
			w.op(opI32Sub)
		}
		w.i32(partBytes)
		instruction()
		w.op(wasm.OpEnd)
	}
	w.get(n)
	w.i32(partBytes)
	w.op(opI32Sub)
	w.set(n)
	w.op(wasm.OpBr, 2, wasm.OpEnd, wasm.OpEnd, wasm.OpEnd)
	w.get(to)
	w.get(from)
	w.get(n)
	w.chargeSize(byteShift, w.memoryBytes)
	instruction()
}
