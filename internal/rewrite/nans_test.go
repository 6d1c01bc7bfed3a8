package rewrite

import (
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// TestNaNs: what a guest sees of a NaN is the same on every processor: results of
// arithmetic are canonical wherever their bits can be seen, and what was not
// computed keeps its bits.
func TestNaNs(t *testing.T) {
	f64 := func(bits uint64) []byte { return constant(wasm.F64, Value{Lo: bits})[:9] }
	f32 := func(bits uint64) []byte { return constant(wasm.F32, Value{Lo: bits})[:5] }
	c := wasmgen.Code
	const odd, odd32 = 0xfff4000000001234, 0xffb01234 // signalling, with the sign
	high := []byte{0xbd, 0x42, 32, 0x88, 0xa7}        // reinterpret, upper half
	low := []byte{0xbc}
	store := c(wasmgen.Op(wasm.OpLocalSet, 1), wasmgen.Const(512), wasmgen.Op(wasm.OpLocalGet, 1), []byte{0x39, 3, 0}, wasmgen.Const(516), []byte{0x28, 2, 0})
	splat := func(x []byte, op byte) []byte { return c(x, []byte{wasm.OpSIMD, op}) }
	lane := func(n byte) []byte { return []byte{wasm.OpSIMD, 27, n} } // i32x4.extract_lane
	for _, k := range []struct {
		name string
		code []byte
		want uint32
	}{
		{"0/0", c(f64(0), f64(0), []byte{0xa3}, high), 0x7ff80000},
		{"0/0 in single precision", c(f32(0), f32(0), []byte{0x95}, low), 0x7fc00000},
		{"the root of -1", c(f64(0xbff0000000000000), []byte{0x9f}, high), 0x7ff80000},
		{"inf - inf", c(f64(0x7ff0000000000000), f64(0x7ff0000000000000), []byte{0xa1}, high), 0x7ff80000},
		{"a payload that is added to", c(f64(odd), f64(0), []byte{0xa0}, high), 0x7ff80000},
		{"the lesser of a payload", c(f64(odd), f64(0), []byte{0xa4}, high), 0x7ff80000},
		{"a payload that is rounded", c(f64(odd), []byte{0x9e}, high), 0x7ff80000},
		{"a payload that is demoted", c(f64(odd), []byte{0xb6}, low), 0x7fc00000},
		{"a payload that is promoted", c(f32(odd32), []byte{0xbb}, high), 0x7ff80000},
		{"stored", c(f64(0), f64(0), []byte{0xa3}, store), 0x7ff80000},
		{"through a local", c(f64(0), f64(0), []byte{0xa3}, wasmgen.Op(wasm.OpLocalTee, 1), []byte{wasm.OpDrop}, wasmgen.Op(wasm.OpLocalGet, 1), high), 0x7ff80000},
		{"through a block", c([]byte{wasm.OpBlock, byte(wasm.F64)}, f64(0), f64(0), []byte{0xa3, wasm.OpEnd}, high), 0x7ff80000},
		{"through more arithmetic", c(f64(0), f64(0), []byte{0xa3}, f64(1), []byte{0xa0}, f64(2), []byte{0xa2}, high), 0x7ff80000},
		{"its sign", c(f64(0x3ff0000000000000), f64(0), f64(0), []byte{0xa3, 0xa6}, high), 0x3ff00000},
		{"negated", c(f64(0), f64(0), []byte{0xa3, 0x9a}, high), 0xfff80000},
		{"selected", c(f64(0), f64(0), []byte{0xa3}, f64(1), wasmgen.Const(1), []byte{wasm.OpSelect}, high), 0x7ff80000},
		{"not computed", c(f64(odd), high), 0xfff40000},
		{"not computed, stored", c(f64(odd), store), 0xfff40000},
		{"not computed, negated", c(f64(odd), []byte{0x9a}, high), 0x7ff40000},
		{"a number", c(f64(0x4000000000000000), f64(0x4000000000000000), []byte{0xa2}, high), 0x40100000},
		{"lanes", c(splat(f64(0), 20), splat(f64(0), 20), []byte{wasm.OpSIMD, 0xf3, 1}, lane(3)), 0x7ff80000},
		{"short lanes", c(splat(f32(0), 19), splat(f32(0), 19), []byte{wasm.OpSIMD, 0xe7, 1}, lane(2)), 0x7fc00000},
		{"short lanes that are added", c(splat(f32(odd32), 19), splat(f32(0), 19), []byte{wasm.OpSIMD, 0xe4, 1}, lane(1)), 0x7fc00000},
		{"short lanes seen as long ones", c(splat(f32(odd32), 19), splat(f32(0), 19), []byte{wasm.OpSIMD, 0xe4, 1, wasm.OpSIMD, 0xec, 1}, lane(1)), 0x7fc00000 &^ (1 << 31)},
		{"lanes of numbers", c(splat(f64(0x4000000000000000), 20), splat(f64(0x4000000000000000), 20), []byte{wasm.OpSIMD, 0xf2, 1}, lane(3)), 0x40100000},
	} {
		s := wasmgen.NewScale()
		s.Code[1] = wasm.Body{Locals: []wasm.LocalGroup{{N: 1, Type: wasm.F64}}, Code: append(k.code, wasm.OpEnd)}
		m, err := wasm.Decode(s.Encode())
		if err != nil {
			t.Fatal(k.name, err)
		}
		for engine, cfg := range engines() {
			h := newHost(t, cfg)
			x := h.instantiate(t, instrument(t, m, Options{}).Module)
			got, _, err := x.call(EnterTurn, 0, 1, 1_000_000)
			if err != nil || uint32(got) != k.want {
				t.Errorf("%s, %s: %#x, want %#x, error %v", engine, k.name, uint32(got), k.want, err)
			}
		}
	}
}

// TestOpenNaNs: only what can be seen is made canonical.
func TestOpenNaNs(t *testing.T) {
	s := wasmgen.NewScale()
	mul, add := []byte{0xa2}, []byte{0xa0}
	x := wasmgen.Op(wasm.OpLocalGet, 1)
	s.Code[1] = wasm.Body{Locals: []wasm.LocalGroup{{N: 1, Type: wasm.F64}}, Code: slices.Concat(x, x, mul, x, x, mul, add, []byte{0x9f}, wasmgen.Op(wasm.OpLocalTee, 1), x, add, x, []byte{0x63, wasm.OpEnd})}
	in := &instrumenter{src: s.Module}
	at, shapes := in.openNaNs(1)
	if len(at) != 0 || shapes[nanF64] { // even the root goes to a local that only arithmetic reads
		t.Errorf("%v", at)
	}
	s.Code[1].Code = slices.Concat(x, x, mul, wasmgen.Op(wasm.OpLocalSet, 1), x, x, add, wasmgen.Op(wasm.OpLocalSet, 1), x, []byte{0xbd, 0xa7, wasm.OpEnd})
	if at, _ = in.openNaNs(1); len(at) != 2 { // a local whose bits are looked at
		t.Errorf("%v", at)
	}
}
