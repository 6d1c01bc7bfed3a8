package estimate_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/internal/direct"
	"github.com/wasmactors/wasmactors/internal/estimate"
	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// TestRealModules: what people compile stays far below what compiling may cost, by
// the size of the module alone.
func TestRealModules(t *testing.T) {
	var files []string
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".wasm" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 40 {
		t.Fatal(len(files), err)
	}
	if thorough.Slow {
		for _, dir := range []string{"testdata/large", "../rewrite/testdata/gocompute", "../../bench/compute/go"} {
			out := filepath.Join(t.TempDir(), "guest.wasm")
			cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, ".")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", dir, err, text)
			}
			files = append(files, out)
		}
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasm.Decode(b)
		if err != nil {
			continue // malformed on purpose
		}
		res, err := rewrite.Instrument(m, rewrite.Options{MemoryPages: wasm.MaxPages})
		if err != nil {
			continue
		}
		e := estimate.Module(direct.Calls(res.Module), 0, estimate.Cost{Steps: 1 << 40, Bytes: 1 << 40})
		if len(b) > 1<<20 {
			t.Logf("%s: %d bytes, %d M steps (%d a byte), %d MB, the dearest function %d M steps", file, len(b), e.Steps/1e6, e.Steps/uint64(len(b)), e.Bytes>>20, e.Worst.Steps/1e6)
		}
		// Half of what sandbox.ImageConfig allows by default.
		if e.Steps > (700_000_000+1_000*uint64(len(b)))/2 && e.Steps > 800*uint64(len(b)) || e.Bytes > (128<<20+200*uint64(len(b)))/2 {
			t.Errorf("%s, %d bytes: %+v", file, len(b), e)
		}
	}
}
