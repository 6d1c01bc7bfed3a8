package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// The fuel lives in a hidden global or, in functions that gain by it, in a local
// that is put into the global before whoever else looks at it does: at calls and
// at the end. After a trap the global tells what the fuel was at the last such
// place: less than was spent, but always the same.

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

// publish puts the local fuel into the global.
func (w *writer) publish() {
	if w.local {
		w.get(w.fuel)
		w.global(wasm.OpGlobalSet, w.in.fuel)
	}
}

// take is its inverse.
func (w *writer) take() {
	if w.local {
		w.global(wasm.OpGlobalGet, w.in.fuel)
		w.set(w.fuel)
	}
}

// pushCost emits a cost, an i64: a number or what is in the scratch local.
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
// wazero gives a block where two paths join the registers of the path that comes
// first in the code; were it the one with the call, whatever is in registers would
// be read from the stack again behind every charge. A loop's head has the
// registers of the path into it.

// charge takes a cost from the fuel, and refuels before if there is not enough.
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

// refuel gets as much fuel as the cost, at least.
func (w *writer) refuel(cost pushCost) {
	if w.local { // the global grows by as much as the local
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

// loop opens a loop that charges for every iteration. It stands in another one,
// which refuels, so that its own variables are never live across a call: wazero
// would write each of them to the stack in every iteration. What is rare stands in
// an else, which wazero puts behind the rest.
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
// Compiling deeply nested loops takes wazero long, and this nests them more.
func (w *writer) loop(head []byte, takes bool, l *loop) {
	cost := l.cost
	if w.compact {
		w.enter(head, takes)
		w.i64(int64(cost))
		w.callCharger(chargeCost)
		return
	}
	// What is on the stack belongs to a loop that takes it: it cannot stand in another.
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
	b.charged, b.cost, b.around = true, cost, around
}

// manyLoops is how many loops a function may have for their charges to be in line:
// in those with more, they call a helper function.
const manyLoops = 256

// aroundLoop is how many blocks loop opens around the guest's.
const aroundLoop = 2

// deepLoops is how many nested loops are charged in this way; those inside refuel
// where they charge.
const deepLoops = 16

// endLoop closes what loop has opened.
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

// enough is whether there is as much fuel as the cost.
func (w *writer) enough(cost pushCost) {
	w.getFuel()
	cost(w)
	w.op(opI64GeS)
}

// chargeSize charges for the i32 on the stack, which stays there: its value
// shifted right. What is larger than most pushes, an i64, traps and costs no more.
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

// callCharger calls a helper function, which works with the global fuel.
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
		w.afterGrow(DirtyMemory, pageCost, false)
	}
	w.op(wasm.OpEnd)
	return wasm.Body{Locals: locals, Code: w.buf}
}

// afterGrow looks at the result of a grow, which stays on the stack: if it has
// succeeded it marks the instance and charges for the number in the scratch local.
func (w *writer) afterGrow(bit int32, cost int64, shifted bool) {
	// The result goes to the i64 local and back: it is an i32.
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
	w.setFuel() // the next charge notices
	w.op(wasm.OpEnd)
	w.get(w.cost)
	w.op(opI32WrapI64)
}
