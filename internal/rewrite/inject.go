package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// nextBody is the body of wasmactors.next, the guest's import, which is implemented within
// the module. Parameter 0 is the length of the outbox.
//
//	if begun > ended { end the turn: ended = begun; out = length; spent += quantum - fuel; quantum = fuel }
//	if begun >= count || begun != 0 && stop { return 0 }
//	begun++; quantum = fuel; return 1
//
// A turn begins with what the one before has left, so that however many there are, the host is called as
// often as in one turn that spends as much.
func (in *instrumenter) nextBody() wasm.Body {
	w := writer{in: in}
	w.endTurn(0)
	w.global(wasm.OpGlobalGet, in.begun)
	w.global(wasm.OpGlobalGet, in.count)
	w.op(opI32GeU)
	w.global(wasm.OpGlobalGet, in.begun)
	w.i32(0)
	w.op(opI32Ne)
	w.global(wasm.OpGlobalGet, in.stop)
	w.op(opI32And, opI32Or, wasm.OpIf, blockEmpty)
	w.i32(0)
	w.op(wasm.OpReturn, wasm.OpEnd)
	w.global(wasm.OpGlobalGet, in.begun)
	w.i32(1)
	w.op(opI32Add)
	w.global(wasm.OpGlobalSet, in.begun)
	w.global(wasm.OpGlobalGet, in.fuel)
	w.global(wasm.OpGlobalSet, in.quantum)
	w.i32(1)
	w.op(wasm.OpEnd)
	return wasm.Body{Code: w.buf}
}

// endTurn ends the turn that has begun, if one has; the local holds the length of its outbox.
func (w *writer) endTurn(length uint32) {
	in := w.in
	w.global(wasm.OpGlobalGet, in.begun)
	w.global(wasm.OpGlobalGet, in.ended)
	w.op(opI32Ne, wasm.OpIf, blockEmpty)
	w.global(wasm.OpGlobalGet, in.begun)
	w.global(wasm.OpGlobalSet, in.ended)
	w.get(length)
	w.global(wasm.OpGlobalSet, in.outLen)
	w.global(wasm.OpGlobalGet, in.spent)
	w.global(wasm.OpGlobalGet, in.quantum)
	w.op(opI64Add)
	w.global(wasm.OpGlobalGet, in.fuel)
	w.op(opI64Sub)
	w.global(wasm.OpGlobalSet, in.spent)
	w.global(wasm.OpGlobalGet, in.fuel)
	w.global(wasm.OpGlobalSet, in.quantum)
	w.op(wasm.OpEnd)
}

// Parameters and locals of wa:enter.
const (
	enterOp, enterA, enterB, enterFuel = 0, 1, 2, 3
	enterResult                        = 4 // i32
)

// enterBody is the body of ExportEnter. That of a frozen module has reset, which emits the
// code that restores the globals.
func (in *instrumenter) enterBody(reset func(w *writer)) wasm.Body {
	w := writer{in: in}
	w.on(EnterTurn, func() {
		w.prepare()
		if in.next < 0 {
			w.i32(1)
			w.global(wasm.OpGlobalSet, in.begun)
		}
		w.get(enterA)
		w.callEntry(in.turn)
		w.set(enterResult)
		w.endTurn(enterResult)
		w.global(wasm.OpGlobalGet, in.begun)
		w.op(opI64ExtendI32)
		w.i64(32)
		w.op(opI64Shl)
		w.get(enterResult)
		w.op(opI64ExtendI32, opI64Or)
		w.global(wasm.OpGlobalGet, in.spent)
		w.op(wasm.OpReturn)
	})
	if reset != nil {
		w.on(EnterReset, func() {
			reset(&w)
			w.zeroResults()
		})
		w.on(EnterSetGlobal, func() {
			w.eachMutable(w.writeGlobal)
		})
	} else {
		w.on(EnterInitialize, func() {
			w.prepare()
			if in.src.Start != nil {
				w.callEntry(int(*in.src.Start))
			}
			if in.initialize >= 0 {
				w.callEntry(in.initialize)
			}
			w.zeroResults()
		})
		w.on(EnterInit, func() {
			w.prepare()
			w.callEntry(in.init)
			w.op(opI64ExtendI32)
			w.global(wasm.OpGlobalGet, in.fuel)
			w.op(wasm.OpReturn)
		})
	}
	w.on(EnterGlobal, func() {
		w.eachMutable(w.readGlobal)
	})
	w.op(wasm.OpUnreachable, wasm.OpEnd)
	return wasm.Body{Locals: []wasm.LocalGroup{{N: 1, Type: wasm.I32}}, Code: w.buf}
}

