package rewrite

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// priced is a piece of code that is repeated to measure what it takes. It finds
// its operand in local 1, 2, 3 or 4 (i32, i64, f32, f64) and leaves nothing.
type priced struct {
	name string
	code []byte
	ops  int // instructions of the kind that is measured
}

func pricedCodes() []priced {
	get := func(l int) []byte { return wasmgen.Op(wasm.OpLocalGet, l) }
	set := func(l int) []byte { return wasmgen.Op(wasm.OpLocalSet, l) }
	c := wasmgen.Code
	f32 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{wasm.OpF32Const}, v) }
	f64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{wasm.OpF64Const}, v) }
	i32 := wasmgen.Const
	i64 := func(v int64) []byte { return wasm.AppendS64([]byte{wasm.OpI64Const}, v) }
	one := func(name string, l int, op ...byte) priced { return priced{name, c(get(l), op, set(l)), 1} }
	two := func(name string, l int, with []byte, op ...byte) priced {
		return priced{name, c(get(l), with, op, set(l)), 1}
	}
	const pi32, pi64 = 0x40490fdb, 0x400921fb54442d18
	misc := func(sub byte) []byte { return []byte{wasm.OpMisc, sub} }
	list := []priced{
		two("i32.add", 1, get(5), 0x6a), two("i64.mul", 2, i64(0x12345), 0x7e),
		two("i32.div_s", 1, get(6), 0x6d), two("i32.div_u", 1, get(6), 0x6e), two("i32.rem_s", 1, get(6), 0x6f), two("i32.rem_u", 1, get(6), 0x70),
		{"i64.div_s", c(get(2), i64(-1), []byte{0x85}, get(7), []byte{0x7f}, set(2)), 1},
		{"i64.div_u", c(i64(-1), get(2), []byte{0x83}, i64(-1), []byte{0x84}, get(7), []byte{0x80}, set(2)), 1},
		{"i64.rem_s", c(i64(-1), get(2), []byte{0x85}, get(7), []byte{0x81}, set(2)), 1},
		{"i64.rem_u", c(i64(-1), get(2), []byte{0x84}, get(7), []byte{0x82}, set(2)), 1},
		one("i32.clz", 1, 0x67), one("i32.ctz", 1, 0x68), one("i32.popcnt", 1, 0x69), one("i64.clz", 2, 0x79), one("i64.popcnt", 2, 0x7b),
		two("i32.shl", 1, get(5), 0x74), two("i32.rotl", 1, get(5), 0x77),
		one("f32.sqrt", 3, 0x91), one("f64.sqrt", 4, 0x9f),
		two("f32.add", 3, f32(pi32), 0x92), two("f64.add", 4, f64(pi64), 0xa0), two("f64.mul", 4, f64(pi64), 0xa2), two("f32.div", 3, f32(pi32), 0x95), two("f64.div", 4, f64(pi64), 0xa3),
		two("f32.min", 3, f32(pi32), 0x96), two("f64.min", 4, f64(pi64), 0xa4), two("f64.max", 4, f64(pi64), 0xa5), two("f64.copysign", 4, f64(pi64), 0xa6),
		one("f32.ceil", 3, 0x8d), one("f64.ceil", 4, 0x9b), one("f64.floor", 4, 0x9c), one("f64.trunc", 4, 0x9d), one("f64.nearest", 4, 0x9e), one("f64.abs", 4, 0x99),
		{"f64.convert_i32_s, i32.trunc_f64_s", c(get(1), []byte{0xb7, 0xaa}, set(1)), 2},
		{"f64.convert_i32_u, i32.trunc_f64_u", c(get(1), []byte{0xb8, 0xab}, set(1)), 2},
		{"f64.convert_i64_u, i64.trunc_sat_f64_u", c(get(2), []byte{0xba}, misc(7), set(2)), 2},
		{"f64.convert_i64_s, i64.trunc_sat_f64_s", c(get(2), []byte{0xb9}, misc(6), set(2)), 2},
		{"f32.convert_i64_u, i64.trunc_sat_f32_u", c(get(2), []byte{0xb5}, misc(5), set(2)), 2},
		{"f32.convert_i32_s, i32.trunc_sat_f32_s", c(get(1), []byte{0xb2}, misc(0), set(1)), 2},
		{"i64.trunc_sat_f64_u of a large", c(f64(0x43e8000000000000), get(4), []byte{0xa0}, misc(7), []byte{wasm.OpDrop}), 1},
		{"f32.demote, f64.promote", c(get(4), []byte{0xb6, 0xbb}, set(4)), 2},
		{"f64.mul of a subnormal", c(f64(1<<51|12345), f64(0x3fe0000000000001), []byte{0xa2}, get(4), []byte{0xa0}, set(4)), 2},
		{"f64.add of subnormals", c(f64(0x0008000000012345), get(11), []byte{0xa0}, set(11)), 1},
		{"f64.mul chain of subnormals", c(get(11), f64(0x3ff0000000000001), []byte{0xa2}, set(11)), 1},
		{"f64.sqrt of a subnormal", c(get(11), []byte{0x9f, wasm.OpDrop}), 1},
		{"f64.div of a subnormal", c(get(11), f64(0x3ff0000000000001), []byte{0xa3}, set(11)), 1},
		{"f32.demote of a subnormal", c(get(11), []byte{0xb6, 0xbb}, set(11)), 2},
		{"f64.nearest of a subnormal", c(get(11), []byte{0x9e, wasm.OpDrop}), 1},
		{"reinterpret", c(get(4), []byte{0xbd, 0xbf}, set(4)), 2},
		{"i32.load", c(get(8), []byte{0x28, 2, 0}, set(8)), 1},
		{"i64.load8_s", c(get(8), []byte{0x30, 0, 0, 0xa7}, set(8)), 1},
		{"i32.store", c(get(8), get(1), []byte{0x36, 2, 0}), 1},
		{"i32.load that misses", c(get(9), []byte{0x28, 2, 0}, set(9)), 1},
		{"select", c(get(1), get(5), get(6), []byte{wasm.OpSelect}, set(1)), 1},
		{"global.get, global.set", c(wasmgen.Op(wasm.OpGlobalGet, 0), get(5), []byte{0x6a}, wasmgen.Op(wasm.OpGlobalSet, 0)), 2},
		{"call", c(get(1), wasmgen.Op(wasm.OpCall, 3), set(1)), 1},
		{"call_indirect", c(get(1), i32(0), []byte{wasm.OpCallIndirect, 2, 0}, set(1)), 1},
		{"memory.size", c([]byte{wasm.OpMemorySize, 0}, set(1)), 1},
		{"memory.grow 0", c(i32(0), []byte{wasm.OpMemoryGrow, 0}, set(1)), 1},
		{"memory.copy of 0", c(i32(0), i32(64), i32(0), []byte{wasm.OpMisc, 10, 0, 0}), 1},
		{"memory.copy of 2000", c(i32(0), i32(4096), i32(2000), []byte{wasm.OpMisc, 10, 0, 0}), 1},
		{"memory.copy of 1 MiB", c(i32(0), i32(1<<20+7), i32(1<<20), []byte{wasm.OpMisc, 10, 0, 0}), 1},
		{"memory.copy of 16 MiB", c(i32(0), i32(16<<20+7), i32(16<<20), []byte{wasm.OpMisc, 10, 0, 0}), 1},
		{"memory.fill of 0", c(i32(0), i32(64), i32(0), []byte{wasm.OpMisc, 11, 0}), 1},
		{"memory.fill of 2000", c(i32(0), i32(1), i32(2000), []byte{wasm.OpMisc, 11, 0}), 1},
		{"memory.fill of 16 MiB", c(i32(0), i32(1), i32(16<<20), []byte{wasm.OpMisc, 11, 0}), 1},
		{"table.get", c(i32(0), []byte{wasm.OpTableGet, 0, wasm.OpDrop}), 1},
		{"table.set", c(i32(0), []byte{wasm.OpRefNull, 0x70, wasm.OpTableSet, 0}), 1},
		{"table.size", c([]byte{wasm.OpMisc, 16, 0}, set(1)), 1},
		{"table.copy of 60000", c(i32(0), i32(100), i32(60000), []byte{wasm.OpMisc, 14, 0, 0}), 1},
		{"table.fill of 60000", c(i32(0), []byte{wasm.OpRefNull, 0x70}, i32(60000), []byte{wasm.OpMisc, 17, 0}), 1},
		{"table.copy of 0", c(i32(0), i32(100), i32(0), []byte{wasm.OpMisc, 14, 0, 0}), 1},
		{"table.fill of 0", c(i32(0), []byte{wasm.OpRefNull, 0x70}, i32(0), []byte{wasm.OpMisc, 17, 0}), 1},
		{"table.grow 0", c([]byte{wasm.OpRefNull, 0x70}, i32(0), []byte{wasm.OpMisc, 15, 0}, set(1)), 1},
		{"ref.func", []byte{wasm.OpRefFunc, 2, wasm.OpDrop}, 1},
		{"br_table", c([]byte{wasm.OpBlock, 0x40, wasm.OpBlock, 0x40}, get(1), i32(1), []byte{0x71, wasm.OpBrTable, 1, 0, 1, wasm.OpEnd, wasm.OpEnd}, get(1), i32(0x343fd), []byte{0x6c}, i32(0x269ec3), []byte{0x6a}, set(1)), 1},
		{"if that is mispredicted", c(get(1), i32(1<<17), []byte{0x71, wasm.OpIf, 0x40}, get(5), get(1), []byte{0x6a}, set(1), []byte{wasm.OpEnd}, get(1), i32(0x343fd), []byte{0x6c}, i32(0x269ec3), []byte{0x6a}, set(1)), 1},
	}
	v := func(name string, sub ...byte) priced {
		x := append([]byte{wasm.OpSIMD}, sub...)
		return priced{"v128 " + name, c(get(10), get(10), x, set(10)), 1}
	}
	u := func(name string, sub ...byte) priced {
		return priced{"v128 " + name, c(get(10), append([]byte{wasm.OpSIMD}, sub...), set(10)), 1}
	}
	sh := func(name string, sub ...byte) priced {
		return priced{"v128 " + name, c(get(10), get(1), append([]byte{wasm.OpSIMD}, sub...), set(10)), 1}
	}
	list = append(list,
		v("i32x4.add", 0xae, 1), v("i64x2.mul", 0xd5, 1), v("f64x2.div", 0xf3, 1), v("f32x4.div", 0xe7, 1), u("f64x2.sqrt", 0xef, 1), u("f32x4.sqrt", 0xe3, 1),
		v("f64x2.min", 0xf4, 1), v("f32x4.max", 0xe9, 1), u("i8x16.popcnt", 98), sh("i8x16.shl", 107), sh("i8x16.shr_s", 108), sh("i64x2.shr_s", 0xcc, 1), v("swizzle", 14),
		u("f64x2.nearest", 0x94, 1), u("i32x4.trunc_sat_f64x2_u", 0xfd, 1), u("i32x4.trunc_sat_f32x4_u", 0xf9, 1), u("f32x4.convert_i32x4_u", 0xfb, 1), u("f64x2.convert_low_i32x4_u", 0xff, 1), v("i64x2.extmul_high_i32x4_u", 0xdf, 1),
		u("i64x2.abs", 0xc0, 1), u("i16x8.extadd_pairwise", 124), v("i16x8.q15mulr_sat_s", 0x82, 1), v("i8x16.narrow", 101), v("i32x4.dot", 0xba, 1),
		priced{"v128 i8x16.bitmask", c(get(10), []byte{wasm.OpSIMD, 100}, set(1)), 1}, priced{"v128 i64x2.all_true", c(get(10), []byte{wasm.OpSIMD, 0xc3, 1}, set(1)), 1},
		priced{"v128.load", c(get(8), []byte{wasm.OpSIMD, 0, 0, 0}, set(10)), 1},
		priced{"v128.shuffle", c(get(10), get(10), []byte{wasm.OpSIMD, 13, 31, 1, 30, 3, 4, 20, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, set(10)), 1},
	)
	return list
}

