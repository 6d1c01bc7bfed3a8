package rewrite

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// A small module cannot make wazero's compiler move millions of values.
func TestTooManyMoves(t *testing.T) {
	for params, refused := range map[int]bool{10: false, 1000: true} {
		m := wasmgen.Generate(nil, wasmgen.Options{}).Module
		many := wasm.FuncType{Params: slices.Repeat([]wasm.ValType{wasm.I32}, params)}
		m.Types = append(m.Types, many)
		m.Funcs = append(m.Funcs, uint32(len(m.Types)-1))
		m.Code = append(m.Code, wasm.Body{Code: []byte{wasm.OpEnd}})
		callee := uint32(m.NumImported(wasm.KindFunc) + len(m.Funcs) - 1)
		var code []byte
		for range 1000 { // behind unreachable a call needs no operands
			code = append(code, wasm.OpBlock, blockEmpty, wasm.OpUnreachable, wasm.OpCall)
			code = append(wasm.AppendU32(code, callee), wasm.OpEnd)
		}
		m.Code[0].Code = append(code, wasm.OpI32Const, 0, wasm.OpEnd)
		_, err := Instrument(m, Options{})
		if got := err != nil && strings.Contains(err.Error(), "too many values"); got != refused {
			t.Errorf("%d parameters: %v", params, err)
		}
	}
}
