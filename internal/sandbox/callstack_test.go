package sandbox

import (
	"context"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// TestCallStackIsGivenBack: a turn whose calls nest deeply, whether it ends well or
// not, leaves an instance that keeps no large call stack, and works.
func TestCallStackIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		name string
		deep int
		fail bool
	}{{"shallow", 10, false}, {"deep", 10_000, false}, {"too deep", 1 << 30, true}} {
		t.Run(c.name, func(t *testing.T) {
			s := wasmgen.NewScale()
			down := len(s.Funcs) // n: n == 0 ? 0 : down(n - 1) + 1
			s.Func(2, 0, wasmgen.Code(wasmgen.Op(wasm.OpLocalGet, 0), []byte{0x45, wasm.OpIf, 0x7f}, wasmgen.Const(0), []byte{wasm.OpElse},
				wasmgen.Op(wasm.OpLocalGet, 0), wasmgen.Const(1), []byte{0x6b}, wasmgen.Op(wasm.OpCall, down), wasmgen.Const(1), []byte{0x6a, wasm.OpEnd}))
			s.Code[1].Code = wasmgen.Code(wasmgen.Const(c.deep), wasmgen.Op(wasm.OpCall, down), []byte{wasm.OpDrop}, wasmgen.Const(0), []byte{wasm.OpEnd})
			e := newEngine(t, NewConfig())
			i, err := e.Load(context.Background(), s.Encode(), ImageConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			x := get(t, i)
			defer x.Put()
			if x.stackAt == 0 {
				t.Fatal("wazero's call stack is not found")
			}
			first := x.enter
			for range 3 {
				push(t, x, 0)
				var out Result
				x.Run(entry(), &out)
				if failed := out.Failure != nil; failed != c.fail || failed && out.Failure.Kind != abi.FailureStackOverflow {
					t.Fatal(out.Failure)
				}
				if n := x.stackBytes(); n == 0 || n > keepStack {
					t.Errorf("%d bytes of call stack are kept", n)
				}
				if err := x.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			if (x.enter == first) != (c.deep == 10) {
				t.Errorf("the call stack is another one: %v", x.enter != first)
			}
		})
	}
}
