package wasmgen

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Family makes guests of any size out of one construct. They can be loaded and do nothing; the
// construct lies in functions that are never called.
type Family struct {
	Name string
	// Make makes one of about this many bytes.
	Make func(size int) *wasm.Module
}

// Scale is a guest in the making.
type Scale struct{ *wasm.Module }

const (
	opI32Add  = 0x6a
	opI32Load = 0x28
	noBlock   = 0x40
)

// NewScale is the least guest that loads: types () -> (), () -> i32 and i32 ->
// i32, a page of memory with a control block.
func NewScale() Scale {
	about := abi.AppendDescription(nil, &abi.Description{ABI: abi.Version, SDK: "scale", Types: []string{"a"}})
	var block []byte
	for _, v := range []uint32{abi.Version, 0x1000, 1024, 0x2000, 1024, 96, uint32(len(about)), 0} {
		block = binary.LittleEndian.AppendUint32(block, v)
	}
	at := func(v int64) wasm.Expr {
		return append(wasm.AppendS64(wasm.Expr{wasm.OpI32Const}, v), wasm.OpEnd)
	}
	i32 := types(wasm.I32)
	return Scale{&wasm.Module{
		Types:    []wasm.FuncType{{}, {Results: i32}, {Params: i32, Results: i32}},
		Funcs:    []uint32{1, 2},
		Memories: []wasm.Limits{{Min: 1}},
		Exports: []wasm.Export{
			{Name: "memory", Kind: wasm.KindMemory},
			{Name: "wasmactors_init", Kind: wasm.KindFunc, Index: 0},
			{Name: "wasmactors_turn", Kind: wasm.KindFunc, Index: 1},
		},
		Code: []wasm.Body{{Code: []byte{wasm.OpI32Const, 16, wasm.OpEnd}}, {Code: []byte{wasm.OpI32Const, 0, wasm.OpEnd}}},
		Data: []wasm.Data{{Offset: at(16), Bytes: block}, {Offset: at(96), Bytes: about}},
	}}
}

// Type adds a type.
func (s Scale) Type(params, results []wasm.ValType) uint32 {
	s.Types = append(s.Types, wasm.FuncType{Params: params, Results: results})
	return uint32(len(s.Types) - 1)
}

// Func adds a function with locals of type i32; the end is added to its code.
func (s Scale) Func(typ uint32, locals int, code []byte) uint32 {
	body := wasm.Body{Code: append(code, wasm.OpEnd)}
	if locals > 0 {
		body.Locals = []wasm.LocalGroup{{N: uint32(locals), Type: wasm.I32}}
	}
	s.Funcs = append(s.Funcs, typ)
	s.Code = append(s.Code, body)
	return uint32(s.NumImported(wasm.KindFunc) + len(s.Funcs) - 1)
}

// Import adds imports of one function; it comes before functions are added.
func (s Scale) Import(n int, module, name string, typ uint32) {
	for range n {
		s.Imports = append(s.Imports, wasm.Import{Module: module, Name: name, Kind: wasm.KindFunc, Func: typ})
	}
	for i := range s.Exports {
		if s.Exports[i].Kind == wasm.KindFunc {
			s.Exports[i].Index += uint32(n)
		}
	}
}

// Globals adds mutable globals.
func (s Scale) Globals(n int) {
	for range n {
		s.Module.Globals = append(s.Module.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: wasm.I32, Mutable: true}, Init: wasm.Expr{wasm.OpI32Const, 0, wasm.OpEnd}})
	}
}

// Table adds a table of n entries with these functions at its start.
func (s Scale) Table(n int, funcs []uint32) {
	s.Tables = append(s.Tables, wasm.Table{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: uint32(n)}})
	s.Elems = append(s.Elems, wasm.Elem{Type: wasm.FuncRef, Offset: wasm.Expr{wasm.OpI32Const, 0, wasm.OpEnd}, Funcs: funcs})
}

// Op is an instruction with an index.
func Op(op byte, x int) []byte { return wasm.AppendU32([]byte{op}, uint32(x)) }

