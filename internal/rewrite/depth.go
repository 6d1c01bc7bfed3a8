package rewrite

import (
	"slices"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// The stack that is left is passed as an argument: the last one of every function that counts
// its frame or may call one that does. So nothing must be restored when a function returns,
// and the guest cannot write to it. If an indirect call may reach such a function, all
// functions whose address is taken have the argument.

// markDeep finds the functions that have the argument. order has callees before their
// callers, cycles aside, whose functions are counted anyway.
func (in *instrumenter) markDeep(order []int, next func(v, k int) int, table int) {
	for i := range in.funcs {
		in.funcs[i].deep = in.funcs[i].counted
	}
	for _, i := range in.takenList {
		in.deepTable = in.deepTable || in.funcs[i].counted
	}
	in.spreadDeep(order, next, table)
	if in.deepTable {
		for _, i := range in.takenList {
			in.funcs[i].deep = true
		}
		in.spreadDeep(order, next, table) // to their callers
	}
}

// spreadDeep gives the argument to callers of functions that have it.
func (in *instrumenter) spreadDeep(order []int, next func(v, k int) int, table int) {
	deep := func(v int) *bool {
		if v == table {
			return &in.deepTable
		}
		return &in.funcs[v].deep
	}
	for _, v := range order {
		is := deep(v)
		for k := 0; !*is; k++ {
			w := next(v, k)
			if w == -1 {
				break
			}
			*is = w >= 0 && *deep(w)
		}
	}
}

// isDeep reports whether a function, by its old index, has the argument.
func (in *instrumenter) isDeep(f uint32) bool {
	return int(f) >= in.imported && in.funcs[int(f)-in.imported].deep
}

// deepType is a function's type with the argument.
func (in *instrumenter) deepType(typ uint32) uint32 {
	if in.deepTypes[typ] == 0 {
		t := &in.src.Types[typ]
		in.deepTypes[typ] = 1 + in.typeOf(append(slices.Clone(t.Params), wasm.I64), t.Results)
	}
	return in.deepTypes[typ] - 1
}

// wrapped are the imported functions that need a wrapper with the argument, since their
// address is taken.
func (in *instrumenter) wrapped() []uint32 {
	if in.deepTable {
		return in.takenImports
	}
	return nil
}

// wrapper calls an imported function whose address is taken, without the
// argument.
func (in *instrumenter) wrapper(f uint32) wasm.Body {
	w := writer{in: in}
	for p := range in.src.Types[in.types[f]].Params {
		w.get(uint32(p))
		in.steps++
	}
	w.call(in.index[f])
	w.op(wasm.OpEnd)
	return wasm.Body{Code: w.buf}
}

// callDirect calls a function by its old index.
func (w *writer) callDirect(f uint32) {
	if w.in.isDeep(f) {
		w.get(w.depth)
	}
	w.call(w.in.index[f])
}

// callIndirect emits a call_indirect.
func (w *writer) callIndirect(ins *wasm.Instr, text []byte) {
	if !w.in.deepTable {
		w.raw(text)
		return
	}
	w.set(w.callee)
	w.get(w.depth)
	w.get(w.callee)
	w.op(wasm.OpCallIndirect)
	w.u32(w.in.deepType(ins.X))
	w.u32(ins.Y)
}

// chargeDepth subtracts a frame's weight from the stack that is left.
func (w *writer) chargeDepth(weight uint64) {
	w.get(w.depth)
	w.i64(int64(weight))
	w.op(opI64Sub)
	w.tee(w.depth)
	w.i64(0)
	w.op(opI64LtS, wasm.OpIf, blockEmpty)
	w.i32(CodeStack)
	w.call(w.in.exceeded)
	w.op(wasm.OpUnreachable, wasm.OpEnd)
}

// guestLocal emits an instruction on one of the guest's locals. The argument comes after the
// parameters, so the other locals move up by one.
func (w *writer) guestLocal(ins *wasm.Instr, params int, deep bool) {
	w.op(ins.Op)
	if deep && int(ins.X) >= params {
		w.u32(ins.X + 1)
	} else {
		w.u32(ins.X)
	}
}
