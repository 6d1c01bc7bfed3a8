package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// bodies rewrites the code of every function.
func (in *instrumenter) bodies() error {
	in.storeRoom = leastStoreRoom
	for i := range in.src.Code {
		in.storeRoom += len(in.src.Code[i].Code)
	}
	for i := range in.src.Code {
		body, err := in.body(i)
		if err != nil {
			return err
		}
		in.out.Code = append(in.out.Code, body)
	}
	return nil
}

// locals declares the scratch locals that a function needs.
func (w *writer) locals(f *function, first uint32, out *wasm.Body) uint32 {
	declare := func(n uint32, t wasm.ValType) uint32 {
		at := first
		first += n
		out.Locals = append(out.Locals, wasm.LocalGroup{N: n, Type: t})
		return at
	}
	if w.local = f.local; w.local {
		w.fuel = declare(2, wasm.I64)
		w.after = w.fuel + 1
	}
	if f.indir && w.in.deepTable {
		w.callee = declare(1, wasm.I32)
	}
	if f.size {
		w.cost = declare(1, wasm.I64)
		w.size = declare(1, wasm.I32)
	}
	if f.fills {
		w.filled = declare(1, wasm.I32)
		w.filling = declare(1, wasm.V128)
	}
	return first
}

func (in *instrumenter) body(i int) (wasm.Body, error) {
	src, f := &in.src.Code[i], &in.funcs[i]
	typ := in.src.Types[in.src.Funcs[i]]
	out := wasm.Body{Locals: append([]wasm.LocalGroup(nil), src.Locals...)}
	w := writer{in: in, buf: make([]byte, 0, len(src.Code)+len(src.Code)/4+64)}
	first := uint32(uint64(len(typ.Params)) + src.NumLocals())
	if f.deep {
		w.depth = uint32(len(typ.Params))
		first++
	}
	w.compact = f.nloops > manyLoops
	first = w.locals(f, first, &out)
	var nans map[int]nanShape
	if f.floats && !in.opt.RawNaNs {
		var shapes [nanShapes]bool
		nans, shapes = in.openNaNs(i)
		for shape, t := range [nanShapes]wasm.ValType{nanF32: wasm.F32, nanF64: wasm.F64, nanF32x4: wasm.V128, nanF64x2: wasm.V128} {
			if shapes[shape] {
				w.nans[shape] = first
				first++
				out.Locals = append(out.Locals, wasm.LocalGroup{N: 1, Type: t})
			}
		}
	}
	w.sites.kept = in.opt.Sites
	w.noted = in.opt.Sites && len(typ.Params) > 0 && typ.Params[0] == wasm.I32
	w.standFor(uint32(src.Offset - in.src.CodeStart))
	if f.counted {
		w.chargeDepth(f.weight)
	}
	w.take()
	if !f.leaf {
		w.charge(fixed(f.cost))
	}
	epilogue := f.local
	w.height = 1
	if epilogue { // a block around the body, so that every return ends there
		w.height = 2
		w.op(wasm.OpBlock)
		w.raw(in.blockType(typ.Results))
	}
	w.blocks = append(w.blocks, guestBlock{at: w.height - 1, takes: len(typ.Results) > 0})
	it := wasm.NewInstrs(src.Code, src.Offset)
	var ins, last wasm.Instr
	var at, lastAt int // where the code for ins and last begins
	loop := 0
	for {
		before, beforeAt := last, lastAt
		last, lastAt = ins, at
		ok, err := it.Next(&ins)
		if err != nil {
			return out, err
		}
		if !ok {
			break
		}
		text := src.Code[ins.Start:ins.End]
		at = len(w.buf)
		in.steps++
		w.standFor(uint32(src.Offset - in.src.CodeStart + ins.Start))
		switch ins.Op {
		case wasm.OpBlock, wasm.OpIf:
			w.enter(text, in.hasResults(&ins))
		case wasm.OpLoop:
			w.loop(text, in.hasParams(&ins), &f.loops[loop])
			loop++
		case wasm.OpEnd:
			w.leave()
			if len(w.blocks) == 0 && epilogue {
				w.publish()
				w.op(wasm.OpEnd)
			}
		case wasm.OpBr:
			w.op(ins.Op)
			w.label(ins.X)
		case wasm.OpBrIf:
			w.branchIf(ins.X)
		case wasm.OpBrTable:
			labels := it.Labels()
			w.op(ins.Op)
			w.u32(uint32(len(labels) - 1))
			for _, l := range labels {
				w.label(l)
			}
		case wasm.OpReturn:
			if epilogue {
				w.op(wasm.OpBr)
				w.label(uint32(len(w.blocks) - 1))
			} else {
				w.raw(text)
			}
		case wasm.OpUnreachable:
			w.publish()
			w.raw(text)
		case wasm.OpCall:
			if in.isLeaf(ins.X) {
				w.callDirect(ins.X)
				break
			}
			w.publish()
			w.callDirect(ins.X)
			w.take()
		case wasm.OpCallIndirect:
			w.publish()
			w.callIndirect(&ins, text)
			w.take()
		case wasm.OpLocalGet, wasm.OpLocalSet, wasm.OpLocalTee:
			w.guestLocal(&ins, len(typ.Params), f.deep)
		case wasm.OpRefFunc:
			w.op(wasm.OpRefFunc)
			w.u32(in.address[ins.X])
		case wasm.OpTableSet:
			w.mark(DirtyTable)
			w.raw(text)
		case wasm.OpMemoryGrow:
			w.callCharger(growMemory)
		case wasm.OpMisc:
			_, small := smallCost(&last, &ins)
			switch {
			case fillsByStores(&before, &last, &ins) && in.byStores(last.X):
				w.buf = w.buf[:beforeAt]
				w.sites.cut(beforeAt)
				w.stores(byte(before.X), last.X)
			case small:
				w.raw(text)
			default:
				w.misc(&ins, text)
			}
		default:
			w.raw(text)
			if shape := nans[ins.Start]; shape != notNaN {
				w.canonical(shape)
			}
		}
	}
	out.Code = w.buf
	in.sites = append(in.sites, w.sites.list)
	return out, nil
}

// hasParams and hasResults are about the type of a block.
func (in *instrumenter) hasParams(ins *wasm.Instr) bool {
	return ins.Block >= 0 && len(in.src.Types[ins.Block].Params) > 0
}

func (in *instrumenter) hasResults(ins *wasm.Instr) bool {
	return ins.Block < 0 && ins.Block != blockNone || ins.Block >= 0 && len(in.src.Types[ins.Block].Results) > 0
}

// isLeaf reports whether a function, by its old index, is charged at its callers.
func (in *instrumenter) isLeaf(f uint32) bool {
	return int(f) >= in.imported && in.funcs[int(f)-in.imported].leaf
}
