package estimate

import "github.com/wasmactors/wasmactors/internal/wasm"

// sim is the compiler's front end without instructions: one function at a time.
type sim struct {
	m        *wasm.Module
	types    []uint32 // of functions
	imported int
	mutable  []int32 // mutable globals, as variables
	most     Cost
	begin    uint64 // steps of what came before

	steps  [causes]uint64
	total  uint64
	bytes  uint64
	output uint64
	over   bool

	locals int32 // variables: locals, then memory's base and length, then globals
	vals   []int32
	frames []frame
	blocks []block
	values []value
	loops  []loop
	defs   map[uint64]int32
	now    int32 // current block
	order  int32 // of blocks that were begun
	inner  int32 // innermost loop, -1 for none
	dead   bool
	deeper int // blocks opened in dead code
	calls  int32
	depth  int // of recursion
	known  int32
	nested int // most loops
	passed int // most values that a call passes
	vector bool
}

type frame struct {
	op              byte
	base            int
	params, results int
	header, other   int32 // loop's header, if's else
	following       int32
	saved           []int32 // an if's parameters, for its else
	loop            int32
}

type block struct {
	preds   []int32
	unknown []unknown
	single  int32
	idom    int32
	depth   int32 // in the tree of dominators
	order   int32
	loop    int32
	known   int32 // addresses with known bounds at its end
	params  int32
	sealed  bool
	header  bool // a loop's, with a branch back
	defines bool // variables
	reloads bool // globals and the memory
}

// unknown is a local that was asked for before all predecessors were known.
type unknown struct{ variable, value int32 }

type value struct {
	def, last int32 // order of blocks
	block     int32
	loop      int32 // ends with this loop, -1
	calls     int32 // before it
	deepest   int32 // of its uses, in the tree of dominators
	known     int32 // its bounds are known in this block and those behind it alone
	until     int32 // how many values there were at its last use
	spilled   bool  // alive across a call
	fixed     bool  // a constant, which is made again where it is needed
}

type loop struct {
	parent     int32
	start, end int32 // order of blocks
	depth      int
	calls      int32 // up to its end
	values     int32 // likewise
}

const returns = 1 // the block that stands for the function's end; 0 is its entry

func newSim(m *wasm.Module, most Cost) *sim {
	s := &sim{m: m, types: m.FuncTypes(), imported: m.NumImported(wasm.KindFunc), most: most, defs: map[uint64]int32{}}
	for i := range m.Globals {
		if m.Globals[i].Mutable {
			s.mutable = append(s.mutable, int32(i))
		}
	}
	return s
}

// add counts n steps.
func (s *sim) add(c Cause, n uint64) {
	s.steps[c] += n
	s.total += n
	if s.begin+s.total > s.most.Steps {
		s.over = true
	}
}

func (s *sim) take(n uint64) {
	s.bytes += n
	if s.bytes > s.most.Bytes {
		s.over = true
	}
}

func (s *sim) newBlock() int32 {
	if len(s.blocks) < cap(s.blocks) { // keeps the slices of an earlier function
		s.blocks = s.blocks[:len(s.blocks)+1]
		b := &s.blocks[len(s.blocks)-1]
		*b = block{preds: b.preds[:0], unknown: b.unknown[:0], single: -1, order: -1, loop: -1}
	} else {
		s.blocks = append(s.blocks, block{single: -1, order: -1, loop: -1})
	}
	s.add(Blocks, stepsBlock)
	s.take(bytesBlock)
	return int32(len(s.blocks) - 1)
}

func (s *sim) newValue() int32 {
	b := &s.blocks[s.now]
	return s.valueIn(s.now, b)
}

func (s *sim) valueIn(at int32, b *block) int32 {
	s.values = append(s.values, value{def: b.order, last: b.order, block: at, loop: -1, calls: s.calls, deepest: b.depth, known: -1})
	s.take(bytesValue)
	return int32(len(s.values) - 1)
}

