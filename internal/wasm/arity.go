package wasm

// Arity is how many operands an instruction takes and how many results it leaves,
// for all but calls and those that open, close or leave blocks: see [Stack].
func (in *Instr) Arity() (takes, leaves int) {
	switch op := in.Op; {
	case op == OpDrop, op == OpLocalSet, op == OpGlobalSet:
		return 1, 0
	case op == OpSelect, op == OpSelectT:
		return 3, 1
	case op == OpLocalGet, op == OpGlobalGet, op == OpMemorySize, op >= OpI32Const && op <= OpF64Const, op == OpRefNull, op == OpRefFunc:
		return 0, 1
	case op == OpTableSet, op >= 0x36 && op <= 0x3e: // stores
		return 2, 0
	case op == OpLocalTee, op == OpTableGet, op >= 0x28 && op <= 0x35, op == OpMemoryGrow, op == OpRefIsNull:
		return 1, 1
	case op >= 0x45 && op <= 0xc4:
		if unary(op) {
			return 1, 1
		}
		return 2, 1
	case op == OpMisc:
		switch in.Sub {
		case MiscMemoryInit, MiscMemoryCopy, MiscMemoryFill, MiscTableInit, MiscTableCopy, MiscTableFill:
			return 3, 0
		case MiscDataDrop, MiscElemDrop:
			return 0, 0
		case MiscTableGrow:
			return 2, 1
		case MiscTableSize:
			return 0, 1
		}
		return 1, 1 // saturating conversions
	case op == OpSIMD:
		return vectorArity(in.Sub)
	}
	return 0, 0
}

// unary tells numeric instructions with one operand from those with two.
func unary(op byte) bool {
	switch {
	case op == 0x45, op == 0x50: // eqz
	case op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b: // clz, ctz, popcnt
	case op >= 0x8b && op <= 0x91, op >= 0x99 && op <= 0x9f: // abs to sqrt
	case op >= 0xa7: // conversions
	default:
		return false
	}
	return true
}

func vectorArity(s uint32) (takes, leaves int) {
	switch {
	case s == 12: // const
		return 0, 1
	case s == 11, s >= 88 && s <= 91: // stores
		return 2, 0
	case s == 82: // bitselect
		return 3, 1
	case s <= 10, s >= 15 && s <= 20, s >= 92 && s <= 100, s >= 103 && s <= 106, s == 116, s == 117, s == 122, s >= 124 && s <= 129,
		s == 131, s == 132, s >= 135 && s <= 138, s == 148, s == 160, s == 161, s == 163, s == 164, s >= 167 && s <= 170,
		s == 192, s == 193, s == 195, s == 196, s >= 199 && s <= 202, s == 224, s == 225, s == 227, s == 236, s == 237, s == 239, s >= 248,
		s == 77, s == 83:
		return 1, 1
	case s >= 21 && s <= 34: // lanes
		switch s {
		case 23, 26, 28, 30, 32, 34:
			return 2, 1
		}
		return 1, 1
	}
	return 2, 1
}

// Stack follows the height of the operand stack through a function. Code that is
// not valid makes it wrong but never fails; behind an instruction that does not
// go on the height is that of the block.
type Stack struct {
	m      *Module
	types  []uint32 // of all functions
	frames []Frame

	Height int
	Max    int // the greatest height so far, arguments of calls and results included
	Dead   bool
}

// Frame is an open block.
type Frame struct {
	Op     byte // OpBlock, OpLoop, OpIf, OpElse
	Base   int  // height below its parameters
	Params int
	Leaves int  // results
	Dead   bool // its head cannot be reached
}

// Takes is how many values a branch to the block carries.
func (f *Frame) Takes() int {
	if f.Op == OpLoop {
		return f.Params
	}
	return f.Leaves
}

// NewStack makes one for the functions of m, whose types [Module.FuncTypes] tells.
func NewStack(m *Module, types []uint32) Stack { return Stack{m: m, types: types} }

// Begin starts a function of a type.
func (s *Stack) Begin(typ uint32) {
	s.Height, s.Max, s.Dead = 0, 0, false
	s.frames = append(s.frames[:0], Frame{Op: OpBlock, Leaves: len(s.m.Types[typ].Results)})
}

// Depth is how many blocks are open, the function's own included.
func (s *Stack) Depth() int { return len(s.frames) }

// Frame is the block that a label means; nil if there is none.
func (s *Stack) Frame(label uint32) *Frame {
	if uint64(label) >= uint64(len(s.frames)) {
		return nil
	}
	return &s.frames[len(s.frames)-1-int(label)]
}

func (s *Stack) pop(n int) {
	base := 0
	if len(s.frames) > 0 {
		base = s.frames[len(s.frames)-1].Base
	}
	s.Height = max(s.Height-n, base)
}

func (s *Stack) push(n int) {
	s.Height += n
	s.Max = max(s.Max, s.Height)
}

// BlockArity is how many parameters and results a block's type has.
func (m *Module) BlockArity(in *Instr) (params, results int) {
	switch {
	case in.Block >= 0 && in.Block < int64(len(m.Types)):
		t := &m.Types[in.Block]
		return len(t.Params), len(t.Results)
	case in.Block == -64 || in.Block >= 0:
		return 0, 0
	}
	return 0, 1
}

// Call is what an instruction calls takes and gives; an index of an indirect call
// is not among the parameters.
func (s *Stack) Call(in *Instr) (params, results int) {
	typ := in.X
	if in.Op == OpCall {
		if uint64(in.X) >= uint64(len(s.types)) {
			return 0, 0
		}
		typ = s.types[in.X]
	}
	if uint64(typ) >= uint64(len(s.m.Types)) {
		return 0, 0
	}
	t := &s.m.Types[typ]
	return len(t.Params), len(t.Results)
}

// leave makes the rest of the block dead.
func (s *Stack) leave() {
	s.Dead = true
	if len(s.frames) > 0 {
		s.Height = s.frames[len(s.frames)-1].Base
	}
}

// Step follows one instruction.
func (s *Stack) Step(in *Instr) {
	switch in.Op {
	case OpBlock, OpLoop, OpIf:
		if in.Op == OpIf {
			s.pop(1)
		}
		params, results := s.m.BlockArity(in)
		s.pop(params)
		s.frames = append(s.frames, Frame{in.Op, s.Height, params, results, s.Dead})
		s.push(params)
	case OpElse:
		if len(s.frames) == 0 {
			return
		}
		f := &s.frames[len(s.frames)-1]
		f.Op = OpElse
		s.Dead, s.Height = f.Dead, f.Base
		s.push(f.Params)
	case OpEnd:
		if len(s.frames) == 0 {
			return
		}
		f := s.frames[len(s.frames)-1]
		s.frames = s.frames[:len(s.frames)-1]
		s.Height = f.Base
		s.push(f.Leaves)
		s.Dead = f.Dead // or reached by a branch: the estimate knows more
	case OpBr, OpBrTable, OpReturn, OpUnreachable:
		s.leave()
	case OpBrIf:
		s.pop(1)
	case OpCall, OpCallIndirect:
		if in.Op == OpCallIndirect {
			s.pop(1)
		}
		params, results := s.Call(in)
		s.pop(params)
		s.push(results)
	default:
		takes, leaves := in.Arity()
		s.pop(takes)
		s.push(leaves)
	}
}
