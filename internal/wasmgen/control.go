package wasmgen

import "github.com/wasmactors/wasmactors/internal/wasm"

// blockType writes the type of a block.
func (f *fn) blockType(params, results []wasm.ValType) {
	switch {
	case len(params) > 0 || len(results) > 1 || f.chance(8):
		f.code = wasm.AppendS64(f.code, int64(f.typeOf(params, results)))
	case len(results) == 1:
		f.code = append(f.code, byte(results[0]))
	default:
		f.code = append(f.code, 0x40)
	}
}

func (f *fn) within(label []wasm.ValType, body func()) {
	f.labels = append(f.labels, label)
	body()
	f.labels = f.labels[:len(f.labels)-1]
}

// block is a body that leaves the results, or jumps away.
func (f *fn) block(results []wasm.ValType, stmts int) {
	f.stmts(stmts)
	if f.chance(10) {
		f.leave()
		return
	}
	f.values(results, 3)
}

// leave ends a block by a jump, with dead code behind it.
func (f *fn) leave() {
	switch kind := f.n(6); {
	case kind == 0 && f.risky():
		f.op(wasm.OpUnreachable)
	case kind < 2:
		f.values(f.results, 2)
		f.op(wasm.OpReturn)
	case kind < 4:
		l, ts := f.label()
		f.values(ts, 2)
		f.index(wasm.OpBr, l)
	default:
		l, ts := f.label()
		f.values(ts, 2)
		f.expr(wasm.I32, 2)
		f.mask(7)
		f.brTable(l, ts)
	}
	for f.chance(100) {
		f.dead()
	}
}

// label chooses a label, and says what a branch to it carries.
func (f *fn) label() (uint32, []wasm.ValType) {
	l := f.n(len(f.labels))
	return uint32(l), f.labels[len(f.labels)-1-l]
}

// brTable branches to labels that carry the same.
func (f *fn) brTable(last uint32, ts []wasm.ValType) {
	var fit, list []uint32
	for l := range f.labels {
		if sameTypes(f.labels[len(f.labels)-1-l], ts) {
			fit = append(fit, uint32(l))
		}
	}
	for range f.n(8) {
		list = append(list, pick(&f.choices, fit))
	}
	f.index(wasm.OpBrTable, uint32(len(list)))
	for _, l := range append(list, last) {
		f.code = wasm.AppendU32(f.code, l)
	}
}

// branchy is a value that a block, an if or a loop leaves, perhaps with others.
func (f *fn) branchy(t wasm.ValType, depth int) {
	var params []wasm.ValType
	results := []wasm.ValType{t}
	at := 0
	if f.chance(60) {
		params = f.valTypes(2)
	}
	if f.chance(60) {
		results = append(f.valTypes(1), results...)
		at = len(results) - 1
		results = append(results, f.valTypes(1)...)
	}
	f.values(params, depth-1)
	switch kind := f.n(3); {
	case kind == 0:
		f.ifElse(params, results, depth)
	case kind == 1 || f.leaf:
		f.op(wasm.OpBlock)
		f.blockType(params, results)
		f.within(results, func() {
			f.consume(params)
			f.block(results, 2)
		})
		f.op(wasm.OpEnd)
	default:
		f.loop(params, results)
	}
	f.keep(results, at)
}

func (f *fn) ifElse(params, results []wasm.ValType, depth int) {
	f.expr(wasm.I32, depth-1)
	f.op(wasm.OpIf)
	f.blockType(params, results)
	f.within(results, func() {
		f.consume(params)
		f.block(results, 2)
		f.op(wasm.OpElse)
		f.consume(params)
		f.block(results, 2)
	})
	f.op(wasm.OpEnd)
}

