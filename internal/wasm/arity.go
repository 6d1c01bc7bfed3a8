package wasm

// Arity is how many operands an instruction takes and how many results it leaves,
// for all but calls and those that open, close or leave blocks.
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
