package estimate

import "github.com/wasmactors/wasmactors/internal/wasm"

// function estimates the i-th function of the module's own.
func (s *sim) function(i int) {
	body, typ := &s.m.Code[i], &s.m.Types[s.m.Funcs[i]]
	s.steps, s.total, s.bytes, s.output = [causes]uint64{}, 0, 0, 0
	s.vals, s.frames, s.blocks, s.values, s.loops = s.vals[:0], s.frames[:0], s.blocks[:0], s.values[:0], s.loops[:0]
	if len(s.defs) > 4096 {
		s.defs = map[uint64]int32{}
	}
	clear(s.defs)
	s.now, s.order, s.inner, s.dead, s.deeper, s.calls, s.depth, s.known, s.nested = 0, 1, -1, false, 0, 0, 0, 0, 0
	s.passed, s.vector = 0, false
	locals := uint64(len(typ.Params)) + body.NumLocals()
	s.locals = int32(locals)
	s.add(Code, stepsFunction)
	s.add(Locals, locals*stepsLocal)
	s.take(locals * bytesLocal)
	s.add(Globals, uint64(len(s.m.Globals))*stepsGlobal)
	s.newBlock() // entry
	s.newBlock() // returns
	s.blocks[0].sealed, s.blocks[0].order = true, 0
	s.newValue() // zero
	s.newValue() // the module's and the execution's context
	for p := range typ.Params {
		s.define(0, int32(p), s.newValue())
	}
	s.add(Branches, uint64(len(typ.Params)+len(typ.Results))*stepsArgument)
	s.frames = append(s.frames, frame{op: wasm.OpBlock, results: len(typ.Results), following: returns, loop: -1})
	it := wasm.NewInstrs(body.Code, body.Offset)
	var ins wasm.Instr
	for !s.over && len(s.frames) > 0 {
		ok, err := it.Next(&ins)
		if !ok || err != nil {
			break
		}
		s.step(&ins, &it)
	}
	s.finish()
}

// finish counts what lives across blocks.
func (s *sim) finish() {
	var live, climbs uint64
	for i := range s.values {
		v := &s.values[i]
		last := v.last
		if v.loop >= 0 {
			last = max(last, s.loops[v.loop].end)
		}
		if last > v.def {
			live += uint64(last - v.def)
			if v.spilled || last-v.def > 1 {
				if up := v.deepest - s.blocks[v.block].depth; up > 0 && v.spilled {
					climbs += uint64(up)
				}
			}
		}
	}
	s.add(Live, live*stepsLive+climbs*stepsSpill)
	s.take(live * bytesLive)
	// The distance to the loop around a block, in the tree of dominators.
	var near uint64
	deepest := int32(0)
	for i := range s.blocks {
		b := &s.blocks[i]
		deepest = max(deepest, b.depth)
		if b.order < 0 {
			continue
		}
		if b.depth > 0 && s.blocks[b.idom].header {
			b.known = 1 // reused: the distance
		} else if b.depth > 0 {
			b.known = s.blocks[b.idom].known + 1
		} else {
			b.known = 0
		}
		near += uint64(b.known)
	}
	s.add(Blocks, near*stepsClimb)
	s.take(uint64(deepest) * bytesDepth)
}

func (s *sim) step(ins *wasm.Instr, it *wasm.Instrs) {
	if s.dead {
		s.skip(ins, it)
		return
	}
	s.add(Code, stepsInstr)
	s.take(bytesInstr)
	s.output += outInstr
	switch ins.Op {
	case wasm.OpNop, wasm.OpDrop:
		if ins.Op == wasm.OpDrop {
			s.pop()
		}
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
		s.open(ins)
	case wasm.OpElse:
		s.otherwise()
	case wasm.OpEnd:
		s.close()
	case wasm.OpBr:
		s.branch(ins.X)
		s.dead = true
	case wasm.OpBrIf:
		s.use(s.pop(), s.now)
		s.branch(ins.X)
		on := s.newBlock()
		s.newBlock() // a split edge
		s.jump(on, 0)
		s.seal(on)
		s.enter(on)
	case wasm.OpBrTable:
		s.use(s.pop(), s.now)
		s.table(it.Labels())
		s.dead = true
	case wasm.OpReturn:
		n := s.frames[0].results
		s.need(n)
		for k := range n {
			s.use(s.vals[len(s.vals)-1-k], s.now)
		}
		s.pass(n)
		s.dead = true
	case wasm.OpUnreachable:
		s.dead = true
	case wasm.OpCall, wasm.OpCallIndirect:
		s.call(ins)
	case wasm.OpLocalGet:
		s.push(s.find(int32(ins.X), s.now))
	case wasm.OpLocalSet:
		s.define(s.now, int32(ins.X), s.pop())
	case wasm.OpLocalTee:
		s.need(1)
		s.define(s.now, int32(ins.X), s.vals[len(s.vals)-1])
	case wasm.OpGlobalGet:
		s.load(s.locals + 2 + int32(ins.X))
		s.push(s.newValue())
	case wasm.OpGlobalSet:
		v := s.pop()
		s.use(v, s.now)
		s.define(s.now, s.locals+2+int32(ins.X), v)
	default:
		s.plain(ins)
	}
}

