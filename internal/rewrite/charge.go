package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// The fuel is in a hidden global or, in functions that are faster so, in a local. The local
// is written to the global before anything else may read it: at calls and at the end. After a
// trap the global has the fuel of the last such place. So it may show too little as spent,
// but it is the same everywhere.

func (w *writer) getFuel() {
	if w.local {
		w.get(w.fuel)
	} else {
		w.global(wasm.OpGlobalGet, w.in.fuel)
	}
}

func (w *writer) setFuel() {
	if w.local {
		w.set(w.fuel)
	} else {
		w.global(wasm.OpGlobalSet, w.in.fuel)
	}
}

// publish writes the local fuel to the global.
func (w *writer) publish() {
	if w.local {
		w.get(w.fuel)
		w.global(wasm.OpGlobalSet, w.in.fuel)
	}
}

// take reads the global fuel into the local.
func (w *writer) take() {
	if w.local {
		w.global(wasm.OpGlobalGet, w.in.fuel)
		w.set(w.fuel)
	}
}

// pushCost emits code that pushes a cost, an i64: a constant or the scratch local.
type pushCost func(w *writer)

func fixed(cost uint64) pushCost { return func(w *writer) { w.i64(int64(cost)) } }

func inLocal(w *writer) { w.get(w.cost) }

// Wherever fuel is charged, the code that refuels is a branch that jumps back to
// a loop's head and tries again:
//
//	loop
//	  fuel < cost
//	  if  refuel, br 1  end
//	end
//	fuel -= cost
//
// Where two paths join, wazero uses the registers of the path that comes first in the code.
// If that were the path with the call, all registers would be read from the stack again
// after every charge. At a loop's head it uses the registers of the path into the loop.

// charge subtracts a cost from the fuel, after refuelling if there is not enough.
func (w *writer) charge(cost pushCost) {
	w.op(wasm.OpLoop, blockEmpty)
	w.getFuel()
	cost(w)
	w.op(opI64LtS, wasm.OpIf, blockEmpty)
	w.refuel(cost)
	w.op(wasm.OpBr, 1, wasm.OpEnd)
	w.op(wasm.OpEnd)
	w.spend(cost)
}

func (w *writer) spend(cost pushCost) {
	w.getFuel()
	cost(w)
	w.op(opI64Sub)
	w.setFuel()
}

// refuel calls the host for at least as much fuel as the cost.
func (w *writer) refuel(cost pushCost) {
	w.noteBlock()
	if w.local { // add to the global what is added to the local
		w.global(wasm.OpGlobalGet, w.in.fuel)
	}
	w.getFuel()
	cost(w)
	w.op(opI64Sub)
	w.call(w.in.refuel)
	cost(w)
	w.op(opI64Add)
	if w.local {
		w.tee(w.after)
		w.op(opI64Add)
		w.get(w.fuel)
		w.op(opI64Sub)
		w.global(wasm.OpGlobalSet, w.in.fuel)
		w.get(w.after)
	}
	w.setFuel()
}

// loop opens a loop that charges for every iteration. An outer loop around it refuels, so
// that the inner loop's variables are never live across a call: otherwise wazero would write
// each of them to the stack in every iteration. Rare code is in an else branch, which wazero
// places after the rest.
//
//	loop
//	  fuel >= cost
//	  if
//	    loop
//	      fuel >= cost
//	      if
//	        fuel -= cost
//	        ...
//	      else  br 3  end
//	    end
//	  else  refuel, br 1  end
//	end
//
// wazero takes long to compile deeply nested loops, and this nests them more: see deepLoops.
func (w *writer) loop(head []byte, takes bool, l *loop) {
	cost := l.cost
	if w.compact {
		w.enter(head, takes)
		w.i64(int64(cost))
		w.callCharger(chargeCost)
		return
	}
	// A loop with parameters takes them from the stack, so no loop can be put around it.
	if takes || w.loops >= deepLoops {
		w.enter(head, takes)
		w.charge(fixed(cost))
		return
	}
	around := uint32(0)
	if !l.calls {
		w.raw(head)
		w.enough(fixed(cost))
		w.op(wasm.OpIf)
		w.raw(head[1:])
		around = aroundLoop
	}
	w.height += around
	w.enter(head, false)
	w.enough(fixed(cost))
	w.op(wasm.OpIf)
	w.raw(head[1:])
	w.height++
	w.spend(fixed(cost))
	w.loops++
	b := &w.blocks[len(w.blocks)-1]
	b.charged, b.cost, b.around, b.from = true, cost, around, w.sites.now
}