// Const is an i32.const.
func Const(v int) []byte { return wasm.AppendS64([]byte{wasm.OpI32Const}, int64(v)) }

// Code puts pieces together.
func Code(parts ...[]byte) []byte { return slices.Concat(parts...) }

// Fill repeats a piece until there are about size bytes.
func Fill(size int, piece ...byte) []byte {
	return slices.Repeat(piece, max(size/len(piece), 1))
}

func many(n int, t wasm.ValType) []wasm.ValType { return slices.Repeat([]wasm.ValType{t}, n) }

// blockOf is a block's head with an index of a type.
func blockOf(op byte, typ uint32) []byte { return wasm.AppendS64([]byte{op}, int64(typ)) }

// each makes a piece for 0, 1, 2 and so on until there are size bytes.
func each(size int, f func(i int) []byte) []byte {
	var b []byte
	for i := 0; len(b) < size; i++ {
		b = append(b, f(i)...)
	}
	return b
}

// one is a family with one function of type () -> ().
func one(name string, locals int, code func(size int) []byte) Family {
	return Family{name, func(size int) *wasm.Module {
		s := NewScale()
		s.Func(0, locals, code(size))
		return s.Module
	}}
}

// oneParam is the same with a parameter, i32 -> i32.
func oneParam(name string, locals func(size int) int, code func(size int) []byte) Family {
	return Family{name, func(size int) *wasm.Module {
		s := NewScale()
		n := 0
		if locals != nil {
			n = locals(size)
		}
		s.Func(2, n, Code(code(size), []byte{wasm.OpLocalGet, 0}))
		return s.Module
	}}
}

// wide is a family with a function of k parameters and results.
func wide(name string, k int, f func(s Scale, typ uint32, size int)) Family {
	return Family{name, func(size int) *wasm.Module {
		s := NewScale()
		f(s, s.Type(many(k, wasm.I32), many(k, wasm.I32)), size)
		return s.Module
	}}
}

// args puts all parameters of a function of k on the stack.
func args(k int) []byte {
	var b []byte
	for i := range k {
		b = append(b, Op(wasm.OpLocalGet, i)...)
	}
	return b
}

// zeros puts a zero of each type on the stack.
func zeros(list []wasm.ValType) []byte {
	var b []byte
	for _, t := range list {
		switch t {
		case wasm.I32:
			b = append(b, wasm.OpI32Const, 0)
		case wasm.I64:
			b = append(b, wasm.OpI64Const, 0)
		case wasm.F32:
			b = append(b, wasm.OpF32Const, 0, 0, 0, 0)
		case wasm.F64:
			b = append(b, wasm.OpF64Const, 0, 0, 0, 0, 0, 0, 0, 0)
		}
	}
	return b
}

