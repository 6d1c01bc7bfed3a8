package sandbox

import (
	"context"
	"errors"
	goruntime "runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
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
	start, cpu := time.Now(), cpuTime()
	i, err := e.Load(context.Background(), code, cfg)
	took := min(time.Since(start), cpuTime()-cpu) // other work may go on
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
	if race.Enabled {
		t.Skip("one load after another: nothing to race")
	}
	sizes := thorough.Of(thorough.SlowOf([]int{4_000}, []int{30_000}), []int{7_000, 30_000, 95_000})
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
				if took > loadTime || bytes > loadMemory {
					t.Errorf("%d bytes take %v and %d MB to load: %v", len(code), took, bytes>>20, err)
				}
			}
		})
	}
}

// TestCompileLimits: what the compiler would need is bounded beyond what the size of
// the module allows, in steps and in memory; who raises a limit gets the module.
func TestCompileLimits(t *testing.T) {
	e := newEngine(t, NewConfig())
	for _, f := range wasmgen.Families() {
		if f.Name != "br_if with 1000 values" {
			continue
		}
		code := f.Make(7_000).Encode()
		for _, c := range []struct {
			key string
			cfg ImageConfig
		}{
			{"compile-steps", ImageConfig{CompileSteps: 50_000_000, CompileBytes: 1 << 40}},
			{"compile-bytes", ImageConfig{CompileSteps: 1 << 40, CompileBytes: 20 << 20}},
			{"", ImageConfig{CompileSteps: 3_000_000_000, CompileBytes: 1 << 40}},
		} {
			i, err := e.Load(context.Background(), code, c.cfg)
			var limit *LimitError
			switch {
			case c.key == "" && err != nil:
				t.Error("with more:", err)
			case c.key == "":
				i.Close()
			case !errors.As(err, &limit) || limit.Key != c.key || limit.Need <= limit.Limit || !strings.Contains(err.Error(), "values that branches, blocks and calls pass (most of it in function 4"):
				t.Errorf("%s: %v", c.key, err)
			}
		}
	}
}

// FuzzScale makes functions of pieces of the families, repeated, nested and mixed,
// and loads them: the limits hold for what nobody has thought of, too. Sizes are
// bounded so that a find takes seconds, not minutes.
func FuzzScale(f *testing.F) {
	if race.Enabled {
		f.Skip("one load after another: nothing to race")
	}
	for k := range thorough.Of[uint64](8, 40) {
		f.Add(wasmgen.Seed(k))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		code := wasmgen.Mix(choices).Encode()
		if len(code) > 100_000 {
			return
		}
		e := newEngine(t, NewConfig())
		took, bytes, err := loadCost(t, e, code, ImageConfig{})
		for range 3 {
			if took <= loadTime {
				break
			}
			again, _, _ := loadCost(t, e, code, ImageConfig{})
			took = min(took, again)
		}
		if took > loadTime || bytes > loadMemory {
			t.Fatalf("%d bytes take %v and %d MB: %v", len(code), took, bytes>>20, err)
		}
		var limit *LimitError
		if err != nil && !errors.As(err, &limit) {
			t.Fatal(err)
		}
	})
}
