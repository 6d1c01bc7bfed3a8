package debug

import (
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// symbols are the names that a module has for functions and addresses.
type symbols struct {
	functions map[int]string // by their numbers, of those that are not imported
	addresses map[string]uint64
	module    *wasm.Module
}

// symbolsOf reads them; a module that cannot be read has none.
func symbolsOf(module []byte) *symbols {
	s := &symbols{functions: map[int]string{}, addresses: map[string]uint64{}}
	m, err := wasm.Decode(module)
	if err != nil {
		return s
	}
	s.module = m
	imported := m.NumImported(wasm.KindFunc)
	section, _ := m.FindCustom("name")
	for f, name := range rewrite.FunctionNames(section) {
		if int(f) >= imported {
			s.functions[int(f)-imported] = string(name)
		}
	}
	for _, e := range m.Exports {
		if e.Kind != wasm.KindGlobal || int(e.Index) >= len(m.Globals) || m.Globals[e.Index].Mutable {
			continue // imported globals are refused
		}
		var ins wasm.Instr
		if it := wasm.NewInstrs(m.Globals[e.Index].Init, 0); m.Globals[e.Index].Type == wasm.I32 {
			if ok, err := it.Next(&ins); ok && err == nil && ins.Op == wasm.OpI32Const {
				s.addresses[e.Name] = uint64(ins.X)
			}
		}
	}
	return s
}

// find are the numbers of the functions with a name: the whole one, or what follows the package, as "(*cart).add".
func (d *Debugger) functions(name string) (map[int]bool, error) {
	found := map[int]bool{}
	match := func(n int, full string) {
		if full == name || strings.HasSuffix(full, "."+name) || strings.HasSuffix(full, "/"+name) {
			found[n] = true
		}
	}
	if d.lines != nil {
		d.lines.Each(match)
	}
	for n, full := range d.symbols.functions {
		match(n, full)
	}
	switch {
	case len(found) > 0:
		return found, nil
	case d.symbols.module == nil && d.lines == nil:
		return nil, fmt.Errorf("there are no names of functions without the module: give it with --module")
	}
	return nil, fmt.Errorf("there is no function %q", clip(name))
}
