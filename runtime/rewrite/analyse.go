package rewrite

import (
	"strconv"

	"github.com/wasmactors/wasmactors/runtime/wasm"
)

// Costs, in units of fuel. One unit is about one instruction.
const (
	leafCost = 64 // a leaf of at most this cost is charged at its callers
	// byteShift and entryShift say how much bulk instructions do for one unit:
	// 64 bytes, 8 table entries.
	byteShift  = 6
	entryShift = 3
	pageCost   = 1024 // of a page that memory.grow adds
	localShift = 3    // zeroing 8 locals costs one unit
)

// Weights of frames, in bytes of stack; see frameWeight.
const (
	frameBase = 64
	// staticStack is what functions that cannot recur may take together without
	// being counted.
	staticStack = 256 << 10
)

// hostCost is what calling an imported function costs. What a call does in
// proportion to its arguments the host charges itself, when it knows how much.
func hostCost(module, name string) uint64 {
	switch module + "." + name {
	case "wasmactors.next":
		return 4
	case "wasi_snapshot_preview1.clock_time_get", "wasi_snapshot_preview1.sched_yield":
		return 128
	}
	return 512
}

// function is what the analysis knows of one of the module's own functions.
type function struct {
	cost    uint64   // of the region outside loops, locals included
	loops   []uint64 // costs of the loops' regions, in order of appearance
	calls   []uint32 // directly called functions (old indices), with repetitions
	weight  uint64   // bytes of its frame
	indir   bool     // performs call_indirect
	bulk    bool     // needs the i32 scratch local
	leaf    bool     // charged at its callers
	counted bool     // its depth is counted
	taken   bool     // its address is taken
}

// region accumulates the cost of what runs between two charges.
type region struct {
	cost  uint64
	calls []uint32
	indir uint64
	loop  int // index into loops, -1 for the function
}

// analyse fills in.funcs.
func (in *instrumenter) analyse() error {
	m := in.src
	in.imported = m.NumImported(wasm.KindFunc)
	in.funcs = make([]function, len(m.Code))
	regions := make([][]region, len(m.Code))
	for i := range m.Code {
		r, err := in.scan(i)
		if err != nil {
			if e, ok := err.(*wasm.Error); ok && e.Func < 0 {
				e.Section, e.Func = "code", in.imported+i
			}
			return err
		}
		regions[i] = r
	}
	in.takenBySegments()
	for _, f := range []int{in.turn, in.init, in.initialize} {
		if f >= 0 {
			in.funcs[f-in.imported].leaf = false
		}
	}
	if m.Start != nil && int(*m.Start) >= in.imported {
		in.funcs[int(*m.Start)-in.imported].leaf = false
	}
	in.settle(regions)
	in.markCounted()
	return nil
}

// scan walks the code of function i once.
func (in *instrumenter) scan(i int) ([]region, error) {
	m, f, body := in.src, &in.funcs[i], &in.src.Code[i]
	total := uint32(in.imported + len(m.Code))
	typ := m.Types[m.Funcs[i]]
	locals := body.NumLocals()
	regions := []region{{loop: -1, cost: 1 + locals>>localShift}}
	var blocks []int // index of the region around each open block
	current := 0
	it := wasm.NewInstrs(body.Code, body.Offset)
	bad := func(ins *wasm.Instr, reason string) error {
		return &wasm.Error{Offset: body.Offset + ins.Start, Section: "code", Func: in.imported + i, Reason: reason}
	}
	var ins wasm.Instr
	kinds := []byte{wasm.OpBlock}
	n := uint64(0)
	for {
		ok, err := it.Next(&ins)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, bad(&ins, "the function has no end")
		}
		n++
		regions[current].cost++
		switch ins.Op {
		case wasm.OpBlock, wasm.OpIf, wasm.OpLoop:
			if len(kinds) > wasm.MaxNesting {
				return nil, bad(&ins, "blocks are nested too deeply")
			}
			if ins.Block >= 0 && ins.Block >= int64(len(m.Types)) {
				return nil, bad(&ins, "unknown block type")
			}
			kinds = append(kinds, ins.Op)
			blocks = append(blocks, current)
			if ins.Op == wasm.OpLoop {
				regions = append(regions, region{loop: len(f.loops), cost: 1})
				f.loops = append(f.loops, 0)
				current = len(regions) - 1
			}
		case wasm.OpElse:
			if kinds[len(kinds)-1] != wasm.OpIf {
				return nil, bad(&ins, "an else without if")
			}
			kinds[len(kinds)-1] = wasm.OpElse
		case wasm.OpEnd:
			kinds = kinds[:len(kinds)-1]
			if len(kinds) == 0 {
				if ins.End != len(body.Code) {
					return nil, bad(&ins, "code after the function's end")
				}
				f.weight = frameWeight(uint64(len(typ.Params))+locals, n)
				f.leaf = len(f.loops) == 0 && len(f.calls) == 0 && !f.indir && !f.bulk && regions[0].cost <= leafCost
				return regions, nil
			}
			current = blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
		case wasm.OpBr, wasm.OpBrIf:
			if int(ins.X) >= len(kinds) {
				return nil, bad(&ins, "unknown label")
			}
		case wasm.OpBrTable:
			for _, l := range it.Labels() {
				if int(l) >= len(kinds) {
					return nil, bad(&ins, "unknown label")
				}
			}
			regions[current].cost += 2
		case wasm.OpCall:
			if ins.X >= total {
				return nil, bad(&ins, "unknown function")
			}
			f.calls = append(f.calls, ins.X)
			regions[current].calls = append(regions[current].calls, ins.X)
			if int(ins.X) < in.imported {
				imp := &m.Imports[ins.X]
				regions[current].cost += hostCost(imp.Module, imp.Name)
			}
		case wasm.OpCallIndirect:
			if int(ins.X) >= len(m.Types) || int(ins.Y) >= len(m.Tables) {
				return nil, bad(&ins, "unknown type or table")
			}
			f.indir = true
			regions[current].cost += 2 + leafCost
		case wasm.OpRefFunc:
			if ins.X >= total {
				return nil, bad(&ins, "unknown function")
			}
			in.usesRefFunc = true
			in.take(ins.X)
		case wasm.OpGlobalGet, wasm.OpGlobalSet:
			if int(ins.X) >= len(m.Globals) {
				return nil, bad(&ins, "unknown global "+strconv.Itoa(int(ins.X)))
			}
		case wasm.OpLocalGet, wasm.OpLocalSet, wasm.OpLocalTee:
			if uint64(ins.X) >= uint64(len(typ.Params))+locals {
				return nil, bad(&ins, "unknown local")
			}
		case wasm.OpTableGet, wasm.OpTableSet:
			if int(ins.X) >= len(m.Tables) {
				return nil, bad(&ins, "unknown table")
			}
		case wasm.OpMemoryGrow:
			f.bulk = true
			regions[current].cost += pageCost
		case wasm.OpMisc:
			if ins.Sub >= wasm.MiscMemoryInit {
				if reason := in.miscInRange(&ins); reason != "" {
					return nil, bad(&ins, reason)
				}
				f.bulk = true
				regions[current].cost += 8
			}
		}
	}
}

