package estimate_test

import (
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/internal/estimate"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// TestMeasured: the estimate keeps up with wazero. On this machine, whatever its
// speed, no family takes much longer for a step than the families do as a rule;
// nor much shorter, so that honest modules are not refused.
func TestMeasured(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() || race.Enabled {
		t.Skip("compiles for seconds")
	}
	type sample struct {
		name      string
		pace      float64 // time for a step
		estimated estimate.Estimate
		bytes     uint64
		module    *wasm.Module
	}
	var samples []sample
	for _, f := range wasmgen.Families() {
		// As large as an estimate of a few hundredths of a second allows, or of a tenth.
		var m *wasm.Module
		var e estimate.Estimate
		for _, size := range []int{64_000, 32_000, 16_000, 8_000, 4_000, 2_000, 1_000} {
			m = prepared(t, f.Make(size))
			if e = estimate.Module(m, 0, estimate.Cost{thorough.Of[uint64](30_000_000, 100_000_000), 100 << 20}); !e.Over {
				break
			}
		}
		if e.Over || e.Steps < 8_000_000 {
			continue // hardly more than noise
		}
		took, bytes := compiled(t, m)
		for range thorough.Of(0, 2) { // other work goes on
			again, more := compiled(t, m)
			took, bytes = min(took, again), min(bytes, more)
		}
		samples = append(samples, sample{f.Name, float64(took) / float64(e.Steps), e, bytes, m})
	}
	if len(samples) < 40 {
		t.Fatalf("%d families only", len(samples))
	}
	slices.SortFunc(samples, func(a, b sample) int { return int(1e6*a.pace) - int(1e6*b.pace) })
	usual := samples[len(samples)/2].pace
	t.Logf("%d families, usually %.2f ns a step", len(samples), usual)
	for _, s := range samples {
		for again := 0; again < 5 && s.pace > 5*usual; again++ { // a busy machine may have held up all three
			took, _ := compiled(t, s.module)
			s.pace = min(s.pace, float64(took)/float64(s.estimated.Steps))
		}
		t.Logf("%-45s %.2f ns a step, %.2f bytes a byte, of %d M steps, %d MB: %v", s.name, s.pace, float64(s.bytes)/float64(s.estimated.Bytes), s.estimated.Steps/1e6, s.estimated.Bytes>>20, s.estimated.Cause)
		if s.pace > 5*usual || s.pace < usual/16 {
			t.Errorf("%s takes %.2f ns for a step of the estimate, usual are %.2f", s.name, s.pace, usual)
		}
		if s.bytes > 2*s.estimated.Bytes+(16<<20) {
			t.Errorf("%s takes %d bytes, estimated are %d", s.name, s.bytes, s.estimated.Bytes)
		}
	}
}

// TestOver: the walk ends soon after a bound is passed, whatever the module is.
func TestOver(t *testing.T) {
	most := estimate.Cost{20_000_000, 20 << 20}
	for _, f := range wasmgen.Families() {
		m := prepared(t, f.Make(thorough.Of(50_000, 150_000)))
		e := estimate.Module(m, 0, most)
		if over := e.Steps > most.Steps || e.Bytes > most.Bytes; over != e.Over {
			t.Errorf("%s: %+v", f.Name, e)
		}
	}
}

// TestGrows: more of the same is never cheaper.
func TestGrows(t *testing.T) {
	if testing.Short() {
		t.Skip("walks modules without a bound")
	}
	for _, f := range wasmgen.Families() {
		var last estimate.Estimate
		for _, size := range thorough.Of([]int{1_000, 4_000}, []int{1_000, 4_000, 16_000}) {
			m, err := wasm.Decode(f.Make(size).Encode())
			if err != nil {
				t.Fatal(err)
			}
			e := estimate.Module(m, 0, estimate.Cost{1 << 40, 1 << 40})
			if e.Steps < last.Steps*3/4 {
				t.Errorf("%s: %+v after %+v", f.Name, e, last)
			}
			last = e
		}
	}
}
