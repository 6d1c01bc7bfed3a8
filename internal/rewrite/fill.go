package rewrite

import (
	"encoding/binary"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// A memory.fill of a constant, small size becomes stores. wazero makes of the instruction a loop of copies, which takes
// some 150 instructions for 64 bytes; LLVM writes one wherever more than a few words are cleared, so compilers that
// build on it clear a function's variables like that, in each call.

// mostStored is up to how many bytes stores do it: 32 of 16 bytes.
const mostStored = 512

// leastStoreRoom is what stores of a small module may take besides, in bytes of code.
const leastStoreRoom = 1 << 10

// storesBytes is about how much code the stores of n bytes take, and the constants before them.
func storesBytes(n uint32) int { return 32 + 10*int((n+15)/16) }

// byStores reports whether there is room for the stores of n bytes, and takes it: all stores together may be as much code
// as the module has, so that a module that does nothing but fill does not become thirty times as large. Further fills stay
// what they are.
func (in *instrumenter) byStores(n uint32) bool {
	if in.storeRoom -= storesBytes(n); in.storeRoom < 0 {
		in.storeRoom = 0
		return false
	}
	return true
}

// Stores, by the bytes that they write.
const (
	opI32Store   = 0x36
	opI64Store   = 0x37
	opI32Store8  = 0x3a
	opI32Store16 = 0x3b
	simdStore    = 11
	simdConst    = 12
)

// fillsByStores reports whether ins is such a memory.fill. value and size are the two instructions before it.
func fillsByStores(value, size, ins *wasm.Instr) bool {
	return ins.Op == wasm.OpMisc && ins.Sub == wasm.MiscMemoryFill &&
		size.Op == wasm.OpI32Const && size.X > 0 && size.X <= mostStored && value.Op == wasm.OpI32Const
}

// stores fills n bytes from the address on the stack. The first store is the one that reaches farthest: if it is
// within the memory, all are, so that a fill beyond the memory changes nothing. The last two may overlap.
func (w *writer) stores(value byte, n uint32) {
	var pattern [16]byte
	for i := range pattern {
		pattern[i] = value
	}
	word := binary.LittleEndian.Uint64(pattern[:])
	var size uint32
	var store func(offset uint32)
	scalar := func(bytes uint32, op byte, value func()) {
		size = bytes
		store = func(offset uint32) {
			w.get(w.filled)
			value()
			w.op(op, 0)
			w.u32(offset)
		}
	}
	w.set(w.filled)
	switch {
	case n >= 16:
		w.op(wasm.OpSIMD, simdConst)
		w.raw(pattern[:])
		w.set(w.filling)
		size = 16
		store = func(offset uint32) {
			w.get(w.filled)
			w.get(w.filling)
			w.op(wasm.OpSIMD, simdStore, 0)
			w.u32(offset)
		}
	case n >= 8:
		scalar(8, opI64Store, func() { w.i64(int64(word)) })
	case n >= 4:
		scalar(4, opI32Store, func() { w.i32(int32(uint32(word))) })
	case n >= 2:
		scalar(2, opI32Store16, func() { w.i32(int32(uint16(word))) })
	default:
		scalar(1, opI32Store8, func() { w.i32(int32(value)) })
	}
	store(n - size)
	for at := uint32(0); at+size < n; at += size {
		store(at)
	}
	w.in.steps += uint64(n / size)
}
