package direct

import (
	"slices"

	"github.com/wasmactors/wasmactors/runtime/wasm"
)

const blockEmpty = 0x40

// dispatch is the body of a dispatcher:
//
//	block $mismatch block $bad block $n ... block $0
//	  br_table (index - first) ... default $bad
//	end $0: call function 0, return
//	...
//	end $bad: call indirectly what is null, in order to trap
//	end $mismatch: call indirectly what has another type, in order to trap
func (t *table) dispatch(d *dispatcher) []byte {
	typ := t.m.Types[d.callType]
	params := slices.Concat(typ.Params, []wasm.ValType{wasm.I32})
	t.out.Types = append(t.out.Types, wasm.FuncType{Params: params, Results: typ.Results})
	d.funcType = uint32(len(t.out.Types) - 1)

	// The targets, each once, and the label of each index.
	var targets []int32
	label := map[int32]uint32{}
	first, last := -1, -1
	for i, f := range t.entries {
		if f < 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		if _, ok := label[f]; !ok && t.same(t.m.FuncTypeIndex(uint32(f)), d.callType) {
			label[f] = uint32(len(targets))
			targets = append(targets, f)
		}
	}
	bad := uint32(len(targets))
	mismatch := bad + 1

	arguments := func(b []byte) []byte {
		for i := range typ.Params {
			b = wasm.AppendU32(append(b, wasm.OpLocalGet), uint32(i))
		}
		return b
	}
	trap := func(b []byte, entry byte) []byte {
		b = append(arguments(b), wasm.OpI32Const, entry, wasm.OpCallIndirect)
		b = wasm.AppendU32(b, d.callType)
		return append(b, 0, wasm.OpReturn)
	}

	var b []byte
	for range mismatch + 1 {
		b = append(b, wasm.OpBlock, blockEmpty)
	}
	b = wasm.AppendU32(append(b, wasm.OpLocalGet), uint32(len(typ.Params)))
	if first > 0 {
		b = wasm.AppendS64(append(b, wasm.OpI32Const), int64(first))
		b = append(b, opI32Sub)
	}
	b = wasm.AppendU32(append(b, wasm.OpBrTable), uint32(last-first+1))
	for _, f := range t.entries[first : last+1] {
		target, ok := label[f]
		switch {
		case f < 0:
			target = bad
		case !ok:
			target = mismatch
		}
		b = wasm.AppendU32(b, target)
	}
	b = wasm.AppendU32(b, bad)
	for _, f := range targets {
		b = append(b, wasm.OpEnd)
		b = append(call(arguments(b), uint32(f)), wasm.OpReturn)
	}
	b = trap(append(b, wasm.OpEnd), entryNull)
	other := byte(entryOne)
	if t.same(t.m.FuncTypeIndex(uint32(t.one)), d.callType) {
		other = entryOther
	}
	b = trap(append(b, wasm.OpEnd), other)
	return append(b, wasm.OpUnreachable, wasm.OpEnd)
}

const opI32Sub = 0x6b