func key(b, v int32) uint64 { return uint64(uint32(b))<<32 | uint64(uint32(v)) }

func (s *sim) define(b, variable, v int32) {
	s.defs[key(b, variable)] = v
	s.blocks[b].defines = true
}

func (s *sim) defined(b, variable int32) (int32, bool) {
	if !s.blocks[b].defines {
		return 0, false
	}
	v, ok := s.defs[key(b, variable)]
	return v, ok
}

// use notes that a value is needed at the end of block b or before.
func (s *sim) use(v, b int32) {
	x, at := &s.values[v], &s.blocks[b]
	if at.order > x.last {
		x.last = at.order
	}
	if x.block != b {
		x.deepest = max(x.deepest, at.depth)
	}
	x.spilled = x.spilled || s.calls > x.calls
	x.until = int32(len(s.values))
	outer := int32(-1)
	for l := at.loop; l >= 0 && s.loops[l].start > x.def; l = s.loops[l].parent {
		outer = l
		s.total++
	}
	if outer >= 0 {
		x.loop = outer
	}
}

// find is the value of a variable at the end of a block.
func (s *sim) find(variable, b int32) int32 {
	walked := 0
	for {
		if v, ok := s.defined(b, variable); ok {
			if walked > 0 {
				s.add(Joins, uint64(walked)*stepsWalk+stepsFound)
			}
			return v
		}
		blk := &s.blocks[b]
		if !blk.sealed {
			s.add(Joins, uint64(walked)*stepsWalk+stepsFound)
			v := s.valueIn(b, blk)
			s.define(b, variable, v)
			blk.unknown = append(blk.unknown, unknown{variable, v})
			return v
		}
		if b == 0 || len(blk.preds) == 0 {
			s.add(Joins, uint64(walked)*stepsWalk+stepsFound)
			return 0 // zero
		}
		if blk.single < 0 {
			break
		}
		b = blk.single
		if walked++; walked&1023 == 0 && s.begin+s.total+uint64(walked)*stepsWalk > s.most.Steps {
			s.over = true
			return 0
		}
	}
	s.add(Joins, uint64(walked)*stepsWalk+stepsFound)
	s.depth += walked + 1
	s.deepest(s.depth)
	v := int32(0)
	if !s.over {
		v = s.join(variable, b)
	}
	s.depth -= walked + 1
	return v
}

// join is the value of a variable where paths join.
func (s *sim) join(variable, b int32) int32 {
	v := s.valueIn(b, &s.blocks[b])
	s.define(b, variable, v)
	unique := int32(-1)
	preds := s.blocks[b].preds
	for i, p := range preds {
		was := s.find(variable, p)
		if i == 0 {
			unique = was
		} else if unique != was {
			unique = -1
			break
		}
	}
	if unique >= 0 {
		s.define(b, variable, unique)
		return unique
	}
	s.param(b)
	s.phi(b, 2)
	for _, p := range preds {
		if s.over {
			break
		}
		s.use(s.find(variable, p), p)
		s.pass(1)
	}
	return v
}

// deepest notes a depth of the compiler's recursion.
func (s *sim) deepest(n int) {
	if b := uint64(n) * bytesDepth; b > s.most.Bytes {
		s.over, s.bytes = true, max(s.bytes, b)
	}
}

// load makes sure that a global, the memory's base or its length is available: it is looked for
// along the path up to a join.
func (s *sim) load(variable int32) {
	walked := 0
	for b := s.now; ; walked++ {
		blk := &s.blocks[b]
		v, ok := s.defined(b, variable)
		if ok || blk.reloads {
			if ok {
				s.use(v, s.now)
			} else {
				s.define(b, variable, s.valueIn(b, blk))
			}
			break
		}
		if b = blk.single; b < 0 || !blk.sealed {
			s.add(Code, stepsInstr)
			s.define(s.now, variable, s.newValue())
			break
		}
		if walked&1023 == 1023 && s.begin+s.total+uint64(walked)*stepsWalk > s.most.Steps {
			s.over = true
			break
		}
	}
	s.add(Joins, uint64(walked)*stepsWalk)
	s.deepest(walked)
}