// plain is an instruction without control.
func (s *sim) plain(ins *wasm.Instr) {
	takes, leaves := ins.Arity()
	switch op := ins.Op; {
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82: // division
		s.add(Code, stepsDivision)
		s.take(bytesDivision)
	case op >= 0xa8 && op <= 0xb1 && op != 0xac && op != 0xad: // float to integer
		s.add(Code, stepsTruncation)
		s.take(bytesTruncation)
	case op >= 0x28 && op <= 0x3e:
		s.add(Code, stepsMemory)
		s.address(takes - 1)
	case op == wasm.OpSIMD:
		s.add(Code, stepsVector)
		if ins.Sub <= 11 || ins.Sub >= 84 && ins.Sub <= 93 {
			s.add(Code, stepsMemory)
			s.address(takes - 1)
		}
	case op == wasm.OpTableGet, op == wasm.OpTableSet, op == wasm.OpRefFunc, op == wasm.OpMemoryGrow:
		s.add(Code, stepsTable)
		s.take(8 * bytesInstr)
		if op == wasm.OpMemoryGrow {
			s.reload()
		}
	case op == wasm.OpMisc && ins.Sub >= wasm.MiscMemoryInit:
		s.add(Code, stepsBulk)
		s.take(bytesBulk)
		if op == wasm.OpMisc && (ins.Sub == wasm.MiscMemoryFill || ins.Sub == wasm.MiscTableFill) { // a loop
			s.add(Code, stepsFill)
			for range 4 {
				b := s.newBlock()
				s.jump(b, 0)
				s.seal(b)
				s.enter(b)
			}
		}
	}
	for range takes {
		s.use(s.pop(), s.now)
	}
	for range leaves {
		s.push(s.newValue())
	}
	if ins.Op >= wasm.OpI32Const && ins.Op <= wasm.OpF64Const {
		s.values[len(s.values)-1].fixed = true
	}
	s.vector = s.vector || ins.Op == wasm.OpSIMD
}

// address is a memory access; the address lies under n operands.
func (s *sim) address(n int) {
	s.need(n + 1)
	v := s.vals[len(s.vals)-1-n]
	s.load(s.locals)
	s.load(s.locals + 1)
	if s.values[v].known < 0 {
		s.values[v].known = s.now
		s.known++
		s.add(Code, stepsAddress)
		s.newValue() // the absolute address
	}
}

// reload reads what a call may have changed.
func (s *sim) reload() {
	s.calls++
	s.add(Reloads, uint64(len(s.mutable)+2)*stepsReload)
	s.take(uint64(len(s.mutable)+2) * bytesInstr / 2)
	s.blocks[s.now].reloads = true
}

func (s *sim) call(ins *wasm.Instr) {
	typ := ins.X
	if ins.Op == wasm.OpCall {
		if int(ins.X) >= len(s.types) {
			return
		}
		if int(ins.X) < s.imported {
			s.add(Imports, uint64(ins.X+1)*stepsImport)
		}
		typ = s.types[ins.X]
	} else {
		s.use(s.pop(), s.now)
		s.add(Code, stepsIndirect)
		s.take(10 * bytesInstr)
	}
	if int(typ) >= len(s.m.Types) {
		return
	}
	t := &s.m.Types[typ]
	n := len(t.Params) + len(t.Results)
	s.passed = max(s.passed, n)
	s.add(Branches, uint64(n)*stepsArgument)
	s.take(uint64(n) * bytesInstr / 2)
	s.output += uint64(n) * outPassed
	for range t.Params {
		s.use(s.pop(), s.now)
	}
	s.reload()
	for range t.Results {
		s.push(s.newValue())
	}
}

// skip handles unreachable code: it is only read and checked.
func (s *sim) skip(ins *wasm.Instr, it *wasm.Instrs) {
	s.add(Code, stepsInstr/16)
	switch ins.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
		s.deeper++
		params, results := s.m.BlockArity(ins)
		s.add(Branches, uint64(params+results)*stepsCheck)
	case wasm.OpCall, wasm.OpCallIndirect:
		typ := ins.X
		if ins.Op == wasm.OpCall && int(ins.X) < len(s.types) {
			typ = s.types[ins.X]
		}
		if int(typ) < len(s.m.Types) {
			s.add(Branches, uint64(len(s.m.Types[typ].Params)+len(s.m.Types[typ].Results))*stepsCheck)
		}
	case wasm.OpElse:
		if s.deeper == 0 {
			s.otherwise()
		}
	case wasm.OpEnd:
		if s.deeper > 0 {
			s.deeper--
			return
		}
		s.close()
	case wasm.OpBr, wasm.OpBrIf:
		s.check(ins.X)
	case wasm.OpBrTable:
		for _, l := range it.Labels() {
			s.check(l)
		}
	}
}