// Families are one for each construct that the rewriter, the decoder or wazero
// might take more than linear time for.
func Families() []Family {
	const w = 1000 // parameters
	get0 := []byte{wasm.OpLocalGet, 0}
	return []Family{
		{"globals", func(size int) *wasm.Module { s := NewScale(); s.Globals(size / 5); return s.Module }},
		{"globals and calls", func(size int) *wasm.Module {
			s := NewScale()
			s.Globals(size / 10)
			s.Func(0, 0, Fill(size/2, wasm.OpCall, 0, wasm.OpDrop))
			return s.Module
		}},
		{"globals and functions", func(size int) *wasm.Module {
			s := NewScale()
			s.Globals(size / 10)
			for range size / 8 {
				s.Func(0, 0, nil)
			}
			return s.Module
		}},
		{"types", func(size int) *wasm.Module {
			s := NewScale()
			s.variety(size)
			return s.Module
		}},
		{"types of recursive functions", func(size int) *wasm.Module {
			s := NewScale()
			for _, t := range s.variety(size / 2) {
				n := len(s.Funcs)
				s.Func(t, 0, []byte{wasm.OpLoop, noBlock, wasm.OpUnreachable, wasm.OpEnd})
				s.Code[n].Code = Code([]byte{wasm.OpUnreachable}, Op(wasm.OpCall, n), []byte{wasm.OpEnd})
			}
			return s.Module
		}},
		{"types of indirect calls", func(size int) *wasm.Module {
			s := NewScale()
			list := s.variety(size / 2)
			s.Table(200, slices.Repeat([]uint32{1}, 200))
			var code []byte
			for _, t := range list {
				code = Code(code, zeros(s.Types[t].Params), []byte{wasm.OpI32Const, 0}, Op(wasm.OpCallIndirect, int(t)), []byte{0})
			}
			s.Func(0, 0, code)
			return s.Module
		}},
		{"types of blocks", func(size int) *wasm.Module {
			s := NewScale()
			var code []byte
			for _, t := range s.variety(size / 2) {
				code = Code(code, zeros(s.Types[t].Params), blockOf(wasm.OpBlock, t), slices.Repeat([]byte{wasm.OpDrop}, len(s.Types[t].Params)), []byte{wasm.OpEnd})
			}
			s.Func(0, 0, code)
			return s.Module
		}},
		{"functions", func(size int) *wasm.Module {
			s := NewScale()
			for range size / 4 {
				s.Func(0, 0, nil)
			}
			return s.Module
		}},
		{"calls of functions", func(size int) *wasm.Module {
			s := NewScale()
			for range size / 8 {
				s.Func(0, 0, Op(wasm.OpCall, len(s.Funcs)))
			}
			s.Func(0, 0, nil)
			return s.Module
		}},
		{"imports", func(size int) *wasm.Module {
			s := NewScale()
			s.Import(size/40, "wasmactors", "flush", s.Type(types(wasm.I32), nil))
			s.Func(0, 0, Fill(size/2, Code(Const(0), Op(wasm.OpCall, len(s.Imports)-1))...))
			return s.Module
		}},
		{"imports in tables", func(size int) *wasm.Module {
			s := NewScale()
			s.Import(size/24, "wasmactors", "flush", s.Type(types(wasm.I32), nil))
			list := make([]uint32, len(s.Imports))
			for i := range list {
				list[i] = uint32(i)
			}
			s.Table(len(list), list)
			s.Func(0, 0, []byte{wasm.OpI32Const, 0, wasm.OpI32Const, 0, wasm.OpCallIndirect, 3, 0})
			return s.Module
		}},
		{"exports", func(size int) *wasm.Module {
			s := NewScale()
			for i := range size / 8 {
				s.Exports = append(s.Exports, wasm.Export{Name: "e" + strconv.Itoa(i), Kind: wasm.KindFunc, Index: 0})
			}
			return s.Module
		}},
		{"entries of a table", func(size int) *wasm.Module {
			s := NewScale()
			n := min(size, DefaultTable)
			s.Table(n, slices.Repeat([]uint32{1}, n))
			s.Func(0, 0, Fill(min(size, 1000), wasm.OpI32Const, 0, wasm.OpI32Const, 0, wasm.OpCallIndirect, 2, 0, wasm.OpDrop))
			return s.Module
		}},
		{"functions in a table", func(size int) *wasm.Module { return dispatchers(size, 1, 1) }},
		{"functions with 100 parameters in a table", func(size int) *wasm.Module { return dispatchers(size, 100, 1) }},
		{"functions with 1000 parameters in a table", func(size int) *wasm.Module { return dispatchers(size, w, 1) }},
		{"many types of calls of a large table", func(size int) *wasm.Module { return dispatchers(size, 1, 60) }},
		{"large table, few functions", func(size int) *wasm.Module {
			s := NewScale()
			s.Table(DefaultTable, slices.Repeat([]uint32{1}, 64))
			s.Elems = append(s.Elems, wasm.Elem{Type: wasm.FuncRef, Offset: wasm.Expr(append(Const(DefaultTable-1), wasm.OpEnd)), Funcs: []uint32{1}})
			for k := range 3 {
				t := s.Type(many(k, wasm.I64), nil)
				s.Func(t, 0, Code(args(k), []byte{wasm.OpI32Const, 0}, Op(wasm.OpCallIndirect, int(t)), []byte{0}))
			}
			return s.Module
		}},
		{"segments of elements", func(size int) *wasm.Module {
			s := NewScale()
			s.Table(10, []uint32{0})
			for range size / 4 {
				s.Elems = append(s.Elems, wasm.Elem{Mode: wasm.Passive, Type: wasm.FuncRef, Funcs: []uint32{}})
			}
			return s.Module
		}},
		{"segments of data", func(size int) *wasm.Module {
			s := NewScale()
			for range size / 3 {
				s.Data = append(s.Data, wasm.Data{Mode: wasm.Passive})
			}
			return s.Module
		}},
		{"tables", func(size int) *wasm.Module {
			s := NewScale()
			for range size / 3 {
				s.Tables = append(s.Tables, wasm.Table{Elem: wasm.FuncRef})
			}
			return s.Module
		}},
		one("memory.copy", 0, func(size int) []byte {
			return Fill(size, Code(Const(0), Const(0), Const(5000), []byte{wasm.OpMisc, 10, 0, 0})...)
		}),
		one("memory.fill", 0, func(size int) []byte {
			return Fill(size, Code(Const(0), Const(0), Const(5000), []byte{wasm.OpMisc, 11, 0})...)
		}),
		one("small memory.fill", 0, func(size int) []byte {
			return Fill(size, Code(Const(0), Const(0), Const(8), []byte{wasm.OpMisc, 11, 0})...)
		}),
		one("memory.grow", 0, func(size int) []byte { return Fill(size, wasm.OpI32Const, 0, wasm.OpMemoryGrow, 0, wasm.OpDrop) }),
		{"instructions on tables", func(size int) *wasm.Module {
			s := NewScale()
			s.Table(10, []uint32{0})
			s.Func(0, 0, Code(
				Fill(size/3, wasm.OpI32Const, 0, wasm.OpI32Const, 0, wasm.OpI32Const, 0, wasm.OpMisc, 14, 0, 0),
				Fill(size/3, wasm.OpI32Const, 0, wasm.OpRefNull, 0x70, wasm.OpI32Const, 0, wasm.OpMisc, 17, 0),
				Fill(size/3, wasm.OpRefNull, 0x70, wasm.OpI32Const, 0, wasm.OpMisc, 15, 0, wasm.OpDrop)))
			return s.Module
		}},
		oneParam("br_table to one block", nil, func(size int) []byte {
			return Code([]byte{wasm.OpBlock, noBlock, wasm.OpLocalGet, 0}, Op(wasm.OpBrTable, size), make([]byte, size+1), []byte{wasm.OpEnd})
		}),
		oneParam("br_table to many blocks", nil, func(size int) []byte {
			n := size / 6
			code := slices.Repeat([]byte{wasm.OpBlock, noBlock}, n)
			code = Code(code, get0, Op(wasm.OpBrTable, n-1))
			for i := range n {
				code = wasm.AppendU32(code, uint32(i))
			}
			return Code(code, slices.Repeat([]byte{wasm.OpEnd}, n))
		}),
		oneParam("br_table of one target often", nil, func(size int) []byte {
			return Code([]byte{wasm.OpBlock, noBlock}, Fill(size, wasm.OpBlock, noBlock, wasm.OpLocalGet, 0, wasm.OpBrTable, 1, 0, 1, wasm.OpEnd), []byte{wasm.OpEnd})
		}),
		wide("br_table with 1000 values", w, func(s Scale, typ uint32, size int) {
			code := Code(args(w), get0, Op(wasm.OpBrTable, size), make([]byte, size+1))
			s.Func(typ, 0, code)
		}),
		wide("br_if with 1000 values", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code(args(w), Fill(size, wasm.OpLocalGet, 0, wasm.OpBrIf, 0)))
		}),
		wide("br_if out of a block with 1000 results", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code(args(w), blockOf(wasm.OpBlock, typ), Fill(size, wasm.OpLocalGet, 0, wasm.OpBrIf, 0), []byte{wasm.OpEnd}))
		}),
		wide("blocks with 1000 values", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code(args(w), Fill(size, Code(blockOf(wasm.OpBlock, typ), []byte{wasm.OpEnd})...)))
		}),
		wide("loops with 1000 values", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code(args(w), Fill(size, Code(blockOf(wasm.OpLoop, typ), []byte{wasm.OpEnd})...)))
		}),
		wide("ifs with 1000 values", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code(args(w), Fill(size, Code(get0, blockOf(wasm.OpIf, typ), []byte{wasm.OpElse, wasm.OpEnd})...)))
		}),
		wide("calls with 1000 values", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code(args(w), Fill(size, Op(wasm.OpCall, len(s.Funcs))...)))
		}),
		wide("unreachable calls with 1000 values", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code([]byte{wasm.OpUnreachable}, Fill(size, Op(wasm.OpCall, len(s.Funcs))...)))
		}),
		wide("unreachable br_table with 1000 values", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code([]byte{wasm.OpUnreachable}, Op(wasm.OpBrTable, size), make([]byte, size+1)))
		}),
		wide("functions with 1000 values", w, func(s Scale, typ uint32, size int) {
			for range size / 5 {
				s.Func(typ, 0, []byte{wasm.OpUnreachable})
			}
		}),
		wide("returns of 1000 values", w, func(s Scale, typ uint32, size int) {
			s.Func(typ, 0, Code(args(w), Fill(size, wasm.OpLocalGet, 0, wasm.OpIf, noBlock, wasm.OpUnreachable, wasm.OpReturn, wasm.OpEnd)))
		}),
		one("nested blocks", 0, func(size int) []byte {
			n := size / 3
			return Code(slices.Repeat([]byte{wasm.OpBlock, noBlock}, n), slices.Repeat([]byte{wasm.OpEnd}, n))
		}),
		one("nested blocks with branches", 0, func(size int) []byte {
			n := size / 8
			return Code(slices.Repeat([]byte{wasm.OpBlock, noBlock}, n), slices.Repeat([]byte{wasm.OpI32Const, 0, wasm.OpBrIf, 0, wasm.OpEnd}, n))
		}),
		one("nested loops", 0, func(size int) []byte {
			n := size / 3
			return Code(slices.Repeat([]byte{wasm.OpLoop, noBlock}, n), slices.Repeat([]byte{wasm.OpEnd}, n))
		}),
		one("nested loops with branches", 0, func(size int) []byte {
			n := size / 8
			return Code(slices.Repeat([]byte{wasm.OpLoop, noBlock}, n), slices.Repeat([]byte{wasm.OpI32Const, 0, wasm.OpBrIf, 0, wasm.OpEnd}, n))
		}),
		one("loops in a row", 0, func(size int) []byte { return Fill(size, wasm.OpLoop, noBlock, wasm.OpEnd) }),
		one("loops with branches in a row", 0, func(size int) []byte {
			return Fill(size, wasm.OpLoop, noBlock, wasm.OpI32Const, 0, wasm.OpBrIf, 0, wasm.OpEnd)
		}),
		one("ifs in a row", 0, func(size int) []byte { return Fill(size, wasm.OpI32Const, 0, wasm.OpIf, noBlock, wasm.OpEnd) }),
		oneParam("br_ifs in a row", nil, func(size int) []byte {
			return Code([]byte{wasm.OpBlock, noBlock}, Fill(size, wasm.OpLocalGet, 0, wasm.OpBrIf, 0), []byte{wasm.OpEnd})
		}),
		oneParam("nested ifs", nil, func(size int) []byte {
			n := size / 5
			return Code(slices.Repeat([]byte{wasm.OpLocalGet, 0, wasm.OpIf, noBlock}, n), slices.Repeat([]byte{wasm.OpEnd}, n))
		}),
		oneParam("locals that differ at joins", func(size int) int { return size / 12 }, func(size int) []byte {
			n := size / 12
			code := each(size*2/3, func(i int) []byte {
				return Code(get0, []byte{wasm.OpIf, noBlock}, get0, Op(wasm.OpLocalSet, 1+i%n), []byte{wasm.OpEnd})
			})
			return append(code, each(size/3, func(i int) []byte { return Code(Op(wasm.OpLocalGet, 1+i%n), []byte{wasm.OpDrop}) })...)
		}),
		oneParam("many locals at few joins", func(size int) int { return size / 12 }, func(size int) []byte {
			n := size / 12
			set := each(n*4, func(i int) []byte { return Code(get0, Op(wasm.OpLocalSet, 1+i%n)) })
			use := each(n*4, func(i int) []byte { return Code(Op(wasm.OpLocalGet, 1+i%n), []byte{wasm.OpDrop}) })
			return Code(get0, []byte{wasm.OpIf, noBlock}, set, []byte{wasm.OpEnd}, get0, []byte{wasm.OpIf, noBlock, wasm.OpEnd}, use)
		}),
		oneParam("locals in nested loops", func(size int) int { return size / 12 }, func(size int) []byte {
			n := size / 12
			deep := size / 16
			set := each(n*4, func(i int) []byte { return Code(Op(wasm.OpLocalGet, 1+(i+1)%n), Op(wasm.OpLocalSet, 1+i%n)) })
			return Code(slices.Repeat([]byte{wasm.OpLoop, noBlock}, deep), set, slices.Repeat(Code(get0, []byte{wasm.OpBrIf, 0, wasm.OpEnd}), deep))
		}),
		oneParam("values that live across blocks", func(size int) int { return size / 12 }, func(size int) []byte {
			n := size / 12
			set := each(n*6, func(i int) []byte {
				return Code(get0, Const(i), []byte{opI32Add}, Op(wasm.OpLocalSet, 1+i%n))
			})
			use := each(n*3, func(i int) []byte {
				return Code(Op(wasm.OpLocalGet, 1+i%n), get0, []byte{opI32Load, 2, 0, wasm.OpDrop, wasm.OpDrop})
			})
			return Code(set, Fill(size/4, wasm.OpLocalGet, 0, wasm.OpIf, noBlock, wasm.OpEnd), use)
		}),
		oneParam("values that live across calls", func(size int) int { return size / 12 }, func(size int) []byte {
			n := size / 12
			set := each(n*6, func(i int) []byte {
				return Code(get0, Const(i), []byte{opI32Add}, Op(wasm.OpLocalSet, 1+i%n))
			})
			sum := each(n*4, func(i int) []byte { return Code(Op(wasm.OpLocalGet, 1+i%n), []byte{opI32Add}) })
			return Code(set, Fill(size/4, wasm.OpCall, 0, wasm.OpIf, noBlock, wasm.OpEnd), get0, sum, []byte{wasm.OpDrop})
		}),
		oneParam("addresses before many blocks", func(size int) int { return size / 12 }, func(size int) []byte {
			load := each(size/2, func(i int) []byte { return Code(get0, Const(i), []byte{opI32Add, opI32Load, 2, 0, wasm.OpDrop}) })
			return Code([]byte{wasm.OpBlock, noBlock}, load, Fill(size/2, wasm.OpLocalGet, 0, wasm.OpBrIf, 0), []byte{wasm.OpEnd})
		}),
		oneParam("loads", nil, func(size int) []byte { return Fill(size, wasm.OpLocalGet, 0, opI32Load, 2, 0, wasm.OpDrop) }),
		oneParam("a deep stack", nil, func(size int) []byte {
			n := size / 3
			return Code(slices.Repeat(get0, n), slices.Repeat([]byte{opI32Add}, n-1), []byte{wasm.OpDrop})
		}),
		oneParam("a deep stack across calls", nil, func(size int) []byte {
			n := size / 6
			return Code(slices.Repeat([]byte{wasm.OpCall, 0}, n), slices.Repeat([]byte{opI32Add}, n-1), []byte{wasm.OpDrop})
		}),
		oneParam("a deep stack of loads across blocks", nil, func(size int) []byte {
			n := size / 8
			return Code(slices.Repeat(Code(get0, []byte{opI32Load, 2, 0}), n/2), Fill(size/2, wasm.OpLocalGet, 0, wasm.OpIf, noBlock, wasm.OpEnd), slices.Repeat([]byte{opI32Add}, n/2-1), []byte{wasm.OpDrop})
		}),
		{"locals", func(size int) *wasm.Module {
			s := NewScale()
			for range size / 8 {
				s.Func(0, min(50_000-1, (1<<20)/(size/8+1)), nil)
			}
			return s.Module
		}},
		one("constants", 0, func(size int) []byte { return Fill(size, wasm.OpI32Const, 1, wasm.OpDrop) }),
		oneParam("arithmetic", nil, func(size int) []byte {
			return Code(get0, Fill(size, wasm.OpLocalGet, 0, opI32Add), []byte{wasm.OpDrop})
		}),
		oneParam("divisions", nil, func(size int) []byte {
			return Code(get0, Fill(size, wasm.OpLocalGet, 0, 0x6d), []byte{wasm.OpDrop})
		}),
		one("conversions", 0, func(size int) []byte {
			return Code([]byte{wasm.OpI32Const, 1}, Fill(size, 0xb7 /* f64.convert_i32_s */, 0xaa /* i32.trunc_f64_s */), []byte{wasm.OpDrop})
		}),
		one("vectors", 0, func(size int) []byte {
			v := append([]byte{wasm.OpSIMD, 12}, make([]byte, 16)...)
			return Code(v, Fill(size, Code(v, []byte{wasm.OpSIMD, 0xae, 1})...), []byte{wasm.OpDrop})
		}),
		{"ref.func", func(size int) *wasm.Module {
			s := NewScale()
			s.Func(0, 0, Fill(size, wasm.OpRefFunc, 0, wasm.OpDrop))
			return s.Module
		}},
		{"names", func(size int) *wasm.Module {
			s := NewScale()
			n := size / 4
			sub := wasm.AppendU32(nil, uint32(n))
			for i := range n {
				sub = append(wasm.AppendU32(sub, uint32(i%4)), 1, 'f')
			}
			s.Customs = append(s.Customs, wasm.Custom{Name: "name", Data: append(wasm.AppendU32([]byte{1}, uint32(len(sub))), sub...)})
			return s.Module
		}},
		{"global.get between blocks", func(size int) *wasm.Module {
			s := NewScale()
			s.Globals(10)
			s.Func(0, 0, Code([]byte{wasm.OpBlock, noBlock}, Fill(size, wasm.OpGlobalGet, 1, wasm.OpBrIf, 0), []byte{wasm.OpEnd}))
			return s.Module
		}},
	}
}