// manyLoops is the most loops that a function may have with charges in line; with more, they
// call a helper function.
const manyLoops = 256

// aroundLoop is how many blocks loop opens around the guest's.
const aroundLoop = 2

// deepLoops is how deeply nested loops have an outer loop; those nested deeper refuel in
// line.
const deepLoops = 16

// endLoop closes the blocks that loop has opened.
func (w *writer) endLoop(cost uint64, around uint32) {
	if around == 0 {
		w.op(wasm.OpElse)
		w.refuel(fixed(cost))
		w.op(wasm.OpBr, 1, wasm.OpEnd)
		w.op(wasm.OpEnd)
		return
	}
	w.op(wasm.OpElse, wasm.OpBr, 3, wasm.OpEnd)
	w.op(wasm.OpEnd)
	w.op(wasm.OpElse)
	w.refuel(fixed(cost))
	w.op(wasm.OpBr, 1, wasm.OpEnd)
	w.op(wasm.OpEnd)
}

// enough pushes whether there is as much fuel as the cost.
func (w *writer) enough(cost pushCost) {
	w.getFuel()
	cost(w)
	w.op(opI64GeS)
}

// chargeSize charges for the i32 on the stack, its value shifted right, and leaves it there.
// It charges at most what most pushes, an i64: an instruction with a larger operand traps.
func (w *writer) chargeSize(shift int, most func()) {
	w.tee(w.size)
	w.get(w.size)
	w.op(opI64ExtendI32)
	most()
	w.get(w.size)
	w.op(opI64ExtendI32)
	most()
	w.op(opI64LtU, wasm.OpSelect)
	w.i64(int64(shift))
	w.op(opI64ShrU)
	w.set(w.cost)
	w.charge(inLocal)
}

// memoryBytes pushes the size of the memory.
func (w *writer) memoryBytes() {
	w.op(wasm.OpMemorySize, 0, opI64ExtendI32)
	w.i64(16)
	w.op(opI64Shl)
}

func (w *writer) tableLimit() { w.i64(int64(w.in.opt.TableLimit)) }

// callCharger calls a helper function, which charges the global fuel.
func (w *writer) callCharger(k int) {
	w.publish()
	w.call(w.in.chargers[k])
	w.take()
}

// charger is a helper function; see the constants.
func (in *instrumenter) charger(k int) wasm.Body {
	w := writer{in: in}
	var locals []wasm.LocalGroup
	switch k {
	case chargeCost:
		w.cost = 0
		w.charge(inLocal)
	case fillMemory, copyMemory:
		w.size, w.cost = 2, 3
		locals = []wasm.LocalGroup{{N: 1, Type: wasm.I64}}
		w.parts(k == copyMemory)
	default:
		w.size, w.cost = 0, 1
		locals = []wasm.LocalGroup{{N: 1, Type: wasm.I64}}
		w.get(w.size)
	}
	switch k {
	case chargeBytes:
		w.chargeSize(byteShift, w.memoryBytes)
	case chargeEntries:
		w.chargeSize(entryShift, w.tableLimit)
	case growMemory:
		w.op(wasm.OpMemoryGrow, 0)
		w.afterGrow(DirtyMemory, pageCost, false, w.lookUp)
	}
	w.op(wasm.OpEnd)
	return wasm.Body{Locals: locals, Code: w.buf}
}

// lookUp lets the host change what is left of the fuel.
func (w *writer) lookUp() {
	w.getFuel()
	w.call(w.in.refuel)
	w.setFuel()
}

// afterGrow checks the result of a grow, which stays on the stack. If the grow has succeeded,
// it sets the dirty bit, charges for the amount in the scratch local, and emits what follows.
func (w *writer) afterGrow(bit int32, cost int64, shifted bool, then func()) {
	// The result, an i32, is saved in the i64 local.
	w.op(opI64ExtendI32)
	w.tee(w.cost)
	w.i64(0xffffffff)
	w.op(opI64Ne, wasm.OpIf, blockEmpty)
	w.mark(bit)
	w.getFuel()
	w.get(w.size)
	w.op(opI64ExtendI32)
	w.i64(cost)
	if shifted {
		w.op(opI64ShrU)
	} else {
		w.op(opI64Mul)
	}
	w.op(opI64Sub)
	w.setFuel() // may be below zero, which the next charge notices
	then()
	w.op(wasm.OpEnd)
	w.get(w.cost)
	w.op(opI32WrapI64)
}
