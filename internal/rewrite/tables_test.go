package rewrite

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// TestTablesTogether: no table may grow beyond the limit of one, nor all beyond
// theirs, and none gets less than it begins with or more than it declares.
func TestTablesTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := wasmgen.NewScale()
		o := Options{TableLimit: rapid.Uint32Range(1, 1000).Draw(t, "limit"), TableTotal: rapid.Uint32Range(1, 3000).Draw(t, "total")}
		sum, over := uint32(0), false
		for range rapid.IntRange(0, 8).Draw(t, "tables") {
			l := wasm.Limits{Min: rapid.Uint32Range(0, 600).Draw(t, "min"), HasMax: rapid.Bool().Draw(t, "bounded")}
			if l.HasMax {
				l.Max = l.Min + rapid.Uint32Range(0, 5000).Draw(t, "more")
			}
			s.Tables = append(s.Tables, wasm.Table{Elem: wasm.FuncRef, Limits: l})
			sum += l.Min
			over = over || l.Min > o.TableLimit
		}
		res, err := Instrument(s.Module, o)
		if (err != nil) != (over || sum > o.TableTotal) {
			t.Fatalf("tables of %d entries: %v", sum, err)
		}
		if err != nil {
			return
		}
		total := uint32(0)
		for i, out := range res.Module.Tables {
			in := s.Tables[i]
			if !out.HasMax || out.Min != in.Min || out.Max < out.Min || out.Max > o.TableLimit || in.HasMax && out.Max > in.Max {
				t.Errorf("%+v became %+v", in, out)
			}
			total += out.Max
		}
		if total > o.TableTotal {
			t.Errorf("the tables may grow to %d entries, the limit is %d", total, o.TableTotal)
		}
	})
}
