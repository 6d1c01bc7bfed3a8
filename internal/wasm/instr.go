package wasm

// Opcodes that callers care about.
const (
	OpUnreachable  byte = 0x00
	OpNop          byte = 0x01
	OpBlock        byte = 0x02
	OpLoop         byte = 0x03
	OpIf           byte = 0x04
	OpElse         byte = 0x05
	OpEnd          byte = 0x0b
	OpBr           byte = 0x0c
	OpBrIf         byte = 0x0d
	OpBrTable      byte = 0x0e
	OpReturn       byte = 0x0f
	OpCall         byte = 0x10
	OpCallIndirect byte = 0x11
	OpDrop         byte = 0x1a
	OpSelect       byte = 0x1b
	OpSelectT      byte = 0x1c
	OpLocalGet     byte = 0x20
	OpLocalSet     byte = 0x21
	OpLocalTee     byte = 0x22
	OpGlobalGet    byte = 0x23
	OpGlobalSet    byte = 0x24
	OpTableGet     byte = 0x25
	OpTableSet     byte = 0x26
	OpMemorySize   byte = 0x3f
	OpMemoryGrow   byte = 0x40
	OpI32Const     byte = 0x41
	OpI64Const     byte = 0x42
	OpF32Const     byte = 0x43
	OpF64Const     byte = 0x44
	OpRefNull      byte = 0xd0
	OpRefIsNull    byte = 0xd1
	OpRefFunc      byte = 0xd2
	OpMisc         byte = 0xfc // Sub says which
	OpSIMD         byte = 0xfd // Sub says which
)

// Sub-opcodes of OpMisc.
const (
	MiscMemoryInit uint32 = 8
	MiscDataDrop   uint32 = 9
	MiscMemoryCopy uint32 = 10
	MiscMemoryFill uint32 = 11
	MiscTableInit  uint32 = 12
	MiscElemDrop   uint32 = 13
	MiscTableCopy  uint32 = 14
	MiscTableGrow  uint32 = 15
	MiscTableSize  uint32 = 16
	MiscTableFill  uint32 = 17
)

// Instr is one instruction.
type Instr struct {
	Op    byte
	Sub   uint32 // for OpMisc and OpSIMD
	X, Y  uint32 // indices: label, function, type and table, local, global, ...; X: the value of i32.const
	Block int64  // block type: -64 for none, other negatives for a value type, else a type index
	Start int    // offsets in the code
	End   int
}

// Instrs reads the instructions of a function's code one by one.
type Instrs struct {
	r      reader
	labels []uint32 // of the last br_table, default last
}

// NewInstrs reads code, which lies at offset base of the module.
func NewInstrs(code []byte, base int) Instrs { return Instrs{r: reader{b: code, base: base}} }

// Labels are those of the last br_table, the default last; valid until Next.
func (it *Instrs) Labels() []uint32 { return it.labels }

// Next reads the next instruction; false at the end of the code.
func (it *Instrs) Next(in *Instr) (bool, error) {
	r := &it.r
	if r.at == len(r.b) {
		return false, nil
	}
	*in = Instr{Start: r.at}
	in.Op = r.byte()
	switch op := in.Op; {
	case op <= OpNop, op == OpElse, op == OpEnd, op == OpReturn, op == OpDrop, op == OpSelect:
	case op >= OpBlock && op <= OpIf:
		in.Block = r.blockType()
	case op == OpBr, op == OpBrIf, op == OpCall, op >= OpLocalGet && op <= OpTableSet, op == OpRefFunc:
		in.X = r.u32()
	case op == OpBrTable:
		n := r.count(1)
		it.labels = it.labels[:0]
		for range n + 1 {
			it.labels = append(it.labels, r.u32())
		}
	case op == OpCallIndirect:
		in.X, in.Y = r.u32(), r.u32()
	case op == OpSelectT:
		for range r.count(1) {
			r.valType()
		}
	case op >= 0x28 && op <= 0x3e:
		r.memArg()
	case op == OpMemorySize, op == OpMemoryGrow:
		r.zero()
	case op == OpI32Const:
		in.X = uint32(r.s32())
	case op == OpI64Const:
		r.s64()
	case op == OpF32Const:
		r.skip(4)
	case op == OpF64Const:
		r.skip(8)
	case op >= 0x45 && op <= 0xc4, op == OpRefIsNull:
	case op == OpRefNull:
		if t := r.valType(); r.err == nil && !t.IsRef() {
			r.fail("ref.null of a type that is not a reference")
		}
	case op == OpMisc:
		it.misc(in)
	case op == OpSIMD:
		it.simd(in)
	default:
		r.at--
		r.fail(unknownOpcode(op))
	}
	in.End = r.at
	if r.err != nil {
		return false, r.err
	}
	return true, nil
}

func unknownOpcode(op byte) string {
	switch op {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return "exception handling is not supported"
	case 0x12, 0x13:
		return "tail calls are not supported"
	case 0x14, 0x15, 0xd3, 0xd4, 0xd5, 0xd6:
		return "typed function references are not supported"
	case 0xfb:
		return "garbage collection is not supported"
	case 0xfe:
		return "threads are not supported"
	}
	return "unknown opcode 0x" + hex(op)
}

func hex(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

func (it *Instrs) misc(in *Instr) {
	r := &it.r
	in.Sub = r.u32()
	switch in.Sub {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case MiscMemoryInit:
		in.X = r.u32()
		r.zero()
	case MiscDataDrop, MiscElemDrop, MiscTableGrow, MiscTableSize, MiscTableFill:
		in.X = r.u32()
	case MiscMemoryCopy:
		r.zero()
		r.zero()
	case MiscMemoryFill:
		r.zero()
	case MiscTableInit, MiscTableCopy:
		in.X, in.Y = r.u32(), r.u32()
	default:
		r.fail("unknown opcode 0xfc")
	}
}

func (it *Instrs) simd(in *Instr) {
	r := &it.r
	in.Sub = r.u32()
	switch s := in.Sub; {
	case s <= 11, s == 92, s == 93:
		r.memArg()
	case s == 12, s == 13:
		r.skip(16)
	case s >= 21 && s <= 34:
		r.skip(1)
	case s >= 84 && s <= 91:
		r.memArg()
		r.skip(1)
	case s <= 255 && simdKnown(s):
	default:
		r.fail("unknown or relaxed SIMD opcode")
	}
}

// simdKnown tells the holes in the SIMD opcode space.
func simdKnown(s uint32) bool {
	switch s {
	case 0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee:
		return false
	}
	return true
}
