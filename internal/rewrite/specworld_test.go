package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// specWorld is where a file of the specification's tests runs: on one engine,
// with its modules as they are or rewritten.
type specWorld struct {
	runtime   wazero.Runtime
	rewritten bool
	named     map[string]api.Module // "" is the last
	linked    map[string]api.Module // what imports find
	all       []api.Module
	uses      map[api.Module][]api.Module // where a module's imports come from
	left      map[api.Module]bool         // modules that are not what they would be
}

// errBeyond is a module that is no guest, such as one that imports a table.
var errBeyond = errors.New("not for the rewriter")

func newSpecWorld(t testing.TB, cfg wazero.RuntimeConfig, rewritten bool) *specWorld {
	w := &specWorld{runtime: wazero.NewRuntimeWithConfig(context.Background(), cfg), rewritten: rewritten, named: map[string]api.Module{}, linked: map[string]api.Module{},
		uses: map[api.Module][]api.Module{}, left: map[api.Module]bool{}}
	fail := func(err error) api.GoFunc { return func(context.Context, []uint64) { panic(err) } }
	refuel := api.GoFunc(func(_ context.Context, stack []uint64) {
		if int64(stack[0]) < 0 {
			panic(errFuel)
		}
	})
	_, err := w.runtime.NewHostModuleBuilder(ImportModule).
		NewFunctionBuilder().WithGoFunction(refuel, []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).Export(ImportRefuel).
		NewFunctionBuilder().WithGoFunction(fail(errStack), []api.ValueType{api.ValueTypeI32}, nil).Export(ImportExceeded).
		Instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if w.linked["spectest"], err = w.instantiate(spectestModule().Encode()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *specWorld) close() { w.runtime.Close(context.Background()) }

func (w *specWorld) context() context.Context {
	return experimental.WithImportResolver(context.Background(), func(name string) api.Module { return w.linked[name] })
}

// spectestModule is what the tests import from "spectest".
func spectestModule() *wasm.Module {
	m := &wasm.Module{Tables: []wasm.Table{{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: 10, Max: 20, HasMax: true}}}, Memories: []wasm.Limits{{Min: 1, Max: 2, HasMax: true}}}
	m.Exports = []wasm.Export{{Name: "table", Kind: wasm.KindTable}, {Name: "memory", Kind: wasm.KindMemory}}
	for _, p := range []struct {
		name   string
		params []wasm.ValType
	}{
		{"print", nil}, {"print_i32", []wasm.ValType{wasm.I32}}, {"print_i64", []wasm.ValType{wasm.I64}}, {"print_f32", []wasm.ValType{wasm.F32}}, {"print_f64", []wasm.ValType{wasm.F64}},
		{"print_i32_f32", []wasm.ValType{wasm.I32, wasm.F32}}, {"print_f64_f64", []wasm.ValType{wasm.F64, wasm.F64}},
	} {
		n := uint32(len(m.Types))
		m.Types = append(m.Types, wasm.FuncType{Params: p.params})
		m.Funcs = append(m.Funcs, n)
		m.Code = append(m.Code, wasm.Body{Code: []byte{wasm.OpEnd}})
		m.Exports = append(m.Exports, wasm.Export{Name: p.name, Kind: wasm.KindFunc, Index: n})
	}
	for i, v := range []Value{{Lo: 666}, {Lo: 666}, {Lo: 0x4426a666}, {Lo: 0x4084d4cccccccccd}} {
		t := []wasm.ValType{wasm.I32, wasm.I64, wasm.F32, wasm.F64}[i]
		m.Globals = append(m.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: t}, Init: constant(t, v)})
		m.Exports = append(m.Exports, wasm.Export{Name: "global_" + t.String(), Kind: wasm.KindGlobal, Index: uint32(i)})
	}
	return m
}

