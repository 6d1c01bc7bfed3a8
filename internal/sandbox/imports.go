package sandbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/wasi"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

const features = api.CoreFeaturesV2

// hostFunc is a function that guests or the rewriter's code may import.
type hostFunc struct {
	name    string
	params  []api.ValueType
	results []api.ValueType
	call    func(x *Instance, stack []uint64)
}

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// guestFuncs are the imports of the module "wasmactors", except for next, which the
// rewriter implements inside the guest.
var guestFuncs = []hostFunc{
	{"fetch", []api.ValueType{i32, i32, i32}, nil, func(x *Instance, s []uint64) { x.fetch(uint32(s[0]), uint32(s[1]), uint32(s[2])) }},
	{"write", []api.ValueType{i32, i32}, nil, func(x *Instance, s []uint64) { x.writeOut(uint32(s[0]), uint32(s[1])) }},
	{"flush", []api.ValueType{i32}, nil, func(x *Instance, s []uint64) { x.flush(uint32(s[0])) }},
	{"log", []api.ValueType{i32, i32, i32}, nil, func(x *Instance, s []uint64) { x.guestLog(uint32(s[0]), uint32(s[1]), uint32(s[2])) }},
	{"panic", []api.ValueType{i32, i32}, nil, func(x *Instance, s []uint64) { x.guestPanic(uint32(s[0]), uint32(s[1])) }},
}

// meterFuncs are called by the rewriter's code.
var meterFuncs = []hostFunc{
	{rewrite.ImportRefuel, []api.ValueType{i64}, []api.ValueType{i64}, func(x *Instance, s []uint64) { s[0] = uint64(x.refuel(int64(s[0]))) }},
	{rewrite.ImportExceeded, []api.ValueType{i32}, nil, func(x *Instance, s []uint64) { x.exceeded(uint32(s[0])) }},
}

// link puts into r the host modules that a guest with these imports needs.
func link(ctx context.Context, r wazero.Runtime, usesGuest, usesWASI bool) error {
	if err := export(ctx, r, rewrite.ImportModule, meterFuncs); err != nil {
		return err
	}
	if usesGuest {
		if err := export(ctx, r, abi.Module, guestFuncs); err != nil {
			return err
		}
	}
	if usesWASI {
		if _, err := wasi.Instantiate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func export(ctx context.Context, r wazero.Runtime, module string, funcs []hostFunc) error {
	b := r.NewHostModuleBuilder(module)
	for _, f := range funcs {
		call := f.call
		b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
			call(instanceOf(ctx), stack)
		}), f.params, f.results).Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// checkImports refuses what this host does not offer, and says what is needed.
func checkImports(m *wasm.Module) (usesGuest, usesWASI bool, err error) {
	for i := range m.Imports {
		imp := &m.Imports[i]
		if imp.Kind != wasm.KindFunc {
			continue // the rewriter refuses it
		}
		var params, results []api.ValueType
		known := false
		switch imp.Module {
		case abi.Module:
			usesGuest = usesGuest || imp.Name != "next"
			if imp.Name == "next" {
				continue // the rewriter checks it
			}
			for _, f := range guestFuncs {
				if f.name == imp.Name {
					params, results, known = f.params, f.results, true
				}
			}
		case wasi.Module:
			usesWASI = true
			for _, f := range wasi.Functions() {
				if f.Name == imp.Name {
					params, results, known = f.Params, f.Results, true
				}
			}
		case rewrite.ImportModule:
			continue // the rewriter refuses it
		}
		if !known {
			return false, false, fmt.Errorf("unknown import %q.%q", imp.Module, imp.Name)
		}
		t := m.Types[imp.Func]
		if !sameTypes(t.Params, params) || !sameTypes(t.Results, results) {
			return false, false, fmt.Errorf("the import %q.%q has the wrong type", imp.Module, imp.Name)
		}
	}
	return usesGuest, usesWASI, nil
}

func sameTypes(have []wasm.ValType, want []api.ValueType) bool {
	return slices.EqualFunc(have, want, func(a wasm.ValType, b api.ValueType) bool { return byte(a) == b })
}

// importNames lists "module.name", sorted, each once.
func importNames(m *wasm.Module) []string {
	var names []string
	for i := range m.Imports {
		names = append(names, m.Imports[i].Module+"."+m.Imports[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func exportNames(m *wasm.Module) []string {
	var names []string
	for i := range m.Exports {
		names = append(names, m.Exports[i].Name)
	}
	slices.Sort(names)
	return names
}
