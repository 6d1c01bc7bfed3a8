package rewrite

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// TestCountersAreOutOfReach: code that names a global, a local or a function beyond its
// own, where the rewriter puts its own, is refused; it never becomes valid by what is added.
func TestCountersAreOutOfReach(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	c, op := wasmgen.Code, wasmgen.Op
	i32, i64 := wasmgen.Const(1), []byte{wasm.OpI64Const, 1}
	drop := []byte{wasm.OpDrop}
	// A loop that calls nothing has its fuel in a local; a function that recurs has what is left of the stack in another.
	for shape, before := range map[string][]byte{
		"plain": nil,
		"loop":  c([]byte{wasm.OpLoop, 0x40}, op(wasm.OpLocalGet, 0), op(wasm.OpBrIf, 0), []byte{wasm.OpEnd}),
		"recur": c(op(wasm.OpLocalGet, 0), op(wasm.OpCall, 1), drop),
	} {
		valid := func(code []byte) bool {
			s := wasmgen.NewScale()
			s.Module.Globals = []wasm.Global{{GlobalType: wasm.GlobalType{Type: wasm.I32, Mutable: true}, Init: wasm.Expr{wasm.OpI32Const, 0, wasm.OpEnd}}}
			s.Module.Code[1] = wasm.Body{Locals: []wasm.LocalGroup{{N: 1, Type: wasm.I32}}, Code: c(before, code, wasmgen.Const(0), []byte{wasm.OpEnd})}
			m, err := wasm.Decode(s.Encode())
			if err != nil {
				return false
			}
			res, err := Instrument(m, Options{})
			return err == nil && compiles(r, res.Module) == nil
		}
		ours := c(op(wasm.OpGlobalGet, 0), op(wasm.OpGlobalSet, 0), op(wasm.OpLocalGet, 1), op(wasm.OpLocalSet, 1), i32, op(wasm.OpCall, 1), drop)
		if !valid(ours) {
			t.Fatalf("%s: the guest's own is refused, too", shape)
		}
		for beyond := range 24 {
			for name, code := range map[string][]byte{
				"global.get":        c(op(wasm.OpGlobalGet, 1+beyond), drop),
				"global.set of i32": c(i32, op(wasm.OpGlobalSet, 1+beyond)),
				"global.set of i64": c(i64, op(wasm.OpGlobalSet, 1+beyond)),
				"local.get":         c(op(wasm.OpLocalGet, 2+beyond), drop),
				"local.set of i32":  c(i32, op(wasm.OpLocalSet, 2+beyond)),
				"local.set of i64":  c(i64, op(wasm.OpLocalSet, 2+beyond)),
				"call":              op(wasm.OpCall, 2+beyond),
				"call with i32":     c(i32, op(wasm.OpCall, 2+beyond)),
				"call with i64":     c(i64, op(wasm.OpCall, 2+beyond), drop),
				"call with more":    c(i32, i64, op(wasm.OpCall, 1), drop), // the stack that is left is an argument
			} {
				if valid(code) {
					t.Errorf("%s: %s of what is %d beyond the guest's own is accepted", shape, name, beyond)
				}
			}
		}
	}
}