// asGuest is m with what every guest has: a memory and the entries. What it
// imports from "spectest" but functions becomes its own.
func asGuest(m *wasm.Module) (*wasm.Module, error) {
	g := *m
	spec := spectestModule()
	g.Imports, g.Exports = nil, nil
	var tables []wasm.Table
	var memories []wasm.Limits
	var globals []wasm.Global
	for _, imp := range m.Imports {
		if imp.Kind == wasm.KindFunc {
			g.Imports = append(g.Imports, imp)
			continue
		}
		e := spec.FindExport(imp.Name)
		if imp.Module != "spectest" || e == nil || e.Kind != imp.Kind {
			return nil, errBeyond
		}
		switch {
		case imp.Kind == wasm.KindTable && !within(imp.Table.Limits, spec.Tables[0].Limits), imp.Kind == wasm.KindMemory && !within(imp.Memory, spec.Memories[0]):
			return nil, errBeyond
		case imp.Kind == wasm.KindTable:
			tables = append(tables, spec.Tables[0])
		case imp.Kind == wasm.KindMemory:
			memories = append(memories, spec.Memories[0])
		case imp.Global != spec.Globals[e.Index].GlobalType:
			return nil, errBeyond
		default:
			globals = append(globals, spec.Globals[e.Index])
		}
	}
	// Constant expressions may refer to imported globals only, which are constants.
	resolve := func(x wasm.Expr) wasm.Expr {
		if len(x) == 3 && x[0] == wasm.OpGlobalGet && int(x[1]) < len(globals) {
			return globals[x[1]].Init
		}
		return x
	}
	g.Tables, g.Memories = append(tables, m.Tables...), append(memories, m.Memories...)
	g.Globals = slices.Clone(globals)
	for _, own := range m.Globals {
		own.Init = resolve(own.Init)
		g.Globals = append(g.Globals, own)
	}
	g.Elems, g.Data = slices.Clone(m.Elems), slices.Clone(m.Data)
	for i := range g.Elems {
		g.Elems[i].Offset = resolve(g.Elems[i].Offset)
		g.Elems[i].Exprs = slices.Clone(g.Elems[i].Exprs)
		for k, x := range g.Elems[i].Exprs {
			g.Elems[i].Exprs[k] = resolve(x)
		}
	}
	for i := range g.Data {
		g.Data[i].Offset = resolve(g.Data[i].Offset)
	}
	if len(g.Memories) == 0 {
		g.Memories = []wasm.Limits{{HasMax: true}}
	}
	if len(g.Memories) > 1 {
		return nil, errBeyond
	}
	for _, e := range m.Exports {
		e.Name = "spec:" + e.Name
		g.Exports = append(g.Exports, e)
	}
	g.Exports = append(g.Exports, wasm.Export{Name: "memory", Kind: wasm.KindMemory})
	i32 := []wasm.ValType{wasm.I32}
	g.Types, g.Funcs, g.Code = slices.Clone(m.Types), slices.Clone(m.Funcs), slices.Clone(m.Code)
	for i, name := range []string{"wasmactors_init", "wasmactors_turn"} {
		g.Exports = append(g.Exports, wasm.Export{Name: name, Kind: wasm.KindFunc, Index: uint32(g.NumImported(wasm.KindFunc) + len(g.Funcs))})
		g.Funcs = append(g.Funcs, uint32(len(g.Types)))
		g.Types = append(g.Types, wasm.FuncType{Params: i32[:i], Results: i32})
		g.Code = append(g.Code, wasm.Body{Code: []byte{wasm.OpI32Const, 0, wasm.OpEnd}})
	}
	return &g, nil
}

// within reports whether an import asks for no more than there is.
func within(asked, there wasm.Limits) bool {
	return asked.Min <= there.Min && (!asked.HasMax || asked.Max >= there.Max)
}

// leave notes that a module is not run that shares a table, a memory or a global
// with others: what the tests expect of these is open from here on.
func (w *specWorld) leave(m *wasm.Module) {
	for _, imp := range m.Imports {
		if from := w.linked[imp.Module]; from != nil && imp.Kind != wasm.KindFunc && imp.Module != "spectest" {
			w.left[from] = true
		}
	}
}

