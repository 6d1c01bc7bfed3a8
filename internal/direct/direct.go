// Package direct makes indirect calls direct where a module never changes its
// table, which is the usual case.
//
// An instance owns its table, and wazero fills it anew for every instance, with
// one heap object for each entry: for a Go guest, which puts every function into
// its table, 125 us and 90 KB an instance. What a table that never changes holds
// is known beforehand, so each indirect call can as well call a dispatcher: a
// function, one for each type of call, that branches by the index and calls what
// the table would have held. All instances share its code, and the table shrinks
// to the entries that are needed to trap as before.
package direct

import (
	"slices"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

const (
	// leastEntries is the table size from which a dispatcher pays.
	leastEntries = 64
	// mostEntries bounds the table, and mostLabels the branches of all dispatchers
	// together.
	mostEntries = 1 << 16
	mostLabels  = 1 << 18
	// leastLabels and labelsPerEntry bound the labels by the bytes of code and the
	// entries that they serve, leastArgs the arguments that all dispatchers pass on by
	// the bytes of code: a small module does not become a large one.
	leastLabels, labelsPerEntry = 1 << 14, 8
	leastArgs                   = 1 << 13
)

// The table that remains: what dispatchers call in order to trap.
const (
	entryNull  = 0 // "invalid table access"
	entryOne   = 1 // a function
	entryOther = 2 // a function of another type, if there is one
)

// Calls returns m with its indirect calls made direct, or m itself if they have
// to stay as they are. It does not change m. Traps stay what they are, too.
func Calls(m *wasm.Module) *wasm.Module {
	t, ok := readTable(m)
	if !ok || !t.unchanged() {
		return m
	}
	out := *m
	out.Types = slices.Clone(m.Types)
	out.Funcs = slices.Clone(m.Funcs)
	out.Code = slices.Clone(m.Code)
	t.out = &out
	for k := range t.dispatchers {
		d := &t.dispatchers[k]
		d.index = uint32(t.imported + len(out.Funcs))
		typ := m.Types[d.callType]
		d.funcType = uint32(len(out.Types))
		out.Types = append(out.Types, wasm.FuncType{Params: slices.Concat(typ.Params, []wasm.ValType{wasm.I32}), Results: typ.Results})
		t.dispatch(d)
	}
	for i := range m.Code {
		if t.calls[i] {
			out.Code[i].Code = t.redirect(m.Code[i].Code)
		}
	}
	t.shrink()
	return &out
}

// table is a table with known contents.
type table struct {
	m        *wasm.Module
	out      *wasm.Module
	imported int
	types    []uint32 // of functions
	kinds    []uint32 // of types: equal ones have the same
	entries  []int32  // function indices, -1 for null
	calls    []bool   // which functions call indirectly

	dispatchers []dispatcher
	byKind      map[uint32]int // kind of a type to its dispatcher

	one, other int32 // two functions of different types, -1 for none
}

// dispatcher is the function that replaces the indirect calls of one type.
type dispatcher struct {
	callType uint32 // of the calls
	funcType uint32 // of the dispatcher: one more parameter, the index
	index    uint32
}

// readTable determines what the table holds after instantiation; false if that is not known, or
// does not pay.
func readTable(m *wasm.Module) (*table, bool) {
	if len(m.Tables) != 1 || m.Tables[0].Elem != wasm.FuncRef || m.Tables[0].Min > mostEntries || m.NumImported(wasm.KindTable) > 0 {
		return nil, false
	}
	for i := range m.Exports {
		if m.Exports[i].Kind == wasm.KindTable {
			return nil, false
		}
	}
	t := &table{m: m, imported: m.NumImported(wasm.KindFunc), types: m.FuncTypes(), byKind: map[uint32]int{}, one: -1, other: -1}
	t.entries = slices.Repeat([]int32{-1}, int(m.Tables[0].Min))
	count := 0
	for i := range m.Elems {
		e := &m.Elems[i]
		if e.Mode != wasm.Active || e.Table != 0 || e.Type != wasm.FuncRef {
			return nil, false
		}
		at, ok := constant(e.Offset)
		funcs, known := functions(e)
		if !ok || !known || uint64(at)+uint64(len(funcs)) > uint64(len(t.entries)) {
			return nil, false // the last of these traps at instantiation
		}
		copy(t.entries[at:], funcs)
		count += len(funcs)
	}
	if count < leastEntries {
		return nil, false
	}
	index := map[string]uint32{}
	for i := range m.Types {
		k := m.Types[i].Key()
		if _, ok := index[k]; !ok {
			index[k] = uint32(i)
		}
		t.kinds = append(t.kinds, index[k])
	}
	return t, true
}

// constant reads an offset of the form i32.const.
func constant(e wasm.Expr) (uint32, bool) {
	if len(e) < 3 || len(e) > 7 || e[0] != wasm.OpI32Const || e[len(e)-1] != wasm.OpEnd {
		return 0, false
	}
	var v int64
	shift := 0
	for i, b := range e[1 : len(e)-1] {
		v |= int64(b&0x7f) << shift
		shift += 7
		if b < 0x80 {
			if b&0x40 != 0 {
				v |= -1 << shift
			}
			return uint32(v), i == len(e)-3
		}
	}
	return 0, false
}

// functions are the entries of a segment.
func functions(e *wasm.Elem) ([]int32, bool) {
	var list []int32
	if !e.UseExprs {
		for _, f := range e.Funcs {
			list = append(list, int32(f))
		}
		return list, true
	}
	for _, x := range e.Exprs {
		in := wasm.Instr{}
		it := wasm.NewInstrs(x, 0)
		if ok, err := it.Next(&in); !ok || err != nil || in.End != len(x)-1 {
			return nil, false
		}
		switch {
		case in.Op == wasm.OpRefFunc:
			list = append(list, int32(in.X))
		case in.Op == wasm.OpRefNull && x[1] == byte(wasm.FuncRef):
			list = append(list, -1)
		default:
			return nil, false
		}
	}
	return list, true
}

// unchanged makes sure that code can use the table only for calls, and plans a dispatcher for
// each type of call.
func (t *table) unchanged() bool {
	t.calls = make([]bool, len(t.m.Code))
	var in wasm.Instr
	for i := range t.m.Code {
		it := wasm.NewInstrs(t.m.Code[i].Code, 0)
		for {
			more, err := it.Next(&in)
			if err != nil {
				return false
			}
			if !more {
				break
			}
			switch in.Op {
			case wasm.OpTableGet, wasm.OpTableSet, wasm.OpRefFunc:
				return false
			case wasm.OpMisc:
				if in.Sub >= wasm.MiscTableInit {
					return false
				}
			case wasm.OpCallIndirect:
				t.calls[i] = true
				t.plan(in.X)
			}
		}
	}
	if len(t.dispatchers) == 0 || !t.affordable() {
		return false
	}
	for _, f := range t.entries {
		switch {
		case f < 0:
		case t.one < 0:
			t.one = f
		case t.other < 0 && !t.same(t.types[f], t.types[t.one]):
			t.other = f
		}
	}
	return t.one >= 0
}

// plan makes sure that calls of this type have a dispatcher.
func (t *table) plan(callType uint32) {
	if _, ok := t.byKind[t.kinds[callType]]; ok {
		return
	}
	t.byKind[t.kinds[callType]] = len(t.dispatchers)
	t.dispatchers = append(t.dispatchers, dispatcher{callType: callType})
}

// same compares types by structure, as an indirect call does.
func (t *table) same(a, b uint32) bool { return t.kinds[a] == t.kinds[b] }

// affordable reports whether the dispatchers stay within bounds.
func (t *table) affordable() bool {
	code := 0
	for i := range t.m.Code {
		code += len(t.m.Code[i].Code)
	}
	used := make(map[uint32]int, len(t.m.Types)) // functions in the table by kind
	seen := make([]bool, len(t.types))
	first, end, count := len(t.entries), 0, 0
	for i, f := range t.entries {
		if f < 0 {
			continue
		}
		first, end, count = min(first, i), i+1, count+1
		if !seen[f] {
			seen[f] = true
			used[t.kinds[t.types[f]]]++
		}
	}
	if labels := len(t.dispatchers) * max(end-first, 0); labels > min(mostLabels, max(leastLabels, code+count*labelsPerEntry)) {
		return false
	}
	args := 0
	for k := range t.dispatchers {
		typ := t.dispatchers[k].callType
		args += (used[t.kinds[typ]] + 3) * len(t.m.Types[typ].Params)
	}
	return args <= max(leastArgs, code)
}

// redirect replaces the indirect calls of a function.
func (t *table) redirect(code []byte) []byte {
	out := make([]byte, 0, len(code)+len(code)/16)
	it := wasm.NewInstrs(code, 0)
	var in wasm.Instr
	done := 0
	for {
		more, err := it.Next(&in)
		if err != nil || !more { // errors were found before, see unchanged
			break
		}
		if in.Op == wasm.OpCallIndirect {
			out = append(out, code[done:in.Start]...)
			out = call(out, t.dispatchers[t.byKind[t.kinds[in.X]]].index)
			done = in.End
		}
	}
	return append(out, code[done:]...)
}

func call(b []byte, f uint32) []byte { return wasm.AppendU32(append(b, wasm.OpCall), f) }

// shrink leaves the table that traps need.
func (t *table) shrink() {
	tab := t.m.Tables[0]
	tab.Min, tab.Max, tab.HasMax = entryOther+1, entryOther+1, true
	t.out.Tables = []wasm.Table{tab}
	e := wasm.Elem{Mode: wasm.Active, Offset: wasm.Expr{wasm.OpI32Const, entryOne, wasm.OpEnd}, Type: wasm.FuncRef, Funcs: []uint32{uint32(t.one)}}
	if t.other >= 0 {
		e.Funcs = append(e.Funcs, uint32(t.other))
	}
	t.out.Elems = []wasm.Elem{e}
}
