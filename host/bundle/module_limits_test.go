package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// TestLimitsOfWhatModulesDeclare: the keys for what only modules made on purpose
// have much of take effect, too.
func TestLimitsOfWhatModulesDeclare(t *testing.T) {
	tables := wasmgen.NewScale()
	for range 3 {
		tables.Table(10, slices.Repeat([]uint32{1}, 5))
	}
	dear := func() *wasm.Module {
		for _, f := range wasmgen.Families() {
			if f.Name == "br_if with 1000 values" {
				return f.Make(4_400)
			}
		}
		t.Fatal("no such family")
		return nil
	}()
	for _, c := range []struct {
		module              *wasm.Module
		small, enough, want string
	}{
		{tables.Module, "tables: 2", "tables: 3", "the module has 3 tables, the limit is 2 tables; modules.m.limits.tables raises it"},
		{tables.Module, "elements: 14", "elements: 15", "the module has segments of 15 elements, the limit is 14 elements; modules.m.limits.elements raises it"},
		{dear, "compile-steps: 1M", "compile-steps: 2G, compile-bytes: 1GiB, compile-time: 100s, compile-memory: 2GiB", "modules.m.limits.compile-steps raises it"},
		{dear, "compile-bytes: 1MiB", "compile-steps: 2G, compile-bytes: 1GiB, compile-time: 100s, compile-memory: 2GiB", "modules.m.limits.compile-bytes raises it"},
	} {
		t.Run(c.small, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "m.wasm")
			if err := os.WriteFile(file, c.module.Encode(), 0o600); err != nil {
				t.Fatal(err)
			}
			try := func(limits string) error {
				manifest := filepath.Join(filepath.Dir(file), "bundle.yaml")
				text := "wasmactors: 1\nname: m\nmodules:\n  m: {wasm: " + file + ", limits: {" + limits + "}}\nactors: {a: {type: a}}\n"
				if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := open(t, manifest)
				return err
			}
			var m *ModuleError
			if err := try(c.small); !errors.As(err, &m) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			if err := try(c.enough); err != nil {
				t.Errorf("%s: %v", c.enough, err)
			}
		})
	}
}