// check is what validating a branch in dead code takes.
func (s *sim) check(label uint32) {
	if s.deeper <= int(label) {
		if f := s.frame(label - uint32(s.deeper)); f != nil {
			s.add(Branches, uint64(f.takes())*stepsCheck)
		}
	}
}

func (s *sim) frame(label uint32) *frame {
	if uint64(label) >= uint64(len(s.frames)) {
		return nil
	}
	return &s.frames[len(s.frames)-1-int(label)]
}

func (f *frame) takes() int {
	if f.op == wasm.OpLoop {
		return f.params
	}
	return f.results
}

func (f *frame) target() int32 {
	if f.op == wasm.OpLoop {
		return f.header
	}
	return f.following
}

func (s *sim) branch(label uint32) {
	f := s.frame(label)
	if f == nil {
		return
	}
	s.need(f.takes())
	s.jump(f.target(), f.takes())
	if f.op == wasm.OpLoop {
		s.blocks[f.header].header = true
	}
}

func (s *sim) table(labels []uint32) {
	from := s.now
	s.take(uint64(len(labels)) * bytesLabel)
	s.add(Blocks, uint64(len(labels))*uint64(len(labels))*stepsLabels)
	for _, l := range labels {
		f := s.frame(l)
		if f == nil || s.over {
			return
		}
		t := s.newBlock()
		s.jump(t, 0)
		b := &s.blocks[t]
		b.sealed, b.single, b.order, b.loop, b.idom, b.depth, b.known = true, from, s.order, s.inner, from, s.blocks[from].depth+1, s.known
		s.order++
		s.now = t
		s.branch(l)
		s.now = from
	}
}

func (s *sim) open(ins *wasm.Instr) {
	params, results := s.m.BlockArity(ins)
	f := frame{op: ins.Op, params: params, results: results, loop: s.inner, header: -1, other: -1}
	if ins.Op == wasm.OpIf {
		s.use(s.pop(), s.now)
	}
	s.need(params)
	f.base = len(s.vals) - params
	s.add(Branches, uint64(params+results)*stepsCheck)
	switch ins.Op {
	case wasm.OpBlock:
		f.following = s.newBlock()
	case wasm.OpLoop:
		f.header, f.following = s.newBlock(), s.newBlock()
		s.jump(f.header, params)
		s.blocks[f.header].params = int32(params)
		depth := 1
		if s.inner >= 0 {
			depth = s.loops[s.inner].depth + 1
		}
		s.nested = max(s.nested, depth)
		s.loops = append(s.loops, loop{parent: s.inner, start: s.order, end: s.order, depth: depth})
		s.inner = int32(len(s.loops) - 1)
		s.frames = append(s.frames, f)
		s.enter(f.header)
		s.replace(f.base, params)
		return
	case wasm.OpIf:
		then := s.newBlock()
		f.other, f.following = s.newBlock(), s.newBlock()
		f.saved = append([]int32(nil), s.vals[f.base:]...)
		s.jump(f.other, 0)
		s.jump(then, 0)
		s.seal(then)
		s.seal(f.other)
		s.frames = append(s.frames, f)
		s.enter(then)
		return
	}
	s.frames = append(s.frames, f)
}

// replace replaces the passed values by a block's parameters.
func (s *sim) replace(base, n int) {
	s.vals = s.vals[:min(base, len(s.vals))]
	for range n {
		s.push(s.newValue())
	}
}

func (s *sim) otherwise() {
	f := &s.frames[len(s.frames)-1]
	if f.op != wasm.OpIf {
		return
	}
	f.op = wasm.OpElse
	if !s.dead {
		s.need(f.results)
		s.jump(f.following, f.results)
	}
	s.dead = false
	s.vals = append(s.vals[:min(f.base, len(s.vals))], f.saved...)
	s.enter(f.other)
}

func (s *sim) close() {
	f := s.frames[len(s.frames)-1]
	if !s.dead {
		s.need(f.results)
		s.jump(f.following, f.results)
	}
	s.dead = false
	switch f.op {
	case wasm.OpLoop:
		l := &s.loops[s.inner]
		l.end, l.calls, l.values = s.order, s.calls, int32(len(s.values))
		s.inner = f.loop
		s.phis(f.header, f.params)
		s.seal(f.header)
	case wasm.OpIf:
		s.vals = append(s.vals[:min(f.base, len(s.vals))], f.saved...)
		s.enter(f.other)
		s.need(f.results)
		s.jump(f.following, f.results)
	}
	s.frames = s.frames[:len(s.frames)-1]
	s.blocks[f.following].params = int32(f.results)
	s.phis(f.following, f.results)
	s.seal(f.following)
	if len(s.blocks[f.following].preds) == 0 {
		s.dead = true
		s.vals = s.vals[:min(f.base, len(s.vals))]
		return
	}
	s.enter(f.following)
	s.replace(f.base, f.results)
}

// phis looks at the arguments for a block's n parameters.
func (s *sim) phis(b int32, n int) {
	if b == returns {
		return // its parameters are the function's results
	}
	s.add(Branches, uint64(n)*uint64(n)*uint64(len(s.blocks[b].preds))*stepsPhi*uint64(1+s.nested))
}
