package rewrite

import "github.com/wasmactors/wasmactors/internal/wasm"

// Prices of instructions that take longer than most, in units of fuel. A unit is at most a
// nanosecond on the machine of TestPrices, where most instructions take 0.1 to 0.3 ns. The
// times are those of chains in which each instruction waits for the result of the one before,
// so that none run in parallel, with subnormal numbers where those are slow. Only loads may
// take longer: one that misses every cache takes 150 ns, and is priced as one that hits the
// last.
const (
	priceLoad      = 8
	priceStore     = 4
	priceDiv32     = 4
	priceDiv64     = 6
	priceFloat     = 3 // arithmetic, rounding, conversion
	priceTrunc     = 3 // of a float to an integer
	priceFDiv32    = 5
	priceFDiv64    = 8
	priceSqrt32    = 6
	priceSqrt64    = 10
	priceTable     = 2
	priceTableGrow = 64
	priceRefFunc   = 96 // calls the host
	priceVector    = 2
	priceIndirect  = 12
)

// flatPrice counts every instruction as one unit.
func flatPrice(ins *wasm.Instr) uint64 {
	switch ins.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpEnd, wasm.OpNop:
		return 0
	case wasm.OpBrTable:
		return 3
	}
	return 1
}

// instrPrice is the price of an instruction, without functions that it calls and without work
// that depends on an operand.
func instrPrice(ins *wasm.Instr) uint64 {
	switch op := ins.Op; {
	case op >= 0x28 && op <= 0x35:
		return priceLoad
	case op >= 0x36 && op <= 0x3e:
		return priceStore
	case op >= 0x6d && op <= 0x70:
		return priceDiv32
	case op >= 0x7f && op <= 0x82:
		return priceDiv64
	case op == 0x91:
		return priceSqrt32
	case op == 0x9f:
		return priceSqrt64
	case op == 0x95:
		return priceFDiv32
	case op == 0xa3:
		return priceFDiv64
	case op >= 0x8d && op <= 0x98, op >= 0x9b && op <= 0xa6, op >= 0xb2 && op <= 0xbb: // neither abs, neg nor reinterpretations
		return priceFloat
	case op >= 0xa8 && op <= 0xab, op >= 0xae && op <= 0xb1:
		return priceTrunc
	case op == wasm.OpTableGet, op == wasm.OpTableSet:
		return priceTable
	case op == wasm.OpRefFunc:
		return priceRefFunc
	case op == wasm.OpMisc && ins.Sub < wasm.MiscMemoryInit:
		return priceTrunc
	case op == wasm.OpSIMD:
		return vectorPrice(ins.Sub)
	}
	return 1
}

// vectorPrice is the price of a vector instruction.
func vectorPrice(s uint32) uint64 {
	switch {
	case s <= 10, s >= 84 && s <= 87, s == 92, s == 93:
		return priceLoad
	case s == 11, s >= 88 && s <= 91:
		return priceStore
	case s == 0xe3, s == 0xef: // sqrt
		return priceSqrt64
	case s == 0xe7, s == 0xf3: // div
		return priceFDiv64
	case s == 0xff: // f64x2.convert_low_i32x4_u
		return 56
	case s >= 0xf8: // other conversions
		return 8
	case s == 0xcc, s == 0xcb: // i64x2.shl, shr_s
		return 6
	case s == 0xd5, s >= 156 && s <= 159, s >= 188 && s <= 191, s >= 220 && s <= 223, s >= 0xe8 && s <= 0xeb, s >= 0xf4 && s <= 0xf7: // i64x2.mul, extended products, min and max
		return 5
	}
	return priceVector
}
