package contract

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wasi"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

const testdata = "../../abi/testdata/"

func load(t *testing.T, file string) *sandbox.Image {
	t.Helper()
	ctx := context.Background()
	code, err := os.ReadFile(testdata + file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := sandbox.New(ctx, sandbox.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	image, err := e.Load(ctx, code, sandbox.ImageConfig{Name: file})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

type logged []string

func (l *logged) GuestLog(level int, text []byte) { *l = append(*l, string(text)) }

// Everything that can be imported is in all_imports.wasm, it links, and a turn
// of it runs.
func TestAllImportsLink(t *testing.T) {
	image := load(t, "all_imports.wasm")
	var want []string
	for _, name := range guestFunctions(t) {
		want = append(want, abi.Module+"."+name)
	}
	for _, f := range wasi.Functions() {
		want = append(want, wasi.Module+"."+f.Name)
	}
	slices.Sort(want)
	if got := image.Info().Imports; !slices.Equal(got, want) {
		t.Errorf("the module imports %v\nthe host offers  %v", got, want)
	}
	x, err := sandbox.Get(image)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Put()
	if !x.Push(&abi.Envelope{Payload: []byte{0xf6}}) {
		t.Fatal("refused")
	}
	var lines logged
	var res sandbox.Result
	x.Run(&sandbox.Entry{Log: &lines}, &res)
	if res.Turns != 1 || res.Failure != nil || !slices.Equal(lines, []string{"all is linked"}) {
		t.Errorf("%+v, logged %q", res, lines)
	}
	if _, cmds, ok, err := x.NextTurn(nil); len(cmds) != 0 || !ok || err != nil {
		t.Errorf("%v, %v, %v", cmds, ok, err)
	}
}

// guestFunctions are the names that the host accepts from the module
// "wasmactors", read from its source since it does not export them, and compared
// with the table of docs/abi.md.
func guestFunctions(t *testing.T) []string {
	t.Helper()
	find := func(file, from, to, pattern string) (names []string) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, text, ok := strings.Cut(string(src), from)
		text, _, closed := strings.Cut(text, to)
		if !ok || !closed {
			t.Fatalf("%s has no %q", file, from)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return names
	}
	names := append(find("../../internal/sandbox/imports.go", "var guestFuncs = ", "\n}", `(?m)^\t\{"([a-z_]+)"`), "next")
	slices.Sort(names)
	page := find("../../docs/abi.md", "| import from `wasmactors` |", "\n\n", "(?m)^\\| `([a-z_]+)`")
	if !slices.Equal(names, page) {
		t.Errorf("the host offers %v, the page has %v", names, page)
	}
	return names
}

// Each import with another type, and each name that does not exist, is refused.
func TestWrongImportsAreRefused(t *testing.T) {
	ctx := context.Background()
	code, err := os.ReadFile(testdata + "all_imports.wasm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := sandbox.New(ctx, sandbox.NewConfig().WithInterpreter(true))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	m, err := wasm.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	odd := uint32(len(m.Types))
	m.Types = append(m.Types, wasm.FuncType{Params: []wasm.ValType{wasm.F32}})
	refused := func(i int, with string) {
		t.Helper()
		image, err := e.Load(ctx, m.Encode(), sandbox.ImageConfig{Name: "odd"})
		if err == nil {
			image.Close()
			t.Errorf("import %d: accepted with %s", i, with)
		} else if !strings.Contains(err.Error(), m.Imports[i].Name) {
			t.Errorf("import %d: %v does not name it", i, err)
		}
	}
	for i := range m.Imports {
		kept := m.Imports[i]
		m.Imports[i].Func = odd
		refused(i, "another type")
		m.Imports[i] = kept
		m.Imports[i].Name += "_"
		refused(i, "another name")
		m.Imports[i] = kept
	}
}
