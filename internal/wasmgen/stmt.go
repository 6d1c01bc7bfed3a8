package wasmgen

import "github.com/wasmactors/wasmactors/internal/wasm"

func (f *fn) stmts(n int) {
	for range n {
		if f.budget <= 0 || f.spent() {
			return
		}
		f.stmt()
	}
}

// stmt leaves the stack as it was.
func (f *fn) stmt() {
	depth := 1 + f.n(4)
	switch f.n(20) {
	case 0:
		f.op(wasm.OpNop)
	case 1, 2, 3:
		t := f.valType()
		f.expr(t, depth)
		f.consume(types(t))
	case 4, 5, 6:
		f.store(depth)
	case 7, 8, 9:
		f.bulk(depth)
	case 10:
		f.expr(wasm.I32, depth)
		f.op(wasm.OpIf, 0x40)
		f.within(nil, func() {
			f.stmts(2)
			if f.chance(100) {
				f.leave()
			}
		})
		f.op(wasm.OpEnd)
	case 11:
		params, results := f.valTypes(2), f.valTypes(2)
		f.values(params, depth-1)
		f.ifElse(params, results, depth)
		f.consume(results)
	case 12:
		results := f.valTypes(2)
		f.op(wasm.OpBlock)
		f.blockType(nil, results)
		f.within(results, func() { f.block(results, 3) })
		f.op(wasm.OpEnd)
		f.consume(results)
	case 13, 14:
		if !f.leaf {
			params, results := f.valTypes(1), f.valTypes(2)
			f.values(params, 2)
			f.loop(params, results)
			f.consume(results)
		}
	case 15:
		l, ts := f.label()
		f.values(ts, depth-1)
		f.expr(wasm.I32, depth)
		f.index(wasm.OpBrIf, l)
		f.consume(ts)
	case 16:
		f.jumpTable()
	case 17, 18:
		f.call(depth)
	case 19:
		f.report()
	}
}

// jumpTable is a switch: nested blocks, of which a table of jumps chooses one.
func (f *fn) jumpTable() {
	n := 1 + f.n(5)
	for range n {
		f.op(wasm.OpBlock, 0x40)
		f.labels = append(f.labels, nil)
	}
	f.expr(wasm.I32, 2)
	if !f.chance(60) {
		f.mask(7)
	}
	f.brTable(uint32(f.n(n)), nil)
	for range n {
		f.op(wasm.OpEnd)
		f.labels = f.labels[:len(f.labels)-1]
		f.stmts(1)
		if f.chance(30) && len(f.labels[len(f.labels)-1]) == 0 {
			f.expr(wasm.I32, 2)
			f.index(wasm.OpBrIf, 0)
		}
	}
}

// call calls a function, directly or not, for what it does.
func (f *fn) call(depth int) {
	if f.leaf {
		return
	}
	if tab, slot, ok := f.slot(); ok && f.chance(100) {
		typ := f.sigs[f.tables[tab].entries[slot]]
		f.values(f.m.Types[typ].Params, depth-1)
		f.callIndirect(tab, slot, typ, depth)
		f.consume(f.m.Types[typ].Results)
		return
	}
	callee := f.n(len(f.sigs))
	if !f.mayCall(callee) {
		return
	}
	sig := f.m.Types[f.sigs[callee]]
	f.values(sig.Params, depth-1)
	f.index(wasm.OpCall, uint32(callee))
	f.consume(sig.Results)
}

// report stores locals where they can be seen.
func (f *fn) report() {
	at := int32(f.n(0x4000))
	for i, t := range f.locals {
		if t == hidden || t.IsRef() || i >= 12 {
			continue
		}
		f.i32Const(at)
		f.index(wasm.OpLocalGet, uint32(i))
		for k := range stores {
			if stores[k].typ == t {
				f.access(&access{code: stores[k].code, sub: stores[k].sub, typ: t})
				break
			}
		}
	}
}

// dead is code that is never reached, where the stack holds whatever is wanted.
func (f *fn) dead() {
	drop := func(ts []wasm.ValType) {
		for range ts {
			f.op(wasm.OpDrop)
		}
	}
	switch f.n(13) {
	case 0:
		f.op(wasm.OpNop)
	case 1, 2:
		o := pick(&f.choices, plainOps[pick(&f.choices, numTypes)])
		f.operator(&o)
		f.op(wasm.OpDrop)
	case 3:
		callee := f.n(len(f.sigs))
		f.index(wasm.OpCall, uint32(callee))
		drop(f.m.Types[f.sigs[callee]].Results)
	case 4:
		l, ts := f.label()
		f.index(wasm.OpBrIf, l)
		drop(ts)
	case 5:
		l, ts := f.label()
		f.brTable(l, ts)
	case 6:
		f.op(pick(&f.choices, []byte{wasm.OpUnreachable, wasm.OpReturn}))
	case 7:
		f.op(wasm.OpMisc, byte(wasm.MiscMemoryFill), 0)
	case 8:
		f.op(wasm.OpMemoryGrow, 0, wasm.OpDrop)
	case 9:
		f.op(pick(&f.choices, []byte{wasm.OpLoop, wasm.OpBlock, wasm.OpIf}), 0x40)
		f.within(nil, func() { f.stmts(2) })
		f.op(wasm.OpEnd)
	case 10:
		f.op(wasm.OpSelect, wasm.OpDrop)
	case 11:
		if len(f.tables) > 0 {
			f.index(wasm.OpCallIndirect, f.sigs[f.imported+entryInit])
			f.code = append(f.code, f.funcTable())
			f.op(wasm.OpDrop)
		}
	case 12:
		f.op(wasm.OpIf)
		results := f.valTypes(2)
		f.blockType(nil, results)
		f.within(results, func() {
			f.block(results, 1)
			f.op(wasm.OpElse)
			f.block(results, 1)
		})
		f.op(wasm.OpEnd)
		drop(results)
	}
}

// funcTable is a table of functions; the first always is one.
func (f *fn) funcTable() byte {
	i := f.n(len(f.tables))
	if f.tables[i].Elem != wasm.FuncRef {
		return 0
	}
	return byte(i)
}
