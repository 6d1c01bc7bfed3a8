//go:build !wasm

package mapped

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// Structs are read and written by assembly in guests of standard Go. The tests of generated code, and those of what the
// collector must know, run there, too.
func TestGeneratedCodeInWebAssembly(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("compiling the tests for WebAssembly takes a while")
	}
	file := filepath.Join(t.TempDir(), "mapped.wasm")
	build := exec.Command("go", "test", "-c", "-o", file, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	var out bytes.Buffer
	_, err = r.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithArgs("mapped", "-test.v", "-test.run=^(TestQuick|TestGenerated|TestPlaces)", "-rapid.nofailfile").
		WithEnv("GODEBUG", "clobberfree=1").WithStdout(&out).WithStderr(&out).WithSysWalltime().WithSysNanotime().WithRandSource(rand.Reader))
	if err != nil && !strings.Contains(err.Error(), "exit_code(0)") || !strings.Contains(out.String(), "--- PASS: TestQuickReadsTheSame") {
		t.Errorf("%v\n%s", err, out.Bytes())
	}
}
