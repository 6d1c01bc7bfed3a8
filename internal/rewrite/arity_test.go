package rewrite

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// TestArity: in every valid module of the specification's tests, what instructions
// take and leave adds up to what blocks and functions result in.
func TestArity(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(moduleDir(t, "github.com/tetratelabs/wazero"), "internal", "integration_test", "spectest", "v2", "testdata", "*.wasm"))
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	defer r.Close(context.Background())
	functions, ops := 0, map[[2]uint32]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasm.Decode(b)
		if err != nil {
			continue
		}
		c, err := r.CompileModule(context.Background(), b)
		if err != nil {
			continue
		}
		c.Close(context.Background())
		types := m.FuncTypes()
		for i := range m.Code {
			functions++
			if at, ok := adds(m, types, i, ops); !ok {
				t.Errorf("%s, function %d: the stack is wrong at %#x", filepath.Base(file), i, at)
			}
		}
	}
	if functions < 5000 || len(ops) < 380 {
		t.Errorf("%d functions with %d different instructions only", functions, len(ops))
	}
}

// adds follows the height of the stack through a function, where code is reached.
func adds(m *wasm.Module, types []uint32, i int, ops map[[2]uint32]bool) (at int, ok bool) {
	type frame struct {
		base, params, results int
		dead                  bool // its head
	}
	frames := []frame{{results: len(m.Types[m.Funcs[i]].Results)}}
	height, dead := 0, false
	it := wasm.NewInstrs(m.Code[i].Code, 0)
	var ins wasm.Instr
	for {
		if more, err := it.Next(&ins); err != nil || !more {
			return ins.End, err == nil
		}
		ops[[2]uint32{uint32(ins.Op), ins.Sub}] = true
		top := &frames[len(frames)-1]
		call := func(typ uint32) {
			height += len(m.Types[typ].Results) - len(m.Types[typ].Params)
		}
		switch ins.Op {
		case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
			if ins.Op == wasm.OpIf {
				height--
			}
			params, results := m.BlockArity(&ins)
			frames = append(frames, frame{height - params, params, results, dead})
		case wasm.OpElse, wasm.OpEnd:
			if !dead && height != top.base+top.results {
				return ins.Start, false
			}
			dead = top.dead
			if height = top.base + top.params; ins.Op == wasm.OpEnd {
				height = top.base + top.results
				frames = frames[:len(frames)-1]
			}
			if len(frames) == 0 {
				return 0, ins.End == len(m.Code[i].Code)
			}
		case wasm.OpBr, wasm.OpBrTable, wasm.OpReturn, wasm.OpUnreachable:
			dead = true
		case wasm.OpBrIf:
			height--
		case wasm.OpCall:
			call(types[ins.X])
		case wasm.OpCallIndirect:
			height--
			call(ins.X)
		default:
			takes, leaves := ins.Arity()
			height += leaves - takes
		}
	}
}
