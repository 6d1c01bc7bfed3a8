package rewrite

import (
	"testing"

	"github.com/wasmactors/wasmactors/internal/direct"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// rewritten is a guest on its way to the compiler, with what that took.
func rewritten(t testing.TB, code []byte) (steps uint64, out int) {
	m, err := wasm.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Instrument(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := direct.Calls(res.Module)
	frozen, err := Freeze(res, State{Globals: nulls(res), Pages: m.Memories[0].Min})
	if err != nil {
		t.Fatal(err)
	}
	return res.Steps, max(len(d.Encode()), len(res.Module.Encode()), len(direct.Calls(frozen).Encode()))
}

// growth is how many bytes one byte of a guest may become; the rest is what the
// rewriter adds to every module.
const (
	growth   = 12
	overhead = 3 << 10
	// stepsPerByte is how much is looked at for each byte of a guest.
	stepsPerByte = 6
)

// TestLinear: what the rewriter looks at, and what it writes, grows with the
// module and no faster, whatever the module is made of. Sixteen times as much may
// take sixteen times the steps, and a quarter more for tables and the like.
func TestLinear(t *testing.T) {
	for _, f := range wasmgen.Families() {
		t.Run(f.Name, func(t *testing.T) {
			size := thorough.Of(2_000, 8_000)
			small, large := f.Make(size).Encode(), f.Make(16*size).Encode()
			smallSteps, smallOut := rewritten(t, small)
			steps, out := rewritten(t, large)
			t.Logf("%d -> %d bytes, %d steps; %d -> %d bytes, %d steps", len(small), smallOut, smallSteps, len(large), out, steps)
			by := float64(len(large)) / float64(len(small))
			if float64(steps) > 1.25*by*float64(smallSteps)+10_000 {
				t.Errorf("%.1f times the bytes take %.1f times the steps", by, float64(steps)/float64(smallSteps))
			}
			if steps > stepsPerByte*uint64(len(large))+10_000 {
				t.Errorf("%d bytes take %d steps", len(large), steps)
			}
			if out > growth*len(large)+overhead {
				t.Errorf("%d bytes become %d, %d became %d", len(large), out, len(small), smallOut)
			}
		})
	}
}

// BenchmarkRewrite decodes and rewrites growing modules of every family: the time
// and the memory for a byte stay the same.
func BenchmarkRewrite(b *testing.B) {
	for _, f := range wasmgen.Families() {
		b.Run(f.Name, func(b *testing.B) {
			for _, size := range []struct {
				name  string
				bytes int
			}{{"4k", 4_000}, {"32k", 32_000}, {"256k", 256_000}} {
				b.Run(size.name, func(b *testing.B) {
					code := f.Make(size.bytes).Encode()
					b.SetBytes(int64(len(code)))
					b.ReportAllocs()
					for b.Loop() {
						rewritten(b, code)
					}
				})
			}
		})
	}
}