// open reports whether what a module does depends on one that was left out.
func (w *specWorld) open(m api.Module) bool {
	return w.left[m] || slices.ContainsFunc(w.uses[m], w.open)
}

// rewriteSpec rewrites a module and gives it its own exports back.
func rewriteSpec(b []byte) (out *wasm.Module, start bool, err error) {
	m, err := wasm.Decode(b)
	if err != nil {
		return nil, false, err
	}
	guest, err := asGuest(m)
	if err != nil {
		return nil, false, err
	}
	res, err := Instrument(guest, Options{MemoryPages: wasm.MaxPages, TableLimit: 1 << 24})
	if err != nil {
		return nil, false, err
	}
	out = res.Module
	out.Exports = slices.DeleteFunc(out.Exports, func(e wasm.Export) bool { return e.Name == "memory" })
	for _, e := range m.Exports {
		if e.Kind == wasm.KindFunc {
			e.Index = res.entrance(e.Index)
		}
		out.Exports = append(out.Exports, e)
	}
	return out, m.Start != nil, nil
}

// entrance is what a function is exported as: itself or, where it has the depth as
// an argument, one of its original type that passes the whole stack.
func (r *Result) entrance(f uint32) uint32 {
	in, out := r.in, r.Module
	if !in.isDeep(f) {
		return in.index[f]
	}
	typ := in.src.FuncTypeIndex(f)
	w := writer{in: in}
	for p := range in.src.Types[typ].Params {
		w.get(uint32(p))
	}
	w.callEntry(int(f))
	w.op(wasm.OpEnd)
	out.Funcs = append(out.Funcs, typ)
	out.Code = append(out.Code, wasm.Body{Code: w.buf})
	return uint32(out.NumImported(wasm.KindFunc) + len(out.Funcs) - 1)
}

// instantiate makes a module; it becomes the last.
func (w *specWorld) instantiate(b []byte) (api.Module, error) {
	start := false
	src, err := wasm.Decode(b)
	if err != nil {
		src = &wasm.Module{} // its fault, and wazero will say so
	}
	if w.rewritten {
		m, hasStart, err := rewriteSpec(b)
		if err != nil {
			w.leave(src)
			return nil, err
		}
		b, start = m.Encode(), hasStart
	}
	w.named[""] = nil
	mod, err := w.runtime.InstantiateWithConfig(w.context(), b, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	w.all = append(w.all, mod)
	for _, imp := range src.Imports {
		w.uses[mod] = append(w.uses[mod], w.linked[imp.Module])
	}
	if start {
		w.refuel()
		if _, err := mod.ExportedFunction(ExportEnter).Call(w.context(), EnterInitialize, 0, 0, plenty); err != nil {
			return nil, err
		}
	}
	w.named[""] = mod
	return mod, nil
}

// refuel gives all modules what a host does.
func (w *specWorld) refuel() {
	if !w.rewritten {
		return
	}
	for _, m := range w.all {
		m.ExportedGlobal(GlobalFuel).(api.MutableGlobal).Set(plenty)
	}
}

// refused says why a module that must not be accepted is not; nil if it is. For
// the rewritten, wazero has the last word; what it accepts of the guest before it
// was rewritten is not the rewriter's fault.
func (w *specWorld) refused(b []byte) error {
	compile := func(b []byte) error {
		c, err := w.runtime.CompileModule(context.Background(), b)
		if err == nil {
			c.Close(context.Background())
		}
		return err
	}
	if !w.rewritten {
		return compile(b)
	}
	m, err := wasm.Decode(b)
	if err != nil {
		return err
	}
	guest, err := asGuest(m)
	if err != nil {
		return err
	}
	res, err := Instrument(guest, Options{MemoryPages: wasm.MaxPages, TableLimit: 1 << 24})
	if err != nil {
		return err
	}
	if err := compile(res.Module.Encode()); err != nil {
		return err
	}
	if compile(guest.Encode()) == nil {
		return fmt.Errorf("%w: made a guest, it is valid", errBeyond)
	}
	return nil
}