// callEntry calls a function of the guest's with the whole stack.
func (w *writer) callEntry(f int) {
	if w.in.isDeep(uint32(f)) {
		w.i64(int64(w.in.opt.StackBytes))
	}
	w.call(w.in.index[f])
}

// on emits code that runs body if the operation is op.
func (w *writer) on(op int32, body func()) { w.onValue(enterOp, op, body) }

func (w *writer) onValue(local uint32, value int32, body func()) {
	w.get(local)
	if value == 0 {
		w.op(opI32Eqz)
	} else {
		w.i32(value)
		w.op(opI32Eq)
	}
	w.op(wasm.OpIf, blockEmpty)
	body()
	w.op(wasm.OpEnd)
}

// prepare sets the hidden globals for an entry.
func (w *writer) prepare() {
	in := w.in
	w.get(enterFuel)
	w.global(wasm.OpGlobalSet, in.fuel)
	w.get(enterFuel)
	w.global(wasm.OpGlobalSet, in.quantum)
	w.i64(0)
	w.global(wasm.OpGlobalSet, in.spent)
	w.get(enterB)
	w.global(wasm.OpGlobalSet, in.count)
	for _, g := range []uint32{in.begun, in.ended, in.outLen} {
		w.i32(0)
		w.global(wasm.OpGlobalSet, g)
	}
}

func (w *writer) zeroResults() {
	w.i64(0)
	w.i64(0)
	w.op(wasm.OpReturn)
}

// eachMutable emits code that applies f to the guest's mutable global of number enterA, and
// returns; it traps if there is none. It is a table of jumps, since wazero's compiler takes
// quadratic time for a chain of thousands of ifs.
//
//	block $n ... block $0
//	  br_table enterA ... default $n
//	end $0: the first, return
//	...
//	end $n: unreachable
func (w *writer) eachMutable(f func(g uint32, t wasm.ValType)) {
	var list []uint32
	for i := range w.in.src.Globals {
		if w.in.src.Globals[i].Mutable {
			list = append(list, uint32(i))
		}
	}
	w.in.steps += uint64(len(list))
	for range len(list) + 1 {
		w.op(wasm.OpBlock, blockEmpty)
	}
	w.get(enterA)
	w.op(wasm.OpBrTable)
	w.u32(uint32(len(list)))
	for n := range len(list) + 1 {
		w.u32(uint32(n))
	}
	for _, g := range list {
		w.op(wasm.OpEnd)
		f(g, w.in.src.Globals[g].Type)
		w.op(wasm.OpUnreachable)
	}
	w.op(wasm.OpEnd, wasm.OpUnreachable)
}

// writeGlobal emits code that sets a global of a number type to the bits in enterFuel.
func (w *writer) writeGlobal(g uint32, t wasm.ValType) {
	if !t.IsNumber() {
		w.op(wasm.OpUnreachable)
		return
	}
	w.get(enterFuel)
	switch t {
	case wasm.I32:
		w.op(opI32WrapI64)
	case wasm.F32:
		w.op(opI32WrapI64, 0xbe /* f32.reinterpret_i32 */)
	case wasm.F64:
		w.op(0xbf /* f64.reinterpret_i64 */)
	}
	w.global(wasm.OpGlobalSet, g)
	w.zeroResults()
}

// readGlobal emits code that returns the bits of a global as two i64.
func (w *writer) readGlobal(g uint32, t wasm.ValType) {
	w.global(wasm.OpGlobalGet, g)
	switch t {
	case wasm.I32:
		w.op(opI64ExtendI32)
	case wasm.F32:
		w.op(0xbc /* i32.reinterpret_f32 */, opI64ExtendI32)
	case wasm.F64:
		w.op(0xbd /* i64.reinterpret_f64 */)
	case wasm.V128:
		w.op(wasm.OpSIMD, 29, 0) // i64x2.extract_lane 0
		w.global(wasm.OpGlobalGet, g)
		w.op(wasm.OpSIMD, 29, 1, wasm.OpReturn)
		return
	case wasm.FuncRef, wasm.ExternRef:
		w.op(wasm.OpRefIsNull, opI64ExtendI32)
	}
	w.i64(0)
	w.op(wasm.OpReturn)
}
