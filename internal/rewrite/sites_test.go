package rewrite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Each instruction of a rewritten module stands for one of the same function, those that were taken over for themselves and in order; and a
// module without sites is the same but for what notes blocks.
func TestSites(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/*.wasm", "../../host/testdata/hostile/*.wasm", "../../host/debug/testdata/*.wasm"} {
		found, _ := filepath.Glob(pattern)
		files = append(files, found...)
	}
	if len(files) < 10 {
		t.Fatalf("%d modules", len(files))
	}
	for _, name := range files {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasm.Decode(code)
		if err != nil {
			continue // some are malformed on purpose
		}
		res, err := Instrument(m, Options{Sites: true})
		if err != nil {
			continue
		}
		plain, err := Instrument(m, Options{})
		if err != nil || plain.Sites() != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sites := res.Sites()
		out, err := wasm.Decode(res.Module.Encode())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range m.Code {
			from := uint64(m.Code[i].Offset - m.CodeStart)
			end := from + uint64(len(m.Code[i].Code))
			begins := map[uint64]byte{}
			it := wasm.NewInstrs(m.Code[i].Code, 0)
			var ins wasm.Instr
			for {
				if ok, err := it.Next(&ins); err != nil || !ok {
					break
				}
				begins[from+uint64(ins.Start)] = ins.Op
			}
			body := &out.Code[i]
			base := uint64(body.Offset - out.CodeStart)
			traps, wanted := 0, 0
			for _, op := range begins {
				if op == wasm.OpUnreachable {
					wanted++
				}
			}
			it = wasm.NewInstrs(body.Code, 0)
			for {
				if ok, err := it.Next(&ins); err != nil || !ok {
					break
				}
				at := sites.Of(base + uint64(ins.Start))
				op, known := begins[at]
				if at < from || at >= end || !known {
					t.Fatalf("%s: function %d: the instruction at %d stands for %d, which is outside of %d to %d", name, i, ins.Start, at, from, end)
				}
				if ins.Op == wasm.OpUnreachable && op == wasm.OpUnreachable { // others are injected
					traps++
				}
			}
			if traps != wanted {
				t.Errorf("%s: function %d: %d traps stand for themselves, not %d", name, i, traps, wanted)
			}
		}
		if sites.Of(1<<40) != 0 || sites.Of(0) != 0 {
			t.Errorf("%s: what is outside of the code stands for something", name)
		}
	}
}