// pricedModule runs a piece many times in a loop: turn(n) does n rounds.
func pricedModule(p *priced, repeat int) *wasm.Module {
	s := wasmgen.NewScale()
	s.Memories[0].Min = 1024
	s.Globals(1)
	s.Table(60_200, []uint32{2})
	s.Func(2, 0, []byte{wasm.OpLocalGet, 0}) // 2: in the table
	s.Func(2, 0, []byte{wasm.OpLocalGet, 0, wasm.OpCall, 2})
	body := wasmgen.Code(
		wasmgen.Const(7), wasmgen.Op(wasm.OpLocalSet, 1), []byte{wasm.OpI64Const, 5}, wasmgen.Op(wasm.OpLocalSet, 2),
		[]byte{wasm.OpF32Const, 0xdb, 0x0f, 0x49, 0x40}, wasmgen.Op(wasm.OpLocalSet, 3), []byte{wasm.OpF64Const, 0x18, 0x2d, 0x44, 0x54, 0xfb, 0x21, 0x09, 0x40}, wasmgen.Op(wasm.OpLocalSet, 4),
		wasmgen.Const(3), wasmgen.Op(wasm.OpLocalSet, 5), wasmgen.Const(1), wasmgen.Op(wasm.OpLocalSet, 6), []byte{wasm.OpI64Const, 3}, wasmgen.Op(wasm.OpLocalSet, 7), wasmgen.Const(1<<20), wasmgen.Op(wasm.OpLocalSet, 9), []byte{wasm.OpF64Const, 0x45, 0x23, 1, 0, 0, 0, 8, 0}, wasmgen.Op(wasm.OpLocalSet, 11),
		[]byte{wasm.OpLoop, 0x40}, slices.Repeat(p.code, repeat),
		[]byte{wasm.OpLocalGet, 0}, wasmgen.Const(1), []byte{0x6b}, wasmgen.Op(wasm.OpLocalTee, 0), []byte{wasm.OpBrIf, 0, wasm.OpEnd},
		wasmgen.Op(wasm.OpLocalGet, 1), wasmgen.Op(wasm.OpLocalGet, 2), []byte{0xa7, 0x6a}, wasmgen.Op(wasm.OpLocalGet, 3), []byte{0xbc, 0x6a}, wasmgen.Op(wasm.OpLocalGet, 4), []byte{0xbd, 0xa7, 0x6a}, wasmgen.Op(wasm.OpLocalGet, 9), []byte{0x6a},
		wasmgen.Op(wasm.OpLocalGet, 11), []byte{0xbd, 0xa7, 0x6a}, wasmgen.Op(wasm.OpLocalGet, 10), []byte{wasm.OpSIMD, 27, 0, 0x6a})
	f := s.Func(2, 0, body)
	s.Code[f].Locals = []wasm.LocalGroup{{N: 1, Type: wasm.I32}, {N: 1, Type: wasm.I64}, {N: 1, Type: wasm.F32}, {N: 1, Type: wasm.F64}, {N: 2, Type: wasm.I32}, {N: 1, Type: wasm.I64}, {N: 2, Type: wasm.I32}, {N: 1, Type: wasm.V128}, {N: 1, Type: wasm.F64}}
	s.Exports[2].Index = f
	return s.Module
}

