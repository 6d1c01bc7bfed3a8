package wasmgen

import "github.com/wasmactors/wasmactors/internal/wasm"

// bulk works on a memory's or a table's range, or drops a segment.
func (f *fn) bulk(depth int) {
	kind := f.n(10)
	if kind >= 4 && (f.direct || len(f.tables) == 0) {
		kind %= 4
	}
	switch kind {
	case 0:
		f.address(depth)
		f.expr(wasm.I32, depth)
		f.length(depth)
		f.op(wasm.OpMisc, byte(wasm.MiscMemoryFill), 0)
	case 1:
		f.address(depth)
		f.address(depth)
		f.length(depth)
		f.op(wasm.OpMisc, byte(wasm.MiscMemoryCopy), 0, 0)
	case 2:
		f.memoryInit(depth)
	case 3:
		if s, ok := f.droppable(f.segments); ok {
			f.misc(wasm.MiscDataDrop, s)
		}
	case 4, 5:
		f.tableSet(depth)
	case 6:
		f.tableFill(depth)
	case 7:
		f.tableCopy()
	case 8:
		f.tableInit()
	case 9:
		if s, ok := f.droppable(len(f.m.Elems)); ok {
			f.misc(wasm.MiscElemDrop, s)
		}
	}
}

// length leaves a number below 256, or any.
func (f *fn) length(depth int) {
	f.expr(wasm.I32, depth)
	if !f.risky() {
		f.mask(0xff)
	}
}

// droppable chooses a segment of odd index; their users expect it.
func (f *fn) droppable(n int) (uint32, bool) {
	if n == 0 || n == 1 && !f.risky() {
		return 0, false
	}
	s := f.n(n) | 1
	return uint32(min(s, n-1)), s < n || f.risky()
}

// part leaves a segment's offset and a number of entries that it has, if it still
// has any.
func (f *fn) part(size, room int, there bool) {
	if !there || room < 0 {
		size, room = 0, 0
	}
	from := f.n(size + 1)
	n := f.n(min(size-from, room) + 1)
	if f.risky() {
		n = size + 1
	}
	f.i32Const(int32(from))
	f.i32Const(int32(n))
}

func (f *fn) memoryInit(depth int) {
	if f.segments == 0 {
		return
	}
	s := f.n(f.segments)
	d := &f.m.Data[s]
	f.address(depth)
	if d.Mode == wasm.Active {
		// Empty since the instantiation, but not in wazero; a frozen module keeps to
		// the specification.
		f.i32Const(0)
		f.i32Const(0)
	} else {
		f.part(len(d.Bytes), len(d.Bytes), s%2 == 0)
	}
	f.misc(wasm.MiscMemoryInit, uint32(s), 0)
}

// upper chooses a table, and an entry that may be changed.
func (f *fn) upper() (tab, at int) {
	tab = f.n(len(f.tables))
	t := &f.tables[tab]
	at = t.stable + f.n(int(t.Min)-t.stable)
	if f.risky() {
		at = f.n(64)
	}
	return tab, at
}

// room is how many entries there are from at on.
func (f *fn) room(tab, at int) int { return int(f.tables[tab].Min) - at }

func (f *fn) tableSet(depth int) {
	tab, at := f.upper()
	if f.room(tab, at) <= 0 && !f.risky() {
		return
	}
	f.i32Const(int32(at))
	f.expr(f.tables[tab].Elem, depth)
	f.index(wasm.OpTableSet, uint32(tab))
}

func (f *fn) tableFill(depth int) {
	tab, at := f.upper()
	f.i32Const(int32(at))
	f.expr(f.tables[tab].Elem, depth)
	n := f.n(max(0, f.room(tab, at)) + 1)
	if f.risky() {
		n += 50
	}
	f.i32Const(int32(n))
	f.misc(wasm.MiscTableFill, uint32(tab))
}

func (f *fn) tableCopy() {
	dst, at := f.upper()
	src := f.n(len(f.tables))
	if f.tables[src].Elem != f.tables[dst].Elem {
		src = dst
	}
	f.i32Const(int32(at))
	f.part(int(f.tables[src].Min), f.room(dst, at), true)
	f.misc(wasm.MiscTableCopy, uint32(dst), uint32(src))
}

func (f *fn) tableInit() {
	if len(f.m.Elems) == 0 {
		return
	}
	tab, at := f.upper()
	s := f.n(len(f.m.Elems))
	e := &f.m.Elems[s]
	if e.Type != f.tables[tab].Elem {
		return
	}
	f.i32Const(int32(at))
	size := len(e.Funcs) + len(e.Exprs)
	f.part(size, f.room(tab, at), e.Mode == wasm.Passive && s%2 == 0)
	f.misc(wasm.MiscTableInit, uint32(s), uint32(tab))
}
