package sandbox

import (
	"context"
	"errors"
	goruntime "runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// What a module of less than 100 KB may take to be loaded or refused.
const (
	loadTime   = 2 * time.Second
	loadMemory = 300 << 20
)

// loadCost loads a module and measures what that takes: time, and the most that
// the heap has held meanwhile.
func loadCost(t *testing.T, e *Engine, code []byte, cfg ImageConfig) (time.Duration, uint64, error) {
	goruntime.GC()
	read := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	base := read()
	peak := base
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			peak = max(peak, read())
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	start := time.Now()
	i, err := e.Load(context.Background(), code, cfg)
	took := time.Since(start)
	close(stop)
	<-done
	if err == nil {
		i.Close()
	}
	return took, peak - base, err
}

// TestHostileModules: no module under 100 KB takes long or much to be loaded or
// refused, whatever it is made of. Some of these took minutes and gigabytes. A
// refusal is one by a limit.
func TestHostileModules(t *testing.T) {
	sizes := []int{7_000, 30_000, 95_000}
	if testing.Short() || raceEnabled {
		sizes = sizes[:1]
	}
	e := newEngine(t, NewConfig())
	for _, f := range wasmgen.Families() {
		t.Run(f.Name, func(t *testing.T) {
			for _, size := range sizes {
				code := f.Make(size).Encode()
				took, bytes, err := loadCost(t, e, code, ImageConfig{})
				for try := 0; try < 2 && took > loadTime; try++ { // other work goes on
					took, bytes, err = loadCost(t, e, code, ImageConfig{})
				}
				t.Logf("| %6d bytes | %7.1f ms | %6.1f MB | %v", len(code), float64(took)/1e6, float64(bytes)/1e6, err)
				var limit *LimitError
				var malformed *wasm.Error
				if err != nil && !errors.As(err, &limit) && !errors.As(err, &malformed) {
					t.Errorf("%d bytes: %v", len(code), err)
				}
				if took > loadTime && !raceEnabled || bytes > loadMemory {
					t.Errorf("%d bytes take %v and %d MB to load: %v", len(code), took, bytes>>20, err)
				}
			}
		})
	}
}
