package rewrite

import (
	"strconv"

	"github.com/wasmactors/wasmactors/internal/estimate"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Costs, in units of fuel. One unit is about one instruction.
const (
	leafPath = 64 // the longest path of a leaf that is charged at its callers, in instructions
	// byteShift and entryShift are the price of bulk instructions: a unit for 16 bytes,
	// or for 2 table entries.
	byteShift  = 4
	entryShift = 1
	pageCost   = 4096 // of a page that memory.grow adds
	// smallBulk is up to how many bytes a bulk instruction of constant size is part of the
	// path, and has no charge of its own.
	smallBulk  = 2048
	localShift = 3 // zeroing 8 locals costs one unit
)

// Weights of frames, in bytes of stack; see estimate.Frames.
const (
	frameBase = 64
	// staticStack is the stack that functions which cannot recur may take together
	// without being counted.
	staticStack = 256 << 10
)

// hostCost is what calling an imported function costs. Work in proportion to the arguments
// is charged by the host, during the call.
func hostCost(module, name string) uint64 {
	switch module + "." + name {
	case "wasmactors.next":
		return 4
	case "wasi_snapshot_preview1.clock_time_get", "wasi_snapshot_preview1.sched_yield":
		return 128
	}
	return 512
}

// loop is what the analysis knows of a loop.
type loop struct {
	cost  uint64 // of its region
	calls bool   // calls a function that charges itself
}

// function is what the analysis knows of one of the module's own functions.
type function struct {
	cost    uint64 // of the region outside loops, locals included
	loops   []loop // in order of appearance
	nloops  int
	instrs  uint64
	calls   []uint32 // directly called functions (old indices), with repetitions
	weight  uint64   // bytes of its frame
	indir   bool     // performs call_indirect
	bulk    bool     // its cost depends on an operand
	floats  bool     // computes with floats
	size    bool     // needs the scratch locals for table.grow
	fills   bool     // needs those for fills by stores
	leaf    bool     // charged at its callers
	counted bool     // its depth is counted
	deep    bool     // has the depth as an argument
	local   bool     // its fuel is in a local
	taken   bool     // its address is taken: it may be called indirectly
}

// analyse fills in.funcs.
func (in *instrumenter) analyse() error {
	m := in.src
	in.imported = m.NumImported(wasm.KindFunc)
	in.types = m.FuncTypes()
	in.takenImport = make([]bool, in.imported)
	in.funcs = make([]function, len(m.Code))
	for i := range m.Code {
		if err := in.scan(i); err != nil {
			if e, ok := err.(*wasm.Error); ok && e.Func < 0 {
				e.Section, e.Func = "code", in.imported+i
			}
			return err
		}
	}
	in.takenBySegments()
	in.markLeaves()
	in.priceIndirect()
	for i := range m.Code {
		if err := in.weigh(i); err != nil {
			return err
		}
	}
	for i, bytes := range estimate.Frames(m, in.mostFrames()) {
		f := &in.funcs[i]
		if bytes == estimate.Unknown {
			bytes = uint64(in.opt.StackBytes) / 4
		}
		f.weight = max(f.weight, frameBase+bytes)
	}
	for i := range in.funcs {
		if in.funcs[i].nloops > manyLoops {
			in.funcs[i].local = false
			in.needs[chargeCost] = true
		}
	}
	in.markCounted()
	return nil
}

// scan walks the code of function i once.
func (in *instrumenter) scan(i int) error {
	m, f, body := in.src, &in.funcs[i], &in.src.Code[i]
	total := uint32(in.imported + len(m.Code))
	typ := m.Types[m.Funcs[i]]
	locals := body.NumLocals()
	it := wasm.NewInstrs(body.Code, body.Offset)
	bad := func(ins *wasm.Instr, reason string) error {
		return &wasm.Error{Offset: body.Offset + ins.Start, Section: "code", Func: in.imported + i, Reason: reason}
	}
	var ins, last wasm.Instr
	kinds := []byte{wasm.OpBlock}
	n := uint64(0)
	for {
		before := last
		last = ins
		ok, err := it.Next(&ins)
		if err != nil {
			return err
		}
		if !ok {
			return bad(&ins, "the function has no end")
		}
		n++
		in.steps++
		f.floats = f.floats || arithmetic(&ins) != notNaN
		switch ins.Op {
		case wasm.OpBlock, wasm.OpIf, wasm.OpLoop:
			if len(kinds) > wasm.MaxNesting {
				return bad(&ins, "blocks are nested too deeply")
			}
			if ins.Block >= 0 && ins.Block >= int64(len(m.Types)) {
				return bad(&ins, "unknown block type")
			}
			kinds = append(kinds, ins.Op)
			if ins.Op == wasm.OpLoop {
				f.nloops++
			}
		case wasm.OpElse:
			if kinds[len(kinds)-1] != wasm.OpIf {
				return bad(&ins, "an else without if")
			}
			kinds[len(kinds)-1] = wasm.OpElse
		case wasm.OpEnd:
			kinds = kinds[:len(kinds)-1]
			if len(kinds) == 0 {
				if ins.End != len(body.Code) {
					return bad(&ins, "code after the function's end")
				}
				f.weight = frameBase + 8*(uint64(len(typ.Params)+len(typ.Results))+locals)
				f.instrs = n
				return nil
			}
		case wasm.OpBr, wasm.OpBrIf:
			if int(ins.X) >= len(kinds) {
				return bad(&ins, "unknown label")
			}
		case wasm.OpBrTable:
			in.steps += uint64(len(it.Labels()))
			for _, l := range it.Labels() {
				if int(l) >= len(kinds) {
					return bad(&ins, "unknown label")
				}
			}
		case wasm.OpCall:
			if ins.X >= total {
				return bad(&ins, "unknown function")
			}
			f.calls = append(f.calls, ins.X)
		case wasm.OpCallIndirect:
			if int(ins.X) >= len(m.Types) || int(ins.Y) >= len(m.Tables) {
				return bad(&ins, "unknown type or table")
			}
			f.indir = true
		case wasm.OpRefFunc:
			if ins.X >= total {
				return bad(&ins, "unknown function")
			}
			in.usesRefFunc = true
			in.take(ins.X)
		case wasm.OpGlobalGet, wasm.OpGlobalSet:
			if int(ins.X) >= len(m.Globals) {
				return bad(&ins, "unknown global "+strconv.Itoa(int(ins.X)))
			}
		case wasm.OpLocalGet, wasm.OpLocalSet, wasm.OpLocalTee:
			if uint64(ins.X) >= uint64(len(typ.Params))+locals {
				return bad(&ins, "unknown local")
			}
		case wasm.OpTableGet, wasm.OpTableSet:
			if int(ins.X) >= len(m.Tables) {
				return bad(&ins, "unknown table")
			}
		case wasm.OpMemoryGrow:
			f.bulk = true
			in.needs[growMemory] = true
		case wasm.OpMisc:
			if ins.Sub >= wasm.MiscMemoryInit {
				if reason := in.miscInRange(&ins); reason != "" {
					return bad(&ins, reason)
				}
				_, small := smallCost(&last, &ins)
				f.bulk = f.bulk || !small
				f.size = f.size || ins.Sub == wasm.MiscTableGrow
				f.fills = f.fills || fillsByStores(&before, &last, &ins)
				switch ins.Sub {
				case wasm.MiscMemoryInit:
					in.needs[chargeBytes] = in.needs[chargeBytes] || !small
				case wasm.MiscMemoryCopy:
					in.needs[copyMemory] = in.needs[copyMemory] || !small
				case wasm.MiscMemoryFill:
					in.needs[fillMemory] = in.needs[fillMemory] || !small
				case wasm.MiscTableInit, wasm.MiscTableCopy, wasm.MiscTableFill:
					in.needs[chargeEntries] = true
				}
			}
		}
	}
}

// smallCost is the cost of a bulk instruction on memory whose size is the
// constant last before it, if that is small.
func smallCost(last, ins *wasm.Instr) (uint64, bool) {
	if ins.Op != wasm.OpMisc || last.Op != wasm.OpI32Const || last.X > smallBulk {
		return 0, false
	}
	switch ins.Sub {
	case wasm.MiscMemoryInit, wasm.MiscMemoryCopy, wasm.MiscMemoryFill:
		return uint64(last.X) >> byteShift, true
	}
	return 0, false
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

// mostFrames bounds the work of weighing frames: somewhat more than compiling a module may
// cost under the default limits.
func (in *instrumenter) mostFrames() estimate.Cost {
	code := uint64(0)
	for i := range in.src.Code {
		code += uint64(len(in.src.Code[i].Code))
	}
	return estimate.Cost{Steps: 800_000_000 + 1_200*code, Bytes: 140<<20 + 300*code}
}

func (in *instrumenter) take(f uint32) {
	if int(f) >= in.imported {
		in.funcs[int(f)-in.imported].taken = true
	} else if !in.takenImport[f] {
		in.takenImport[f] = true
		in.takenImports = append(in.takenImports, f)
	}
}

// priceIndirect prices indirect calls, by type: the most expensive leaf or imported function of the
// type whose address is taken, since those do not charge themselves.
func (in *instrumenter) priceIndirect() {
	m := in.src
	first := map[string]int{}
	kind := make([]int, len(m.Types)) // the first of equal types
	for t := range m.Types {
		k := in.key(&m.Types[t])
		if _, ok := first[k]; !ok {
			first[k] = t
		}
		kind[t] = first[k]
	}
	costs := make([]uint64, len(m.Types))
	for _, f := range in.takenImports {
		imp := &m.Imports[f]
		costs[kind[imp.Func]] = max(costs[kind[imp.Func]], hostCost(imp.Module, imp.Name))
	}
	for i := range in.funcs {
		if f, t := &in.funcs[i], m.Funcs[i]; f.leaf && f.taken {
			costs[kind[t]] = max(costs[kind[t]], f.cost)
		}
	}
	in.indirect = make([]uint64, len(m.Types))
	for t := range m.Types {
		in.indirect[t] = costs[kind[t]]
	}
}

// takenBySegments marks the functions whose address is taken by segments and globals.
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
		if e.Kind == wasm.KindFunc && int(e.Index) >= in.imported {
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

// markLeaves finds the functions that are charged at their callers: those without loops and
// calls whose longest path is short. Functions that the host calls are none.
func (in *instrumenter) markLeaves() {
	entry := map[int]bool{in.turn: true, in.init: true, in.initialize: true}
	if in.src.Start != nil {
		entry[int(*in.src.Start)] = true
	}
	for i := range in.funcs {
		f := &in.funcs[i]
		if f.nloops > 0 || len(f.calls) > 0 || f.indir || f.bulk || f.instrs > 8*leafPath || entry[in.imported+i] {
			continue
		}
		in.flat = true
		err := in.weigh(i)
		in.flat = false
		if err == nil && f.cost <= leafPath && in.weigh(i) == nil {
			f.leaf = true
		}
	}
}
