package rewrite

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/direct"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// FuzzRewrite puts generated modules through all properties.
func FuzzRewrite(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(wasmgen.Seed(seed))
	}
	labs := newLabs(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 1<<13 {
			return
		}
		if err := check(labs, choices, &statistics{}); err != nil {
			t.Fatal(err)
		}
		if _, err := endless(labs, choices); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzInstrument rewrites whatever decodes. wazero, which checks what the decoder
// does not, must say the same of the original and of what comes out, and nothing
// may panic.
func FuzzInstrument(f *testing.F) {
	for _, b := range smallModules(f) {
		f.Add(b)
	}
	for seed := range uint64(32) {
		f.Add(wasmgen.Generate(wasmgen.Seed(seed), wasmgen.Options{Endless: seed%2 == 1}).Encode())
	}
	r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wasm.Decode(b)
		if err != nil || len(b) > 1<<14 {
			return
		}
		res, err := Instrument(m, Options{})
		if err != nil {
			return
		}
		before := string(b)
		wantErr := compiles(r, withoutNames(m))
		agree := func(what string, m *wasm.Module) {
			enc := m.Encode()
			if _, err := wasm.Decode(enc); err != nil {
				t.Fatalf("%s: cannot be decoded: %v", what, err)
			}
			err := compiles(r, m)
			if err == nil && wantErr != nil && strings.Contains(wantErr.Error(), "unknown") {
				return // in code that is never reached, wazero does not look at everything
			}
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%s: wazero says %v, of the original %v", what, err, wantErr)
			}
		}
		agree("rewritten", res.Module)
		agree("direct", direct.Calls(res.Module))
		frozen, err := Freeze(res, State{Globals: nulls(res), Pages: m.Memories[0].Min})
		if err != nil {
			t.Fatal(err)
		}
		if wantErr == nil { // what is not valid is never initialised, so never frozen
			agree("frozen", frozen)
			agree("frozen and direct", direct.Calls(frozen))
		}
		if string(b) != before {
			t.Fatal("the input has changed")
		}
	})
}

// nulls are values that can be frozen, whatever their types.
func nulls(res *Result) []Value { return slices.Repeat([]Value{{Lo: 1}}, len(res.Mutable)) }

func compiles(r wazero.Runtime, m *wasm.Module) error {
	c, err := r.CompileModule(context.Background(), m.Encode())
	if err == nil {
		c.Close(context.Background())
	}
	return err
}

// withoutNames is m without its name section: wazero allocates what the counts in
// it claim, and the rewriter writes its own.
func withoutNames(m *wasm.Module) *wasm.Module {
	out := *m
	out.Customs = nil
	return &out
}

// smallModules are the repository's modules of at most 8 KiB.
func smallModules(f *testing.F) [][]byte {
	var list [][]byte
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".wasm" {
			return err
		}
		b, err := os.ReadFile(path)
		if len(b) <= 8<<10 {
			list = append(list, b)
		}
		return err
	})
	if err != nil || len(list) < 40 {
		f.Fatalf("%d modules, %v", len(list), err)
	}
	return list
}
