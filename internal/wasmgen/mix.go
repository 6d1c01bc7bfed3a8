package wasmgen

import "github.com/wasmactors/wasmactors/internal/wasm"

// Mix makes a guest with functions of pieces that are repeated, nested and mixed as
// the choices say. It is valid, and what it is made of is never called.
func Mix(choices []byte) *wasm.Module {
	b := &mixer{Scale: NewScale(), choices: choices}
	b.Globals(1 + b.pick(50))
	b.widths = []int{0, 1, 4, 30, 250}
	for _, k := range b.widths {
		b.wide = append(b.wide, b.Type(many(k, wasm.I32), many(k, wasm.I32)))
		b.callees = append(b.callees, b.Func(b.wide[len(b.wide)-1], 0, []byte{wasm.OpUnreachable}))
	}
	b.Table(64, repeated(b.callees[0], 64))
	for range 1 + b.pick(3) {
		b.locals = 1 + b.pick(8)*b.pick(60)
		b.room = 1000 + b.pick(40)*1000
		var code []byte
		for b.room > 0 && len(b.choices) > 0 {
			code = append(code, b.piece(0)...)
		}
		b.Func(2, b.locals, Code(code, []byte{wasm.OpLocalGet, 0}))
	}
	return b.Module
}

func repeated(f uint32, n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = f
	}
	return list
}

type mixer struct {
	Scale
	choices []byte
	wide    []uint32 // types of k values to k values
	callees []uint32
	widths  []int
	locals  int
	room    int // bytes that are left
}

// pick is a number below n; 0 when the choices are used up.
func (b *mixer) pick(n int) int {
	if len(b.choices) == 0 {
		return 0
	}
	c := int(b.choices[0])
	b.choices = b.choices[1:]
	return c * n / 256
}

// piece is code that leaves the stack as it was.
func (b *mixer) piece(depth int) []byte {
	get := func() []byte { return Op(wasm.OpLocalGet, b.pick(1+b.locals)) }
	set := func() []byte { return Op(wasm.OpLocalSet, b.pick(1+b.locals)) }
	repeat := func(code []byte) []byte {
		if len(code) == 0 {
			return nil
		}
		n := min(1+b.pick(16)*b.pick(64), max(b.room/len(code), 1))
		b.room -= n * len(code)
		return times(n, code...)
	}
	inner := func() []byte {
		if depth > 6 {
			return get()[:0]
		}
		return b.piece(depth + 1)
	}
	switch b.pick(16) {
	case 0:
		return repeat(Code(get(), Const(b.pick(1<<10)), []byte{opI32Add}, set()))
	case 1:
		return repeat(Code(get(), []byte{opI32Load, 2, 0}, set()))
	case 2:
		return repeat(Code(get(), []byte{wasm.OpIf, noBlock}, get(), set(), []byte{wasm.OpEnd}))
	case 3:
		return repeat(Code(get(), []byte{wasm.OpIf, noBlock}, inner(), []byte{wasm.OpElse}, inner(), []byte{wasm.OpEnd}))
	case 4:
		return repeat(Code([]byte{wasm.OpLoop, noBlock}, inner(), get(), []byte{wasm.OpBrIf, 0, wasm.OpEnd}))
	case 5:
		return Code([]byte{wasm.OpBlock, noBlock}, repeat(Code(get(), []byte{wasm.OpBrIf, 0})), inner(), []byte{wasm.OpEnd})
	case 6: // many loads one after the other, to stay alive
		n := min(b.locals, max(b.room/8, 1))
		b.room -= 6 * n
		return each(6*n, func(i int) []byte {
			return Code(Op(wasm.OpLocalGet, 0), []byte{opI32Load, 2, 0}, Op(wasm.OpLocalSet, 1+i%b.locals))
		})
	case 7:
		n := min(b.locals, max(b.room/8, 1))
		b.room -= 5 * n
		return each(5*n, func(i int) []byte { return Code(Op(wasm.OpLocalGet, 1+i%b.locals), []byte{wasm.OpDrop}) })
	case 8:
		k := b.pick(len(b.wide))
		return b.with(k, repeat(Op(wasm.OpCall, int(b.callees[k]))))
	case 9:
		k := b.pick(len(b.wide))
		return b.with(k, Code(blockOf(wasm.OpBlock, b.wide[k]), repeat(Code(get(), []byte{wasm.OpBrIf, 0})), []byte{wasm.OpEnd}))
	case 10:
		k := b.pick(len(b.wide))
		return b.with(k, repeat(Code(get(), blockOf(wasm.OpIf, b.wide[k]), []byte{wasm.OpElse, wasm.OpEnd})))
	case 11:
		k := b.pick(len(b.wide))
		return b.with(k, repeat(Code(blockOf(wasm.OpLoop, b.wide[k]), get(), []byte{wasm.OpBrIf, 0, wasm.OpEnd})))
	case 12:
		n := min(1+b.pick(64)*b.pick(64), max(b.room, 1))
		b.room -= n
		return Code([]byte{wasm.OpBlock, noBlock, wasm.OpBlock, noBlock}, get(), Op(wasm.OpBrTable, n), each(n+1, func(i int) []byte { return []byte{byte(i % 2)} })[:n+1], []byte{wasm.OpEnd}, inner(), []byte{wasm.OpEnd})
	case 13:
		g := b.pick(len(b.Module.Globals))
		return repeat(Code(Op(wasm.OpGlobalGet, g), Op(wasm.OpGlobalSet, b.pick(len(b.Module.Globals)))))
	case 14:
		return repeat([][]byte{
			Code(Const(0), Const(0), Const(9), []byte{wasm.OpMisc, 11, 0}), Code(get(), get(), get(), []byte{wasm.OpMisc, 10, 0, 0}), Code(get(), []byte{wasm.OpMemoryGrow, 0, wasm.OpDrop}),
			Code(get(), get(), []byte{0x6d, wasm.OpDrop}), Code(get(), []byte{0xb7, 0xaa, wasm.OpDrop}), {wasm.OpI32Const, 0, wasm.OpCallIndirect, 0, 0},
		}[b.pick(6)])
	}
	return Code([]byte{wasm.OpBlock, noBlock}, repeat(inner()), []byte{wasm.OpEnd})
}

// with puts the k-th width of values on the stack, and drops them behind the code.
func (b *mixer) with(k int, code []byte) []byte {
	n := b.widths[k]
	b.room -= 3 * n
	return Code(times(n, wasm.OpLocalGet, 0), code, times(n, wasm.OpDrop))
}

// times repeats a piece n times.
func times(n int, piece ...byte) []byte {
	var b []byte
	for range n {
		b = append(b, piece...)
	}
	return b
}
