package sandbox

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
)

// knownModule and knownEngine are the fields of wazero 1.12's module instance and of its
// engine's part of it.
var (
	knownModule = []string{"WazeroOnlyType", "ModuleName", "Exports", "Globals", "MemoryInstance", "Tables", "Tags", "Engine", "TypeIDs", "DataInstances",
		"ElementInstances", "Sys", "Closed", "CodeCloser", "s", "prev", "next", "Source", "CloseNotifier"}
	knownEngine = []string{"opaquePtr", "parent", "module", "opaque", "localFunctionInstances", "importedFunctions", "listeners"}
)

// surplus is what wazero keeps of every instance and that nothing needs once it is made: an
// object for each global, though the values are in the engine's block of the instance, and
// files and clocks for its own WASI, which package wasi stands for. That is a third of
// what a small guest holds in Go's heap. Nothing of wazero's shows where the values are;
// surplusOf finds it out, and tries it, and if it finds something else, everything stays as wazero
// has made it.
type surplus struct {
	globals, sys uintptr              // in the module instance: []*GlobalInstance, *Context
	block        uintptr              // in the engine's part: a pointer to the block
	places       [hiddenCount]uintptr // of hidden globals in the block
}

// surplusOf is nil if wazero is not as we know it. The module is in the image's state and
// does not run; held is its engine's part.
func surplusOf(module api.Module, held unsafe.Pointer) *surplus {
	mt := reflect.TypeOf(module).Elem()
	m := reflect.ValueOf(module).Elem()
	engine := m.FieldByName("Engine").Elem()
	if !slices.Equal(fieldsOf(mt), knownModule) || !slices.Equal(fieldsOf(engine.Type().Elem()), knownEngine) {
		return nil
	}
	globals, _ := mt.FieldByName("Globals")
	sys, _ := mt.FieldByName("Sys")
	block, _ := engine.Type().Elem().FieldByName("opaquePtr")
	opaque := engine.Elem().FieldByName("opaque")
	if globals.Type.Kind() != reflect.Slice || globals.Type.Elem().Kind() != reflect.Pointer || sys.Type.Kind() != reflect.Pointer ||
		block.Type != reflect.TypeFor[*byte]() || opaque.Kind() != reflect.Slice || opaque.Type().Elem().Kind() != reflect.Uint8 {
		return nil
	}
	s := &surplus{globals: globals.Offset, sys: sys.Offset, block: block.Offset}
	at := *(*unsafe.Pointer)(unsafe.Add(held, s.block))
	if at == nil || at != opaque.UnsafePointer() {
		return nil
	}
	for k := range s.places {
		g, ok := module.ExportedGlobal(hiddenNames[k]).(api.MutableGlobal)
		if !ok || !find(g, unsafe.Slice((*uint64)(at), opaque.Len()/8), &s.places[k]) {
			return nil
		}
	}
	return s
}

// find looks for the word that a global's value is in.
func find(g api.MutableGlobal, words []uint64, place *uintptr) bool {
	const mark, other = 0x5ca1ab1e_0ddba115, 0x0ddba115_5ca1ab1e
	was := g.Get()
	defer g.Set(was)
	g.Set(mark)
	i := slices.Index(words, mark)
	if i < 0 || slices.Contains(words[i+1:], mark) {
		return false
	}
	g.Set(other)
	ok := words[i] == other
	words[i] = mark
	*place = uintptr(i) * 8
	return ok && g.Get() == mark
}

func fieldsOf(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	return names
}

// drop gives the surplus of a new module instance to the collector. From now on the hidden
// globals are in the block only, which is the result.
func (s *surplus) drop(module api.Module, held unsafe.Pointer) (block unsafe.Pointer) {
	m := objectOf(module)
	*(*[]unsafe.Pointer)(unsafe.Add(m, s.globals)) = nil
	*(*unsafe.Pointer)(unsafe.Add(m, s.sys)) = nil
	return *(*unsafe.Pointer)(unsafe.Add(held, s.block))
}
