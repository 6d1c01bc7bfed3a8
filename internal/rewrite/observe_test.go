package rewrite

import (
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Functions that tests add to modules, in order to see what is not exported.
const (
	obsStart   = "obs:start"
	obsGlobals = "obs:globals"
	obsSize    = "obs:size"
	obsNull    = "obs:null"
	obsCount   = "obs:count"
)

// observed is m with functions that tell the globals and tables of src, which m
// is or was rewritten from, so that they have the same indices.
func observed(m, src *wasm.Module, tables bool) *wasm.Module {
	out := *m
	out.Types, out.Funcs = append([]wasm.FuncType(nil), m.Types...), append([]uint32(nil), m.Funcs...)
	out.Code, out.Exports = append([]wasm.Body(nil), m.Code...), append([]wasm.Export(nil), m.Exports...)
	add := func(name string, params, results []wasm.ValType, code []byte) {
		out.Exports = append(out.Exports, wasm.Export{Name: name, Kind: wasm.KindFunc, Index: uint32(m.NumImported(wasm.KindFunc) + len(out.Funcs))})
		out.Funcs = append(out.Funcs, uint32(len(out.Types)))
		out.Types = append(out.Types, wasm.FuncType{Params: params, Results: results})
		out.Code = append(out.Code, wasm.Body{Code: append(code, wasm.OpEnd)})
	}
	var code []byte
	var results []wasm.ValType
	get := func(g int, then ...byte) {
		code = append(wasm.AppendU32(append(code, wasm.OpGlobalGet), uint32(g)), then...)
		results = append(results, wasm.I64)
	}
	for g := range src.Globals {
		switch src.Globals[g].Type {
		case wasm.I32:
			get(g, opI64ExtendI32)
		case wasm.I64:
			get(g)
		case wasm.F32:
			get(g, 0xbc, opI64ExtendI32)
		case wasm.F64:
			get(g, 0xbd)
		case wasm.V128:
			get(g, wasm.OpSIMD, 29, 0)
			get(g, wasm.OpSIMD, 29, 1)
		default:
			get(g, wasm.OpRefIsNull, opI64ExtendI32)
		}
	}
	add(obsGlobals, nil, results, code)
	if !tables {
		return &out
	}
	i32 := []wasm.ValType{wasm.I32}
	for t := range src.Tables {
		add(fmt.Sprint(obsSize, t), nil, i32, []byte{wasm.OpMisc, byte(wasm.MiscTableSize), byte(t)})
		add(fmt.Sprint(obsNull, t), i32, i32, []byte{wasm.OpLocalGet, 0, wasm.OpTableGet, byte(t), wasm.OpRefIsNull})
	}
	return &out
}

// original is src as it can be run next to the rewritten: its start function is
// an export, since the host calls it with the initialisation.
func original(src *wasm.Module) *wasm.Module {
	out := *src
	out.Exports = append([]wasm.Export(nil), src.Exports...)
	if src.Start != nil {
		out.Exports = append(out.Exports, wasm.Export{Name: obsStart, Kind: wasm.KindFunc, Index: *src.Start})
		out.Start = nil
	}
	return &out
}

// observe reads globals and tables.
func (s *subject) observe() []uint64 {
	ctx := context.Background()
	call := func(name string, args ...uint64) []uint64 {
		res, err := s.mod.ExportedFunction(name).Call(ctx, args...)
		if err != nil {
			panic(err)
		}
		return res
	}
	state := append([]uint64(nil), call(obsGlobals)...)
	s.globals = len(state)
	for t := range s.tables {
		size := call(fmt.Sprint(obsSize, t))[0]
		state = append(state, size)
		null := s.mod.ExportedFunction(fmt.Sprint(obsNull, t))
		bits, n := uint64(0), 0
		stack := make([]uint64, 1)
		for i := range size {
			stack[0] = i
			if err := null.CallWithStack(ctx, stack); err != nil {
				panic(err)
			}
			if bits, n = bits<<1|stack[0], n+1; n == 64 {
				state, bits, n = append(state, bits), 0, 0
			}
		}
		state = append(state, bits)
	}
	return state
}

// counting is src with a global, exported, that counts the instructions that run:
// what the meter says must not be less. It knows nothing of regions or leaves.
func counting(src *wasm.Module) *wasm.Module {
	out := *src
	count := uint32(len(src.Globals))
	i64 := wasm.GlobalType{Type: wasm.I64, Mutable: true}
	out.Globals = append(append([]wasm.Global(nil), src.Globals...), wasm.Global{GlobalType: i64, Init: wasm.Expr{wasm.OpI64Const, 0, wasm.OpEnd}})
	out.Exports = append(append([]wasm.Export(nil), src.Exports...), wasm.Export{Name: obsCount, Kind: wasm.KindGlobal, Index: count})
	out.Code = nil
	for i := range src.Code {
		code := src.Code[i].Code
		w := writer{}
		it := wasm.NewInstrs(code, 0)
		var in wasm.Instr
		for {
			if more, err := it.Next(&in); err != nil || !more {
				break
			}
			switch in.Op {
			case wasm.OpBlock, wasm.OpLoop, wasm.OpNop, wasm.OpElse, wasm.OpEnd: // these do nothing
			default:
				w.global(wasm.OpGlobalGet, count)
				w.i64(1)
				w.op(opI64Add)
				w.global(wasm.OpGlobalSet, count)
			}
			w.raw(code[in.Start:in.End])
		}
		out.Code = append(out.Code, wasm.Body{Locals: src.Code[i].Locals, Code: w.buf})
	}
	return &out
}