// param gives a block another parameter, phi looks at its arguments.
func (s *sim) param(b int32) { s.blocks[b].params++ }

func (s *sim) phi(b int32, scanned int) {
	s.add(Joins, uint64(scanned)*uint64(s.blocks[b].params)*stepsPhi*uint64(1+s.nested))
}

func (s *sim) pass(n int) {
	s.add(Branches, uint64(n)*stepsPassed)
	s.take(uint64(n) * bytesPassed)
	s.output += uint64(n) * outPassed
}

// jump is a branch from the present block.
func (s *sim) jump(to int32, n int) {
	t := &s.blocks[to]
	s.add(Blocks, uint64(len(t.preds))*stepsPred+uint64(s.blocks[s.now].depth)*stepsClimb)
	s.take(bytesPred)
	t.preds = append(t.preds, s.now)
	for k := range n {
		s.use(s.vals[len(s.vals)-1-k], s.now)
	}
	s.pass(n)
}

func (s *sim) seal(b int32) {
	blk := &s.blocks[b]
	if len(blk.preds) == 1 {
		blk.single = blk.preds[0]
	}
	blk.sealed = true
	for i := 0; i < len(s.blocks[b].unknown) && !s.over; i++ {
		u := s.blocks[b].unknown[i]
		s.param(b)
		distinct, scanned := int32(-1), 0
		preds := s.blocks[b].preds
		for k, p := range preds {
			v := s.find(u.variable, p)
			s.use(v, p)
			s.pass(1)
			switch {
			case v == u.value || scanned < k:
			case distinct < 0, v == distinct:
				distinct, scanned = v, k+1
			}
			if v == u.value && scanned == k {
				scanned = k + 1
			}
		}
		s.phi(b, scanned+1)
	}
}

// enter makes b the present block; its predecessors, but for branches back, are
// known.
func (s *sim) enter(b int32) {
	blk := &s.blocks[b]
	s.blocks[s.now].known = s.known
	s.add(Bounds, uint64(s.known)*stepsBound)
	s.take(uint64(s.known) * bytesBound)
	blk.order = s.order
	s.order++
	blk.loop = s.inner
	if len(blk.preds) > 0 {
		blk.idom = blk.preds[0]
		for _, p := range blk.preds[1:] {
			blk.idom = s.common(blk.idom, p)
		}
		blk.depth = s.blocks[blk.idom].depth + 1
		s.known = s.blocks[blk.preds[0]].known
		for _, p := range blk.preds[1:] {
			s.known = min(s.known, s.blocks[p].known)
		}
	}
	if s.known > 0 {
		s.add(Bounds, uint64(len(blk.preds))*uint64(s.known)*4)
	}
	s.now = b
}

// common is the nearest block that dominates two.
func (s *sim) common(a, b int32) int32 {
	for a != b && !s.over {
		if s.blocks[a].depth < s.blocks[b].depth {
			a, b = b, a
		}
		a = s.blocks[a].idom
		s.add(Blocks, stepsClimb)
	}
	return a
}

func (s *sim) push(v int32) { s.vals = append(s.vals, v) }

func (s *sim) pop() int32 {
	base := 0
	if len(s.frames) > 0 {
		base = s.frames[len(s.frames)-1].base
	}
	if len(s.vals) <= base {
		return 0 // not valid: wazero will say so
	}
	v := s.vals[len(s.vals)-1]
	s.vals = s.vals[:len(s.vals)-1]
	return v
}

// need makes sure that there are n values to pop, valid or not.
func (s *sim) need(n int) {
	base := 0
	if len(s.frames) > 0 {
		base = s.frames[len(s.frames)-1].base
	}
	for len(s.vals)-base < n {
		s.push(0)
	}
}