func (in *instrumenter) miscInRange(ins *wasm.Instr) string {
	m := in.src
	tables, elems, segments := uint32(len(m.Tables)), uint32(len(m.Elems)), uint32(0)
	if m.DataCount != nil {
		segments = *m.DataCount
	}
	ok := true
	switch ins.Sub {
	case wasm.MiscMemoryInit, wasm.MiscDataDrop:
		in.usesData = true
		ok = ins.X < segments
	case wasm.MiscElemDrop:
		ok = ins.X < elems
	case wasm.MiscTableInit:
		ok = ins.X < elems && ins.Y < tables
	case wasm.MiscTableCopy:
		ok = ins.X < tables && ins.Y < tables
	case wasm.MiscTableGrow, wasm.MiscTableSize, wasm.MiscTableFill:
		ok = ins.X < tables
	}
	if !ok {
		return "unknown table or segment"
	}
	return ""
}

// frameWeight estimates what wazero's frame of a function takes: its locals, and
// spilled temporaries, of which there cannot be more than instructions.
func frameWeight(locals, instrs uint64) uint64 {
	return frameBase + 8*locals + 8*min(instrs/4, 256)
}

func (in *instrumenter) take(f uint32) {
	if int(f) >= in.imported {
		in.funcs[int(f)-in.imported].taken = true
	}
}

// takenBySegments marks the functions that segments and globals refer to.
func (in *instrumenter) takenBySegments() {
	for i := range in.src.Elems {
		e := &in.src.Elems[i]
		for _, f := range e.Funcs {
			in.take(f)
		}
		for _, x := range e.Exprs {
			in.takeExpr(x)
		}
	}
	for i := range in.src.Globals {
		in.takeExpr(in.src.Globals[i].Init)
	}
	for _, e := range in.src.Exports {
		if e.Kind == wasm.KindFunc {
			in.take(e.Index)
		}
	}
}

func (in *instrumenter) takeExpr(x wasm.Expr) {
	it := wasm.NewInstrs(x, 0)
	var ins wasm.Instr
	for {
		if ok, err := it.Next(&ins); !ok || err != nil {
			return
		}
		if ins.Op == wasm.OpRefFunc && int(ins.X) < in.imported+len(in.src.Code) {
			in.take(ins.X)
		}
	}
}

// settle adds the leaves' costs to their callers' regions.
func (in *instrumenter) settle(regions [][]region) {
	for i := range in.funcs {
		for _, r := range regions[i] {
			cost := r.cost
			for _, c := range r.calls {
				if int(c) >= in.imported {
					if callee := &in.funcs[int(c)-in.imported]; callee.leaf {
						cost += regions[int(c)-in.imported][0].cost
					}
				}
			}
			if r.loop < 0 {
				in.funcs[i].cost = cost
			} else {
				in.funcs[i].loops[r.loop] = cost
			}
		}
	}
}
