package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// WebAssembly does not specify the bits of a NaN that arithmetic results in: x86 makes
// negative ones, ARM positive ones, and they differ in whose operand's payload they keep. So
// that a guest computes the same on every processor, such results are made canonical before
// their bits can be seen. A NaN that is only loaded, stored or passed on keeps its bits, as
// the specification demands.
//
// A result that is only an operand of another arithmetic instruction, a comparison or a
// conversion to an integer is left as it is: its bits do not show there, or that result is
// made canonical.

// nanShape is the type of a float result whose NaN bits are unspecified.
type nanShape byte

const (
	notNaN nanShape = iota
	nanF32
	nanF64
	nanF32x4
	nanF64x2
	nanShapes
)

// arithmetic is the shape of an instruction's result, if its NaN bits are unspecified.
func arithmetic(ins *wasm.Instr) nanShape {
	switch op := ins.Op; {
	case op >= 0x8d && op <= 0x97, op == 0xb6:
		return nanF32
	case op >= 0x9b && op <= 0xa5, op == 0xbb:
		return nanF64
	case op == wasm.OpSIMD:
		switch s := ins.Sub; {
		case s >= 0xe3 && s <= 0xe9, s >= 103 && s <= 106, s == 94:
			return nanF32x4
		case s >= 0xef && s <= 0xf5, s == 116, s == 117, s == 122, s == 148, s == 95:
			return nanF64x2
		}
	}
	return notNaN
}

// hides reports whether an instruction's effect does not depend on the bits of a NaN of this
// shape as its operand.
func hides(ins *wasm.Instr, shape nanShape) bool {
	switch a := arithmetic(ins); {
	case a != notNaN:
		// Lanes of another width would see the bits.
		return a == shape || shape == nanF32 && ins.Op == 0xbb || shape == nanF64 && ins.Op == 0xb6 ||
			shape == nanF32x4 && ins.Op == wasm.OpSIMD && ins.Sub == 95 || shape == nanF64x2 && ins.Op == wasm.OpSIMD && ins.Sub == 94
	case ins.Op == wasm.OpDrop, ins.Op >= 0x5b && ins.Op <= 0x66, ins.Op >= 0xa8 && ins.Op <= 0xab, ins.Op >= 0xae && ins.Op <= 0xb1, ins.Op == wasm.OpMisc && ins.Sub < wasm.MiscMemoryInit:
		return true
	}
	return false
}

// openNaNs finds the instructions of function i whose results must be made canonical, by
// their offsets, and the shapes among them.
func (in *instrumenter) openNaNs(i int) (at map[int]nanShape, shapes [nanShapes]bool) {
	typ := &in.src.Types[in.src.Funcs[i]]
	locals := make([]nanShape, 0, uint64(len(typ.Params))+in.src.Code[i].NumLocals())
	declare := func(n uint32, t wasm.ValType) {
		shape := notNaN // vectors may be of either kind
		switch t {
		case wasm.F32:
			shape = nanF32
		case wasm.F64:
			shape = nanF64
		}
		for range n {
			locals = append(locals, shape)
		}
	}
	for _, p := range typ.Params {
		declare(1, p)
	}
	for _, g := range in.src.Code[i].Locals {
		declare(g.N, g.Type)
	}
	shown := make([]bool, len(locals))
	in.eachSeen(i, locals, func(uint32) bool { return false }, func(p producer) {
		if p.local >= 0 {
			shown[p.local] = true
		}
	})
	// A local that only instructions which hide them read may hold any NaN.
	at = map[int]nanShape{}
	in.eachSeen(i, locals, func(local uint32) bool { return !shown[local] }, func(p producer) {
		if p.local < 0 && p.shape != notNaN {
			at[p.start] = p.shape
			shapes[p.shape] = true
		}
	})
	return at, shapes
}

// producer is the instruction that has pushed a value onto the operand stack.
type producer struct {
	start int
	shape nanShape
	local int // that was read, or -1
}

// eachSeen reports the producers of the values of function i whose bits can be seen. Those of
// values in a local for which keeps is true cannot be seen.
func (in *instrumenter) eachSeen(i int, locals []nanShape, keeps func(local uint32) bool, seen func(p producer)) {
	body := &in.src.Code[i]
	var stack []producer // of the present block; values below it were reported
	it := wasm.NewInstrs(body.Code, body.Offset)
	var ins wasm.Instr
	for {
		ok, err := it.Next(&ins)
		if err != nil || !ok {
			return
		}
		in.steps++
		switch ins.Op {
		case wasm.OpBlock, wasm.OpLoop, wasm.OpIf, wasm.OpElse, wasm.OpEnd, wasm.OpBr, wasm.OpBrIf, wasm.OpBrTable, wasm.OpReturn, wasm.OpUnreachable, wasm.OpCall, wasm.OpCallIndirect:
			for _, p := range stack { // values that cross a block's border count as seen
				seen(p)
			}
			stack = stack[:0]
			continue
		case wasm.OpLocalTee: // the value stays
			if len(stack) > 0 && !keeps(ins.X) {
				seen(stack[len(stack)-1])
			}
			if len(stack) == 0 {
				stack = append(stack, producer{local: -1})
			}
			continue
		}
		takes, leaves := ins.Arity()
		for range takes {
			if len(stack) == 0 {
				break
			}
			if p := stack[len(stack)-1]; !hides(&ins, p.shape) && !(ins.Op == wasm.OpLocalSet && keeps(ins.X) && p.local < 0) {
				seen(p)
			}
			stack = stack[:len(stack)-1]
		}
		for range leaves {
			p := producer{ins.Start, arithmetic(&ins), -1}
			if ins.Op == wasm.OpLocalGet {
				p.local, p.shape = int(ins.X), locals[ins.X]
			}
			stack = append(stack, p)
		}
	}
}

// canonical replaces the value on the stack by the canonical NaN, if it is one.
func (w *writer) canonical(shape nanShape) {
	l := w.nans[shape]
	w.tee(l)
	switch shape {
	case nanF32:
		w.op(wasm.OpF32Const, 0, 0, 0xc0, 0x7f)
	case nanF64:
		w.op(wasm.OpF64Const, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f)
	case nanF32x4:
		w.op(wasm.OpSIMD, 12, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f)
	case nanF64x2:
		w.op(wasm.OpSIMD, 12, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f)
	}
	w.get(l)
	w.get(l)
	switch shape {
	case nanF32:
		w.op(0x60, wasm.OpSelect) // f32.ge: false if it is one, and one flag less to look at than f32.eq
	case nanF64:
		w.op(0x66, wasm.OpSelect) // f64.ge
	case nanF32x4:
		w.op(wasm.OpSIMD, 65, wasm.OpSIMD, 82) // f32x4.eq, v128.bitselect
	case nanF64x2:
		w.op(wasm.OpSIMD, 71, wasm.OpSIMD, 82) // f64x2.eq, v128.bitselect
	}
}
