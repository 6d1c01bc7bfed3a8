package wasmgen

import "github.com/wasmactors/wasmactors/internal/wasm"

// op is an instruction that takes operands and leaves one result.
type op struct {
	code   byte
	sub    uint32 // of the groups 0xfc and 0xfd
	params []wasm.ValType
	result wasm.ValType
	lanes  int  // a lane below this follows, 16 bytes for shuffle
	nan    byte // may make a NaN whose bits are not determined: the lanes' type, as in nans
	traps  trap
}

// trap says when an instruction traps, so that it can be kept from it.
type trap byte

const (
	never trap = iota
	onZero
	onRange
)

// access is an instruction that loads or stores.
type access struct {
	code  byte
	sub   uint32
	typ   wasm.ValType
	align int // the logarithm of its natural alignment
	lanes int // of lane loads and stores
}

var letters = map[rune]wasm.ValType{'i': wasm.I32, 'I': wasm.I64, 'f': wasm.F32, 'F': wasm.F64, 'v': wasm.V128}

// rangeOf says that the instructions from first to last have this signature: the
// operands' letters and the result's.
type rangeOf struct {
	first, last uint32
	sig         string
}

var numeric = []rangeOf{
	{0x45, 0x45, "ii"}, {0x46, 0x4f, "iii"}, {0x50, 0x50, "Ii"}, {0x51, 0x5a, "IIi"}, {0x5b, 0x60, "ffi"}, {0x61, 0x66, "FFi"},
	{0x67, 0x69, "ii"}, {0x6a, 0x78, "iii"}, {0x79, 0x7b, "II"}, {0x7c, 0x8a, "III"}, {0x8b, 0x91, "ff"}, {0x92, 0x98, "fff"},
	{0x99, 0x9f, "FF"}, {0xa0, 0xa6, "FFF"}, {0xa7, 0xa7, "Ii"}, {0xa8, 0xa9, "fi"}, {0xaa, 0xab, "Fi"}, {0xac, 0xad, "iI"},
	{0xae, 0xaf, "fI"}, {0xb0, 0xb1, "FI"}, {0xb2, 0xb3, "if"}, {0xb4, 0xb5, "If"}, {0xb6, 0xb6, "Ff"}, {0xb7, 0xb8, "iF"},
	{0xb9, 0xba, "IF"}, {0xbb, 0xbb, "fF"}, {0xbc, 0xbc, "fi"}, {0xbd, 0xbd, "FI"}, {0xbe, 0xbe, "if"}, {0xbf, 0xbf, "IF"},
	{0xc0, 0xc1, "ii"}, {0xc2, 0xc4, "II"},
}

var saturating = []rangeOf{{0, 1, "fi"}, {2, 3, "Fi"}, {4, 5, "fI"}, {6, 7, "FI"}}

var simd = []rangeOf{
	{13, 14, "vvv"}, {15, 17, "iv"}, {18, 18, "Iv"}, {19, 19, "fv"}, {20, 20, "Fv"},
	{21, 22, "vi"}, {23, 23, "viv"}, {24, 25, "vi"}, {26, 26, "viv"}, {27, 27, "vi"}, {28, 28, "viv"}, {29, 29, "vI"}, {30, 30, "vIv"},
	{31, 31, "vf"}, {32, 32, "vfv"}, {33, 33, "vF"}, {34, 34, "vFv"},
	{35, 76, "vvv"}, {77, 77, "vv"}, {78, 81, "vvv"}, {82, 82, "vvvv"}, {83, 83, "vi"}, {94, 98, "vv"}, {99, 100, "vi"},
	{101, 102, "vvv"}, {103, 106, "vv"}, {107, 109, "viv"}, {110, 115, "vvv"}, {116, 117, "vv"}, {118, 121, "vvv"}, {122, 122, "vv"},
	{123, 123, "vvv"}, {124, 129, "vv"}, {130, 130, "vvv"}, {131, 132, "vi"}, {133, 134, "vvv"}, {135, 138, "vv"}, {139, 141, "viv"},
	{142, 147, "vvv"}, {148, 148, "vv"}, {149, 153, "vvv"}, {155, 159, "vvv"}, {160, 161, "vv"}, {163, 164, "vi"}, {167, 170, "vv"},
	{171, 173, "viv"}, {174, 174, "vvv"}, {177, 177, "vvv"}, {181, 186, "vvv"}, {188, 191, "vvv"}, {192, 193, "vv"}, {195, 196, "vi"},
	{199, 202, "vv"}, {203, 205, "viv"}, {206, 206, "vvv"}, {209, 209, "vvv"}, {213, 223, "vvv"}, {224, 225, "vv"}, {227, 227, "vv"},
	{228, 235, "vvv"}, {236, 237, "vv"}, {239, 239, "vv"}, {240, 247, "vvv"}, {248, 255, "vv"},
}

var lanesOf = map[uint32]int{13: 32, 21: 16, 22: 16, 23: 16, 24: 8, 25: 8, 26: 8, 27: 4, 28: 4, 29: 2, 30: 2, 31: 4, 32: 4, 33: 2, 34: 2}

