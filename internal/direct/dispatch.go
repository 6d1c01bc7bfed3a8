package direct

import (
	"slices"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

const blockEmpty = 0x40

// chunkShift is the logarithm of how many entries one function dispatches to.
// wazero compiles a function in more than linear time; a table with more entries
// gets a dispatcher for each chunk, and one that chooses among them.
const chunkShift = 12

// dispatch adds the functions of a dispatcher; the first is d.index.
func (t *table) dispatch(d *dispatcher) {
	first := slices.IndexFunc(t.entries, func(f int32) bool { return f >= 0 })
	end := len(t.entries)
	for t.entries[end-1] < 0 {
		end--
	}
	if end-first <= 1<<chunkShift {
		t.add(d, t.chunk(d, first, end))
		return
	}
	t.add(d, nil) // the one that chooses
	var chunks []uint32
	at := len(t.out.Code) - 1
	for from := first; from < end; from += 1 << chunkShift {
		chunks = append(chunks, uint32(t.imported+len(t.out.Funcs)))
		t.add(d, t.chunk(d, from, min(from+1<<chunkShift, end)))
	}
	t.out.Code[at].Code = t.choose(d, first, chunks)
}

func (t *table) add(d *dispatcher, code []byte) {
	t.out.Funcs = append(t.out.Funcs, d.funcType)
	t.out.Code = append(t.out.Code, wasm.Body{Code: code})
}

// arguments pushes the call's arguments onto the stack again.
func (t *table) arguments(b []byte, d *dispatcher) []byte {
	for i := range t.m.Types[d.callType].Params {
		b = wasm.AppendU32(append(b, wasm.OpLocalGet), uint32(i))
	}
	return b
}

// position pushes the index minus first onto the stack.
func (t *table) position(b []byte, d *dispatcher, first int) []byte {
	b = wasm.AppendU32(append(b, wasm.OpLocalGet), uint32(len(t.m.Types[d.callType].Params)))
	if first > 0 {
		b = append(wasm.AppendS64(append(b, wasm.OpI32Const), int64(first)), opI32Sub)
	}
	return b
}

// trap calls an entry of the table that remains.
func (t *table) trap(b []byte, d *dispatcher, entry byte) []byte {
	b = append(t.arguments(b, d), wasm.OpI32Const, entry, wasm.OpCallIndirect)
	return append(wasm.AppendU32(b, d.callType), 0, wasm.OpReturn)
}

// chunk is the body that dispatches to the entries from first to end:
//
//	block $mismatch block $bad block $n ... block $0
//	  br_table (index - first) ... default $bad
//	end $0: call function 0, return
//	...
//	end $bad: call indirectly what is null, in order to trap
//	end $mismatch: call indirectly what has another type, in order to trap
func (t *table) chunk(d *dispatcher, first, end int) []byte {
	// The targets, each once, and their labels.
	var targets []int32
	label := map[int32]uint32{}
	for _, f := range t.entries[first:end] {
		if _, ok := label[f]; f >= 0 && !ok && t.same(t.types[f], d.callType) {
			label[f] = uint32(len(targets))
			targets = append(targets, f)
		}
	}
	bad := uint32(len(targets))
	mismatch := bad + 1

	var b []byte
	for range mismatch + 1 {
		b = append(b, wasm.OpBlock, blockEmpty)
	}
	b = wasm.AppendU32(append(t.position(b, d, first), wasm.OpBrTable), uint32(end-first))
	for _, f := range t.entries[first:end] {
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
		b = append(call(t.arguments(b, d), uint32(f)), wasm.OpReturn)
	}
	b = t.trap(append(b, wasm.OpEnd), d, entryNull)
	other := byte(entryOne)
	if t.same(t.types[t.one], d.callType) {
		other = entryOther
	}
	b = t.trap(append(b, wasm.OpEnd), d, other)
	return append(b, wasm.OpUnreachable, wasm.OpEnd)
}

// choose is the body that passes a call on to the chunk of its index.
func (t *table) choose(d *dispatcher, first int, chunks []uint32) []byte {
	var b []byte
	for range len(chunks) + 1 {
		b = append(b, wasm.OpBlock, blockEmpty)
	}
	b = append(t.position(b, d, first), wasm.OpI32Const, chunkShift, opI32ShrU, wasm.OpBrTable)
	b = wasm.AppendU32(b, uint32(len(chunks)))
	for k := range len(chunks) + 1 {
		b = wasm.AppendU32(b, uint32(k))
	}
	for _, f := range chunks {
		b = t.position(t.arguments(append(b, wasm.OpEnd), d), d, 0)
		b = append(call(b, f), wasm.OpReturn)
	}
	b = t.trap(append(b, wasm.OpEnd), d, entryNull)
	return append(b, wasm.OpUnreachable, wasm.OpEnd)
}

const (
	opI32Sub  = 0x6b
	opI32ShrU = 0x76
)