// TestPrices measures what a unit of fuel takes in nanoseconds, for pieces of code
// that do one thing: WASMACTORS_PRICES=1 go test -run TestPrices -v
func TestPrices(t *testing.T) {
	if os.Getenv("WASMACTORS_PRICES") == "" {
		t.Skip("set WASMACTORS_PRICES to measure")
	}
	for _, p := range pricedCodes() {
		perUnit, perOp := unitTime(t, &p)
		t.Logf("%-42s %8.2f ns an instruction, %6.2f ns a unit", p.name, perOp, perUnit)
	}
}

// unitTime is what a unit takes, and what an instruction of the piece takes.
func unitTime(t testing.TB, p *priced) (perUnit, perOp float64) {
	const repeat = 64
	m, err := wasm.Decode(pricedModule(p, repeat).Encode())
	if err != nil {
		t.Fatal(p.name, err)
	}
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	x := h.instantiate(t, instrument(t, m, Options{}).Module)
	// A chase through memory: every line once, far apart.
	mem := x.mod.Memory()
	const lines = 1 << 19 // of 64 bytes, 32 MiB
	at := uint32(0)
	for range lines {
		next := (at*5 + 12345) % lines
		mem.WriteUint32Le(1<<20+at*64, 1<<20+next*64)
		at = next
	}
	_ = context.Background()
	const plenty = 1 << 60
	best, units := time.Duration(1<<62), uint64(0)
	rounds := uint64(1)
	for try := 0; try < 4; {
		start := time.Now()
		_, spent, err := x.call(EnterTurn, rounds, 1, plenty)
		took := time.Since(start)
		if err != nil {
			t.Fatal(p.name, fmt.Sprintf("%x", p.code), err)
		}
		if took < 4*time.Millisecond && try == 0 {
			rounds *= 2
			continue
		}
		if took < best {
			best, units = took, spent
		}
		try++
	}
	return float64(best) / float64(units), float64(best) / float64(rounds*uint64(repeat*p.ops))
}