// The type of the lanes of NaNs that must be made canonical.
const (
	nanF32   = 'f'
	nanF64   = 'F'
	nanF32x4 = 'v'
	nanF64x2 = 'V'
)

// nans are the instructions whose results may be NaNs of any bits.
var nans = []struct {
	code        byte
	first, last uint32
	kind        byte
}{
	{0, 0x8d, 0x97, nanF32}, {0, 0xb6, 0xb6, nanF32}, {0, 0x9b, 0xa5, nanF64}, {0, 0xbb, 0xbb, nanF64},
	{wasm.OpSIMD, 94, 94, nanF32x4}, {wasm.OpSIMD, 103, 106, nanF32x4}, {wasm.OpSIMD, 227, 233, nanF32x4},
	{wasm.OpSIMD, 95, 95, nanF64x2}, {wasm.OpSIMD, 116, 117, nanF64x2}, {wasm.OpSIMD, 122, 122, nanF64x2}, {wasm.OpSIMD, 148, 148, nanF64x2}, {wasm.OpSIMD, 239, 245, nanF64x2},
}

var (
	plainOps = byResult(0, numeric, saturating) // by type of the result
	simdOps  = byResult(wasm.OpSIMD, simd)
)

func byResult(group byte, lists ...[]rangeOf) map[wasm.ValType][]op {
	m := map[wasm.ValType][]op{}
	for k, list := range lists {
		for _, r := range list {
			for c := r.first; c <= r.last; c++ {
				o := op{code: group, sub: c}
				switch {
				case k > 0:
					o.code = wasm.OpMisc
				case group == 0:
					o.code, o.sub = byte(c), 0
				default:
					o.lanes = lanesOf[c]
				}
				sig := []rune(r.sig)
				for _, l := range sig[:len(sig)-1] {
					o.params = append(o.params, letters[l])
				}
				o.result = letters[sig[len(sig)-1]]
				for _, n := range nans {
					if n.code == group && k == 0 && c >= n.first && c <= n.last {
						o.nan = n.kind
					}
				}
				switch {
				case group != 0 || k > 0:
				case c >= 0x6d && c <= 0x70, c >= 0x7f && c <= 0x82:
					o.traps = onZero
				case c >= 0xa8 && c <= 0xab, c >= 0xae && c <= 0xb1:
					o.traps = onRange
				}
				m[o.result] = append(m[o.result], o)
			}
		}
	}
	return m
}

var loads = []access{
	{code: 0x28, typ: wasm.I32, align: 2}, {code: 0x29, typ: wasm.I64, align: 3}, {code: 0x2a, typ: wasm.F32, align: 2}, {code: 0x2b, typ: wasm.F64, align: 3},
	{code: 0x2c, typ: wasm.I32}, {code: 0x2d, typ: wasm.I32}, {code: 0x2e, typ: wasm.I32, align: 1}, {code: 0x2f, typ: wasm.I32, align: 1},
	{code: 0x30, typ: wasm.I64}, {code: 0x31, typ: wasm.I64}, {code: 0x32, typ: wasm.I64, align: 1}, {code: 0x33, typ: wasm.I64, align: 1},
	{code: 0x34, typ: wasm.I64, align: 2}, {code: 0x35, typ: wasm.I64, align: 2},
	vector(0, 4, 0), vector(1, 3, 0), vector(2, 3, 0), vector(3, 3, 0), vector(4, 3, 0), vector(5, 3, 0), vector(6, 3, 0),
	vector(7, 0, 0), vector(8, 1, 0), vector(9, 2, 0), vector(10, 3, 0), vector(92, 2, 0), vector(93, 3, 0),
	vector(84, 0, 16), vector(85, 1, 8), vector(86, 2, 4), vector(87, 3, 2),
}

var stores = []access{
	{code: 0x36, typ: wasm.I32, align: 2}, {code: 0x37, typ: wasm.I64, align: 3}, {code: 0x38, typ: wasm.F32, align: 2}, {code: 0x39, typ: wasm.F64, align: 3},
	{code: 0x3a, typ: wasm.I32}, {code: 0x3b, typ: wasm.I32, align: 1},
	{code: 0x3c, typ: wasm.I64}, {code: 0x3d, typ: wasm.I64, align: 1}, {code: 0x3e, typ: wasm.I64, align: 2},
	vector(11, 4, 0), vector(88, 0, 16), vector(89, 1, 8), vector(90, 2, 4), vector(91, 3, 2),
}

func vector(sub uint32, align, lanes int) access {
	return access{code: wasm.OpSIMD, sub: sub, typ: wasm.V128, align: align, lanes: lanes}
}

func accesses(list []access, t wasm.ValType) []access {
	var fit []access
	for _, a := range list {
		if a.typ == t {
			fit = append(fit, a)
		}
	}
	return fit
}

var loadsOf = map[wasm.ValType][]access{}

func init() {
	for _, t := range letters {
		loadsOf[t] = accesses(loads, t)
	}
}