// DefaultTable is the most entries that a table has in these modules.
const DefaultTable = 65536

// variety adds types that all differ, of about size bytes, with at most 8
// parameters.
func (s Scale) variety(size int) []uint32 {
	var list []uint32
	for i := 1; len(list) < size/12; i++ {
		var p []wasm.ValType
		for k := i; k > 0; k /= 4 {
			p = append(p, []wasm.ValType{wasm.I32, wasm.I64, wasm.F32, wasm.F64}[k%4])
		}
		list = append(list, s.Type(p, nil))
	}
	return list
}

// dispatchers has a table of functions with k parameters, called with as many
// types.
func dispatchers(size, k, calls int) *wasm.Module {
	s := NewScale()
	t := s.Type(many(k, wasm.I32), nil)
	var list []uint32
	for range max(size/6, 64) {
		list = append(list, s.Func(t, 0, nil))
	}
	s.Table(len(list), list)
	s.Func(t, 0, Code(args(k), []byte{wasm.OpI32Const, 0}, Op(wasm.OpCallIndirect, int(t)), []byte{0}))
	for i := 1; i < calls; i++ {
		t := s.Type(many(i%8, wasm.I64), many(i/8, wasm.I32))
		s.Func(s.Type(many(8, wasm.I64), nil), 0, Code(args(i%8), []byte{wasm.OpI32Const, 0}, Op(wasm.OpCallIndirect, int(t)), []byte{0}, slices.Repeat([]byte{wasm.OpDrop}, i/8)))
	}
	return s.Module
}
