package rewrite

import (
	"encoding/binary"
	"fmt"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Value is what EnterGlobal read of a global.
type Value struct{ Lo, Hi uint64 }

// State is a module's state after its initialisation, without its memory.
type State struct {
	Globals []Value // of Result.Mutable, in order
	Pages   uint32  // size of the memory, in pages of 64 KiB
	Dirty   uint32  // GlobalDirty
}

// Freeze makes the module that starts where the initialisation ended: its
// globals begin with the values of s, its memory with s.Pages pages, which the
// host must fill, and it has neither active data segments nor a start function.
// It fails with ErrNotFreezable for state that a module cannot declare.
func Freeze(r *Result, s State) (*wasm.Module, error) {
	in := r.in
	if len(s.Globals) != len(r.Mutable) {
		return nil, fmt.Errorf("rewrite: %d globals, %d are mutable", len(s.Globals), len(r.Mutable))
	}
	switch {
	case s.Dirty&DirtyTable != 0:
		return nil, fmt.Errorf("%w: it has written to a table", ErrNotFreezable)
	case s.Dirty&DirtySegment != 0:
		return nil, fmt.Errorf("%w: it has dropped a segment", ErrNotFreezable)
	}
	m := *r.Module
	m.Globals = append([]wasm.Global(nil), m.Globals...)
	n := 0
	var mutable []uint32
	for i := range in.src.Globals {
		g := &m.Globals[i]
		if !g.Mutable {
			continue
		}
		v := s.Globals[n]
		n++
		if g.Type.IsRef() && v.Lo == 0 {
			return nil, fmt.Errorf("%w: global %d holds a reference", ErrNotFreezable, i)
		}
		g.Init = constant(g.Type, v)
		mutable = append(mutable, uint32(i))
	}
	m.Memories = append([]wasm.Limits(nil), m.Memories...)
	if s.Pages > m.Memories[0].Max {
		return nil, fmt.Errorf("%w: its memory is above the limit", ErrNotFreezable)
	}
	m.Memories[0].Min = s.Pages
	m.Data = nil
	if r.needsData {
		for _, d := range r.Module.Data {
			if d.Mode == wasm.Active {
				d = wasm.Data{Mode: wasm.Passive}
			}
			m.Data = append(m.Data, d)
		}
	} else {
		m.DataCount = nil
	}
	m.Code = append([]wasm.Body(nil), m.Code...)
	m.Code[len(m.Code)-1] = in.enterBody(func(w *writer) {
		for _, g := range mutable {
			w.raw(m.Globals[g].Init[:len(m.Globals[g].Init)-1])
			w.global(wasm.OpGlobalSet, g)
		}
		w.i32(0)
		w.global(wasm.OpGlobalSet, in.dirty)
	})
	return &m, nil
}

// constant is the expression of a value.
func constant(t wasm.ValType, v Value) wasm.Expr {
	var x []byte
	switch t {
	case wasm.I32:
		x = wasm.AppendS64([]byte{wasm.OpI32Const}, int64(int32(v.Lo)))
	case wasm.I64:
		x = wasm.AppendS64([]byte{wasm.OpI64Const}, int64(v.Lo))
	case wasm.F32:
		x = binary.LittleEndian.AppendUint32([]byte{wasm.OpF32Const}, uint32(v.Lo))
	case wasm.F64:
		x = binary.LittleEndian.AppendUint64([]byte{wasm.OpF64Const}, v.Lo)
	case wasm.V128:
		x = binary.LittleEndian.AppendUint64([]byte{wasm.OpSIMD, 12}, v.Lo)
		x = binary.LittleEndian.AppendUint64(x, v.Hi)
	default:
		x = []byte{wasm.OpRefNull, byte(t)}
	}
	return append(x, wasm.OpEnd)
}