// loop runs a body a few times. Its parameters are on the stack.
func (f *fn) loop(params, results []wasm.ValType) {
	count := f.local(wasm.I32)
	if f.chance(128) {
		f.i32Const(0)
		f.index(wasm.OpLocalSet, count)
	}
	f.op(wasm.OpLoop)
	f.blockType(params, results)
	f.within(params, func() {
		f.consume(params)
		if !f.opt.Endless {
			f.burn()
		}
		f.stmts(3)
		f.values(params, 2)
		f.index(wasm.OpLocalGet, count)
		f.i32Const(1)
		f.op(opAdd)
		f.index(wasm.OpLocalTee, count)
		f.i32Const(int32(1 + f.n(20)))
		f.op(opLtU)
		if f.opt.Endless && f.chance(128) {
			f.op(wasm.OpDrop)
			f.index(wasm.OpBr, 0)
			return
		}
		f.index(wasm.OpBrIf, 0)
		f.consume(params)
		f.block(results, 1)
	})
	f.op(wasm.OpEnd)
}

// keep drops all of the values on the stack but one.
func (f *fn) keep(ts []wasm.ValType, at int) {
	f.consume(ts[at+1:])
	if at == 0 {
		return
	}
	l := f.temp(ts[at])
	f.index(wasm.OpLocalSet, l)
	f.consume(ts[:at])
	f.index(wasm.OpLocalGet, l)
}

// consume takes the values from the stack.
func (f *fn) consume(ts []wasm.ValType) {
	for i := len(ts) - 1; i >= 0; i-- {
		l, ok := f.localOf(ts[i])
		if ok && !f.chance(100) {
			f.index(wasm.OpLocalSet, l)
			continue
		}
		if g, ok := f.globalOf(ts[i], true); ok {
			f.index(wasm.OpGlobalSet, g)
			continue
		}
		f.op(wasm.OpDrop)
	}
}

// callFor leaves a value that a function returns, perhaps among others.
func (f *fn) callFor(t wasm.ValType, depth int) bool {
	if f.leaf {
		return false
	}
	fits := func(sig wasm.FuncType) int {
		for i, r := range sig.Results {
			if r == t {
				return i
			}
		}
		return -1
	}
	if f.chance(128) {
		for range 3 {
			callee := f.n(len(f.sigs))
			sig := f.m.Types[f.sigs[callee]]
			if at := fits(sig); at >= 0 && f.mayCall(callee) {
				f.values(sig.Params, depth-1)
				f.index(wasm.OpCall, uint32(callee))
				f.keep(sig.Results, at)
				return true
			}
		}
	}
	for range 3 {
		tab, slot, ok := f.slot()
		if !ok {
			return false
		}
		typ := f.sigs[f.tables[tab].entries[slot]]
		sig := f.m.Types[typ]
		if at := fits(sig); at >= 0 {
			f.values(sig.Params, depth-1)
			f.callIndirect(tab, slot, typ, depth)
			f.keep(sig.Results, at)
			return true
		}
	}
	return false
}

// mayCall keeps the entries from being called, and next.
func (f *fn) mayCall(callee int) bool { return callee != f.next && f.referable(callee) }

// slot chooses a table's entry that can be called.
func (f *fn) slot() (tab, slot int, ok bool) {
	if len(f.tables) == 0 {
		return 0, 0, false
	}
	tab = f.n(len(f.tables))
	t := &f.tables[tab]
	if t.Elem != wasm.FuncRef || t.stable == 0 {
		return 0, 0, false
	}
	slot = f.n(t.stable)
	return tab, slot, t.entries[slot] >= 0 && f.mayCall(int(t.entries[slot]))
}

func (f *fn) callIndirect(tab, slot int, typ uint32, depth int) {
	switch {
	case f.trapping && f.chance(24):
		f.expr(wasm.I32, depth-1)
		f.mask(int32(f.tables[tab].Min) | 3)
	case f.chance(100):
		f.expr(wasm.I32, depth-1)
		f.mask(0)
		f.i32Const(int32(slot))
		f.op(opAdd)
	default:
		f.i32Const(int32(slot))
	}
	f.index(wasm.OpCallIndirect, typ)
	f.code = wasm.AppendU32(f.code, uint32(tab))
}
