package estimate_test

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/direct"
	"github.com/wasmactors/wasmactors/internal/estimate"
	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

var unbounded = estimate.Cost{1 << 62, 1 << 62}

// compiled measures what wazero's compiler takes.
func compiled(t testing.TB, m *wasm.Module) (time.Duration, uint64) {
	b := m.Encode()
	ctx := context.Background()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	base := sample[0].Value.Uint64()
	peak := base
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			metrics.Read(s)
			peak = max(peak, s[0].Value.Uint64())
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	start := time.Now()
	c, err := r.CompileModule(ctx, b)
	took := time.Since(start)
	close(stop)
	<-done
	if err != nil {
		t.Error("wazero refuses:", err)
	} else {
		c.Close(ctx)
	}
	r.Close(ctx)
	return took, peak - base
}

// prepared is what is compiled of a guest.
func prepared(t testing.TB, m *wasm.Module) *wasm.Module {
	m, err := wasm.Decode(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	res, err := rewrite.Instrument(m, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return direct.Calls(res.Module)
}

// TestCalibrate prints estimates beside measurements, for growing modules of every
// family: WASMACTORS_CALIBRATE=1000,10000 go test -run TestCalibrate -v
func TestCalibrate(t *testing.T) {
	sizes := os.Getenv("WASMACTORS_CALIBRATE")
	if sizes == "" {
		t.Skip("set WASMACTORS_CALIBRATE to sizes")
	}
	for _, f := range wasmgen.Families() {
		t.Run(f.Name, func(t *testing.T) {
			for _, size := range strings.Split(sizes, ",") {
				n, err := strconv.Atoi(size)
				if err != nil {
					t.Fatal(err)
				}
				guest := f.Make(n)
				start := time.Now()
				m := prepared(t, guest)
				rewriting := time.Since(start)
				start = time.Now()
				e := estimate.Module(m, 0, unbounded)
				walk := time.Since(start)
				took, bytes := compiled(t, m)
				t.Logf("| %7d -> %8d | rewrite %6.1f ms | walk %7.1f ms | estimate %8.1f ms, %6.1f MB | measured %8.1f ms, %6.1f MB | ratio %5.2f, %5.2f | %v", len(guest.Encode()), len(m.Encode()), ms(rewriting), ms(walk), float64(e.Steps)/1e6, float64(e.Bytes)/1e6,
					ms(took), float64(bytes)/1e6, float64(e.Steps)/float64(took), float64(e.Bytes)/float64(bytes+1), e.Cause)
				if took > 3*time.Second || bytes > 800<<20 || rewriting > 3*time.Second {
					break
				}
			}
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// TestCalibrateFiles does the same for files: WASMACTORS_CALIBRATE_FILES=a.wasm,b.wasm
func TestCalibrateFiles(t *testing.T) {
	files := os.Getenv("WASMACTORS_CALIBRATE_FILES")
	if files == "" {
		t.Skip("set WASMACTORS_CALIBRATE_FILES to files")
	}
	for _, file := range strings.Split(files, ",") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		guest, err := wasm.Decode(b)
		if err != nil {
			t.Log(file, err)
			continue
		}
		res, err := rewrite.Instrument(guest, rewrite.Options{MemoryPages: 65536, TableLimit: 1 << 20})
		if err != nil {
			continue
		}
		m := direct.Calls(res.Module)
		start := time.Now()
		e := estimate.Module(m, 0, unbounded)
		walk := time.Since(start)
		took, bytes := compiled(t, m)
		t.Logf("| %s | %7d -> %8d | walk %7.1f ms | estimate %8.1f ms, %6.1f MB, %4.0f a byte, worst %8.1f ms, %5.1f MB | measured %8.1f ms, %6.1f MB | ratio %5.2f, %5.2f | %v in %d", file, len(b), len(m.Encode()), ms(walk), float64(e.Steps)/1e6, float64(e.Bytes)/1e6,
			float64(e.Steps)/float64(len(b)), float64(e.Worst.Steps)/1e6, float64(e.Worst.Bytes)/1e6, ms(took), float64(bytes)/1e6, float64(e.Steps)/float64(took), float64(e.Bytes)/float64(bytes+1), e.Cause, e.Func)
	}
}
