package wasmgen

import (
	"encoding/binary"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// makeElems fills the tables, and adds passive and declarative segments. Those of
// odd index may be dropped by the code.
func (g *generator) makeElems() {
	for t := range g.tables {
		tab := &g.tables[t]
		size := int(tab.Min)
		for range 1 + g.n(3) {
			at := 0
			if size > 0 && !g.chance(180) {
				at = g.n(size)
			}
			n := size - at
			if !g.chance(180) {
				n = g.n(n + 1)
			}
			if g.direct {
				at, n = 0, size
			}
			e := g.elem(tab.Elem, n)
			e.Mode, e.Table, e.Explicit = wasm.Active, uint32(t), g.chance(30)
			e.Offset = append(wasm.AppendS64(wasm.Expr{wasm.OpI32Const}, int64(at)), wasm.OpEnd)
			if g.trapping && g.chance(4) { // instantiation fails
				e.Offset = append(wasm.AppendS64(wasm.Expr{wasm.OpI32Const}, int64(size+1)), wasm.OpEnd)
			}
			copy(tab.entries[at:], contents(&e))
			g.m.Elems = append(g.m.Elems, e)
		}
	}
	if !g.direct {
		for range g.n(4) {
			t := wasm.FuncRef
			if g.chance(50) {
				t = wasm.ExternRef
			}
			e := g.elem(t, g.n(6))
			e.Mode = wasm.Passive
			if g.chance(50) {
				e.Mode = wasm.Declarative
			}
			g.m.Elems = append(g.m.Elems, e)
		}
	}
	for i := range g.m.Elems {
		for _, f := range contents(&g.m.Elems[i]) {
			if f >= 0 {
				g.declared = append(g.declared, uint32(f))
			}
		}
	}
}

// elem is a segment of n entries.
func (g *generator) elem(t wasm.ValType, n int) wasm.Elem {
	e := wasm.Elem{Type: t, UseExprs: t != wasm.FuncRef || g.chance(90), Funcs: []uint32{}}
	if e.UseExprs {
		e.Funcs = nil
	}
	for range n {
		f := g.function()
		switch {
		case !e.UseExprs:
			e.Funcs = append(e.Funcs, f)
		case t != wasm.FuncRef || g.chance(60):
			e.Exprs = append(e.Exprs, wasm.Expr{wasm.OpRefNull, byte(t), wasm.OpEnd})
		default:
			e.Exprs = append(e.Exprs, append(wasm.AppendU32(wasm.Expr{wasm.OpRefFunc}, f), wasm.OpEnd))
		}
	}
	return e
}

// contents are the functions of a segment, -1 for null.
func contents(e *wasm.Elem) []int32 {
	var list []int32
	for _, f := range e.Funcs {
		list = append(list, int32(f))
	}
	for _, x := range e.Exprs {
		f := int32(-1)
		if x[0] == wasm.OpRefFunc {
			v, _ := binary.Uvarint(x[1:])
			f = int32(v)
		}
		list = append(list, f)
	}
	return list
}

func (g *generator) makeData() {
	for range g.n(4) {
		d := wasm.Data{Bytes: make([]byte, g.n(24))}
		for i := range d.Bytes {
			d.Bytes[i] = g.byte()
		}
		d.Mode = wasm.Passive
		if !g.chance(100) && g.m.Memories[0].Min > 0 {
			at := g.n(0x7fff)
			if g.trapping && g.chance(4) {
				at = int(g.m.Memories[0].Min) << 16
			}
			d.Mode, d.Explicit = wasm.Active, g.chance(30)
			d.Offset = append(wasm.AppendS64(wasm.Expr{wasm.OpI32Const}, int64(at)), wasm.OpEnd)
		}
		g.m.Data = append(g.m.Data, d)
	}
	g.segments = len(g.m.Data)
	if g.segments > 0 {
		n := uint32(g.segments)
		g.m.DataCount = &n
	}
}
