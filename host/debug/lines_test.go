package debug_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/debug"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/runtime"
)

// lineOf is a frame as file:line.
func lineOf(f *debug.Frame) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
}

// A guest in C shows file and line of each call, in a debugger and in a repetition: at a trap, in a loop, and of what was put in line.
func TestLinesOfC(t *testing.T) {
	e := engine(t, false)
	testLinesOfC(t, e, must(os.ReadFile("testdata/cart.wasm"))(t))
}

// What the clang of this machine builds shows the same.
func TestLinesOfClang(t *testing.T) {
	for _, name := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: the module of testdata is tried alone", name)
		}
	}
	for _, level := range []string{"-O0", "-O1", "-O2"} {
		for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
			out := filepath.Join(t.TempDir(), "cart.wasm")
			cmd := exec.Command("clang", "--target=wasm32", level, "-g", version, "-nostdlib", "-Wl,--no-entry", "cart.c", "-o", out)
			cmd.Dir = "testdata"
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			t.Run(level+version, func(t *testing.T) { testLinesOfC(t, engine(t, false), must(os.ReadFile(out))(t)) })
		}
	}
}

func testLinesOfC(t *testing.T, e *runtime.Engine, code []byte) {
	f := crash(t, e, code, "cart", 1, 1, 2, 3)
	at := func(text string) string { return fmt.Sprintf("cart.c:%d", lineWith(t, "cart.c", text)) }
	trap, refused, called := at("__builtin_trap();"), at("= checked(n)"), at("add(turns);")
	for _, interpreter := range []bool{false, true} {
		e := engine(t, interpreter)
		r := must(replay.Run(context.Background(), e, f, replay.Options{}))(t)
		if !r.Reproduced || r.Turns != 3 {
			t.Fatalf("%+v", r)
		}
		replay.Locate(context.Background(), e, f, replay.Options{}, r)
		if at := replay.Culprit(r.Stack); lineOf(at) != trap || at.Function != "checked" {
			t.Errorf("interpreter %v: the failure is at %+v of %+v", interpreter, at, r.Stack)
		}
		if len(r.Stack) != 3 || lineOf(&r.Stack[1]) != refused || r.Stack[1].Function != "add" || lineOf(&r.Stack[2]) != called || r.Stack[2].Function != "turn" {
			t.Errorf("interpreter %v: the stack is %+v", interpreter, r.Stack)
		}
	}
	d := open(t, e, f)
	if s := do(t, d, "stack").Stack; len(s) != 3 || lineOf(&s[0]) != trap || lineOf(&s[2]) != called {
		t.Errorf("at the failure: %+v", s)
	}
	do(t, d, "goto 2")
	do(t, d, "call add")
	inLoop := 0
	for range 50 {
		s := do(t, d, "forward").Frame
		if d.At().End && inLoop >= 4 {
			break // few rounds, as the loop is unrolled
		}
		if s == nil || filepath.Base(s.File) != "cart.c" || s.Line < lineWith(t, "cart.c", "void add(u32 n)") || s.Line > lineWith(t, "cart.c", "items[k & 63] += k;") {
			t.Fatalf("at %v: %+v", d.At(), s)
		}
		inLoop++
		if c := do(t, d, "stack").Stack[1]; lineOf(&c) != called {
			t.Fatalf("called from %+v", c)
		}
	}
	if inLoop == 0 {
		t.Error("it was never in the loop")
	}
}

// The innermost call of standard Go shows the line where it is, not only that where the function begins: in a debugger, and where a turn has
// ended for its fuel.
func TestInnermostLineOfGo(t *testing.T) {
	e := engine(t, false)
	d := open(t, e, guests(t)["go"](e, 1))
	do(t, d, "goto 5")
	do(t, d, "call (*cart).sum")
	seen := map[int]int{}
	for range 60 {
		f := do(t, d, "forward").Frame
		if f == nil || f.Function != "main.(*cart).sum" {
			break
		}
		if f.Begin {
			t.Errorf("at %v its line is not known: %+v", d.At(), f)
		}
		seen[f.Line]++
	}
	body, head := lineWith(t, "shop/main.go", "n += item"), lineWith(t, "shop/main.go", "range c.items")
	if seen[body]+seen[head] < 20 || seen[head] == 0 && seen[body] == 0 {
		t.Errorf("the lines are %v, not %d and %d", seen, head, body)
	}
	for line := range seen {
		if line < head-1 || line > body+3 {
			t.Errorf("line %d is not of the function", line)
		}
	}
	for _, interpreter := range []bool{false, true} {
		e := engine(t, interpreter)
		f := crashAt(t, e, must(shopCode())(t), "burner", 60_000_000, 1, 1)
		r := must(replay.Run(context.Background(), e, f, replay.Options{}))(t)
		if !r.Reproduced {
			t.Fatalf("%+v", r)
		}
		replay.Locate(context.Background(), e, f, replay.Options{}, r)
		at := replay.Culprit(r.Stack)
		if at == nil || at.Function != "main.(*burner).burn" || at.Begin || at.Line <= lineWith(t, "shop/main.go", "func (b *burner) burn()") || at.Line > lineWith(t, "shop/main.go", "make([]uint64, 100)")+2 {
			t.Errorf("interpreter %v: it has ended at %+v of %+v", interpreter, at, r.Stack)
		}
	}
}

// lineWith is the line of a guest's source that has a text.
func lineWith(t *testing.T, file, text string) int {
	t.Helper()
	for k, line := range strings.Split(string(must(os.ReadFile("testdata/"+file))(t)), "\n") {
		if strings.Contains(line, text) {
			return k + 1
		}
	}
	t.Fatalf("there is no %q", text)
	return 0
}

// A stranger's DWARF leads to no lines, and to nothing worse.
func TestBadDWARF(t *testing.T) {
	e := engine(t, false)
	code := must(os.ReadFile("testdata/cart.wasm"))(t)
	for _, change := range []func(b []byte){
		func(b []byte) { clear(b) },
		func(b []byte) { b[0], b[1], b[2], b[3] = 0xff, 0xff, 0xff, 0xf0 },
		func(b []byte) { b[10], b[12] = 0xff, 0xff },
		func(b []byte) { rand.NewChaCha8([32]byte{}).Read(b[11:]) },
	} {
		bad := bytes.Clone(code)
		m := must(wasm.Decode(bad))(t)
		for _, name := range []string{".debug_line", ".debug_info", ".debug_abbrev"} {
			section, ok := m.FindCustom(name) // a part of bad
			if !ok {
				t.Fatalf("there is no %s", name)
			}
			change(section)
		}
		f := crash(t, e, bad, "cart", 1, 1, 2, 3)
		r := must(replay.Run(context.Background(), e, f, replay.Options{}))(t)
		replay.Locate(context.Background(), e, f, replay.Options{}, r)
		if !r.Reproduced {
			t.Errorf("%+v", r)
		}
		d := open(t, e, f)
		if s := do(t, d, "stack").Stack; len(s) < 2 || s[len(s)-1].Function != "turn" {
			t.Errorf("%+v", s)
		}
	}
}
