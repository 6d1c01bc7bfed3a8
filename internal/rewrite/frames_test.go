package rewrite

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// recursive are functions of type i32 -> i32 that call themselves without end, with
// as much on the stack as they can.
func recursive() map[string]func(s wasmgen.Scale, self int) (locals int, code []byte) {
	get := func(l int) []byte { return wasmgen.Op(wasm.OpLocalGet, l) }
	set := func(l int) []byte { return wasmgen.Op(wasm.OpLocalSet, l) }
	load := []byte{0x28, 2, 0}
	add := []byte{0x6a}
	c := wasmgen.Code
	many := func(n int, f func(i int) []byte) []byte {
		var b []byte
		for i := range n {
			b = append(b, f(i)...)
		}
		return b
	}
	return map[string]func(s wasmgen.Scale, self int) (int, []byte){
		"plain": func(_ wasmgen.Scale, self int) (int, []byte) { return 0, c(get(0), wasmgen.Op(wasm.OpCall, self)) },
		"operands": func(_ wasmgen.Scale, self int) (int, []byte) {
			return 0, c(many(1000, func(i int) []byte { return c(get(0), wasmgen.Const(i), add, load) }), get(0), wasmgen.Op(wasm.OpCall, self), slices.Repeat(add, 1000))
		},
		"results": func(s wasmgen.Scale, self int) (int, []byte) {
			t := s.Type(nil, slices.Repeat([]wasm.ValType{wasm.I32}, 1000))
			f := s.Func(t, 0, many(1000, func(i int) []byte { return wasmgen.Const(i) }))
			return 0, c(slices.Repeat(wasmgen.Op(wasm.OpCall, int(f)), 20), get(0), wasmgen.Op(wasm.OpCall, self), slices.Repeat(add, 20_000))
		},
		"locals": func(_ wasmgen.Scale, self int) (int, []byte) {
			return 1000, c(many(1000, func(i int) []byte { return c(get(0), wasmgen.Const(i), add, load, set(1+i)) }), get(0), wasmgen.Op(wasm.OpCall, self), many(1000, func(i int) []byte { return c(get(1+i), add) }))
		},
		"one local again and again": func(_ wasmgen.Scale, self int) (int, []byte) {
			return 1, c(many(1000, func(i int) []byte { return c(get(0), wasmgen.Const(i), add, load, set(1), get(1)) }), get(0), wasmgen.Op(wasm.OpCall, self), slices.Repeat(add, 1000))
		},
		"joins": func(_ wasmgen.Scale, self int) (int, []byte) {
			const n, deep = 40, 40
			code := c(slices.Repeat(c(get(0), []byte{wasm.OpIf, 0x40}), deep), many(n, func(i int) []byte { return c(get(0), wasmgen.Const(i), add, load, set(1+i)) }))
			for range deep {
				code = c(code, []byte{wasm.OpEnd}, get(0), wasmgen.Op(wasm.OpCall, self), []byte{wasm.OpDrop})
				code = c(code, many(n, func(i int) []byte { return c(get(1+i), []byte{wasm.OpDrop}) }))
			}
			return n, c(code, get(0), wasmgen.Op(wasm.OpCall, self), many(n, func(i int) []byte { return c(get(1+i), add) }))
		},
		"a loop": func(_ wasmgen.Scale, self int) (int, []byte) {
			const n = 500
			return n, c(many(n, func(i int) []byte { return c(get(0), wasmgen.Const(i), add, load, set(1+i)) }), []byte{wasm.OpLoop, 0x40}, many(n, func(i int) []byte { return c(get(1+i), get(1+(i+1)%n), add, set(1+i)) }),
				get(0), wasmgen.Op(wasm.OpCall, self), []byte{wasm.OpBrIf, 0, wasm.OpEnd}, get(1))
		},
		"vectors": func(s wasmgen.Scale, self int) (int, []byte) {
			v := []byte{wasm.OpSIMD, 0, 0, 0}
			return 0, c(many(300, func(i int) []byte { return c(get(0), wasmgen.Const(i), add, v) }), get(0), wasmgen.Op(wasm.OpCall, self), []byte{wasm.OpDrop}, slices.Repeat([]byte{wasm.OpSIMD, 0xae, 1}, 299), []byte{wasm.OpSIMD, 27, 0})
		},
		"through 1000 parameters": func(s wasmgen.Scale, self int) (int, []byte) {
			t := s.Type(slices.Repeat([]wasm.ValType{wasm.I32}, 1000), []wasm.ValType{wasm.I32})
			f := s.Func(t, 0, c(get(0), wasmgen.Op(wasm.OpCall, self)))
			return 0, c(slices.Repeat(get(0), 1000), wasmgen.Op(wasm.OpCall, int(f)))
		},
	}
}

// TestFrames: what the meter weighs frames at bounds the stack that wazero grows,
// which nothing gives back while an actor runs.
func TestFrames(t *testing.T) {
	const limit = 1 << 20
	for name, make := range recursive() {
		t.Run(name, func(t *testing.T) {
			s := wasmgen.NewScale()
			self := len(s.Funcs)
			s.Func(2, 0, nil)
			locals, code := make(s, self)
			s.Code[self] = wasm.Body{Code: append(code, wasm.OpEnd)}
			if locals > 0 {
				s.Code[self].Locals = []wasm.LocalGroup{{N: uint32(locals), Type: wasm.I32}}
			}
			s.Exports[2].Index = uint32(self)
			m, err := wasm.Decode(s.Encode())
			if err != nil {
				t.Fatal(err)
			}
			res := instrument(t, m, Options{StackBytes: limit})
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			x := h.instantiate(t, res.Module)
			if _, _, err := x.call(EnterTurn, 1, 1, 1<<60); !errors.Is(err, errStack) {
				t.Fatal(err)
			}
			grown := reflect.ValueOf(x.enter).Elem().FieldByName("stack").Len()
			t.Logf("weight %d, a stack of %d KiB", res.in.funcs[self].weight, grown>>10)
			if grown > 4*limit { // twice for doubling
				t.Errorf("the stack has grown to %d KiB, the limit is %d KiB", grown>>10, limit>>10)
			}
		})
	}
}
