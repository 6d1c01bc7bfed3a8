package rewrite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

func compute(b *testing.B) []byte {
	b.Helper()
	wasmBytes, err := os.ReadFile("testdata/compute.wasm")
	if err != nil {
		b.Fatal(err)
	}
	return wasmBytes
}

// BenchmarkCompute runs fib(27) and a loop of a million iterations, plain and metered.
func BenchmarkCompute(b *testing.B) {
	ctx := context.Background()
	raw := compute(b)
	m, err := wasm.Decode(raw)
	if err != nil {
		b.Fatal(err)
	}
	for _, program := range []struct {
		name string
		kind uint64
	}{{"fib", 1}, {"loop", 2}, {"memory", 3}} {
		b.Run(program.name+"/plain", func(b *testing.B) {
			r := wazero.NewRuntime(ctx)
			defer r.Close(ctx)
			mod, err := r.Instantiate(ctx, raw)
			if err != nil {
				b.Fatal(err)
			}
			f := mod.ExportedFunction("wasmactors_turn")
			for b.Loop() {
				if _, err := f.Call(ctx, program.kind); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(program.name+"/metered", func(b *testing.B) {
			h := newHost(b, wazero.NewRuntimeConfigCompiler())
			h.refuel = func(int64) int64 { return 200_000 }
			x := h.instantiate(b, instrument(b, m, Options{}).Module)
			for b.Loop() {
				if _, _, err := x.call(EnterTurn, program.kind, 1, 200_000); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInstrumentGo rewrites a guest made by standard Go.
func BenchmarkInstrumentGo(b *testing.B) {
	out := filepath.Join(b.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, ".")
	cmd.Dir = "testdata/gocompute"
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	var size int
	for b.Loop() {
		m, err := wasm.Decode(raw)
		if err != nil {
			b.Fatal(err)
		}
		res := instrument(b, m, Options{})
		size = len(res.Module.Encode())
	}
	b.ReportMetric(float64(size)/float64(len(raw)), "growth")
}
