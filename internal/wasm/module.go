// Package wasm decodes and encodes WebAssembly modules: the binary format of the
// features that wazero enables by default (WebAssembly 2.0: multi-value,
// reference types, bulk memory, SIMD, sign extension, saturating conversion,
// mutable globals).
//
// Decoding checks the structure: whatever follows can rely on indices being in
// range and on bodies being balanced. Types are not checked; wazero does that
// for the module that is compiled in the end.
package wasm

// ValType is a value type, as the binary format writes it.
type ValType byte

// The value types.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
)

// IsRef reports whether values of type t are references.
func (t ValType) IsRef() bool { return t == FuncRef || t == ExternRef }

// IsNumber reports whether t is an integer or a float.
func (t ValType) IsNumber() bool { return t == I32 || t == I64 || t == F32 || t == F64 }

// String is the name in the text format.
func (t ValType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return "invalid"
}

// ExternKind says what an import or an export is.
type ExternKind byte

// The kinds of imports and exports.
const (
	KindFunc   ExternKind = 0
	KindTable  ExternKind = 1
	KindMemory ExternKind = 2
	KindGlobal ExternKind = 3
)

// String is the name in the text format.
func (k ExternKind) String() string {
	switch k {
	case KindFunc:
		return "func"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	}
	return "global"
}

// FuncType is a function's signature.
type FuncType struct{ Params, Results []ValType }

// Limits of a table (entries) or a memory (pages of 64 KiB).
type Limits struct {
	Min    uint32
	Max    uint32
	HasMax bool
}

// Table is a table's type.
type Table struct {
	Elem ValType
	Limits
}

// GlobalType is a global's type.
type GlobalType struct {
	Type    ValType
	Mutable bool
}

// Global is a global of the module's own.
type Global struct {
	GlobalType
	Init Expr
}

// Import is one import. Which of the last four counts depends on Kind.
type Import struct {
	Module, Name string
	Kind         ExternKind
	Func         uint32 // index of its type
	Table        Table
	Memory       Limits
	Global       GlobalType
}

// Export is one export.
type Export struct {
	Name  string
	Kind  ExternKind
	Index uint32
}

// Expr is the code of a constant expression, its end included.
type Expr []byte

// Modes of segments.
const (
	Active      byte = 0
	Passive     byte = 1
	Declarative byte = 2
)

// Elem is an element segment. Either Funcs or Exprs is used.
type Elem struct {
	Mode     byte
	Table    uint32
	Offset   Expr // if active
	Type     ValType
	Funcs    []uint32
	Exprs    []Expr
	UseExprs bool
	Explicit bool // the table's index and the type are written even where they need not be
}

// Data is a data segment.
type Data struct {
	Mode     byte // Active or Passive
	Memory   uint32
	Offset   Expr // if active
	Bytes    []byte
	Explicit bool // the memory's index is written though it is 0
}

// LocalGroup is n locals of one type.
type LocalGroup struct {
	N    uint32
	Type ValType
}

// Body is a function's code.
type Body struct {
	Locals []LocalGroup
	Code   []byte // the final end included
	Offset int    // of Code in the module that was decoded
}

// NumLocals is the number of declared locals, parameters not included.
func (b *Body) NumLocals() uint64 {
	var n uint64
	for _, g := range b.Locals {
		n += uint64(g.N)
	}
	return n
}

// Custom is a custom section.
type Custom struct {
	Name string
	Data []byte
}

// Module is a decoded module. Byte slices alias the input.
type Module struct {
	Types     []FuncType
	Imports   []Import
	Funcs     []uint32 // types of the module's own functions
	Tables    []Table
	Memories  []Limits
	Globals   []Global
	Exports   []Export
	Start     *uint32
	Elems     []Elem
	DataCount *uint32
	Code      []Body
	Data      []Data
	Customs   []Custom

	CodeStart int // where the contents of the code section begin in the module that was decoded, in bytes
}

// NumImported counts the imports of one kind.
func (m *Module) NumImported(k ExternKind) int {
	n := 0
	for i := range m.Imports {
		if m.Imports[i].Kind == k {
			n++
		}
	}
	return n
}

// FuncTypes are the indices of the types of all functions, imported ones first.
func (m *Module) FuncTypes() []uint32 {
	types := make([]uint32, 0, len(m.Imports)+len(m.Funcs))
	for i := range m.Imports {
		if m.Imports[i].Kind == KindFunc {
			types = append(types, m.Imports[i].Func)
		}
	}
	return append(types, m.Funcs...)
}

// Key tells types apart as an indirect call does, by structure.
func (t *FuncType) Key() string {
	b := make([]byte, 0, len(t.Params)+len(t.Results)+1)
	for _, p := range t.Params {
		b = append(b, byte(p))
	}
	b = append(b, 0)
	for _, r := range t.Results {
		b = append(b, byte(r))
	}
	return string(b)
}

// FuncTypeIndex is the index of the type of function f, imported or own.
func (m *Module) FuncTypeIndex(f uint32) uint32 {
	for i := range m.Imports {
		if m.Imports[i].Kind == KindFunc {
			if f == 0 {
				return m.Imports[i].Func
			}
			f--
		}
	}
	return m.Funcs[f]
}

// FindExport is the export of this name, or nil.
func (m *Module) FindExport(name string) *Export {
	for i := range m.Exports {
		if m.Exports[i].Name == name {
			return &m.Exports[i]
		}
	}
	return nil
}

// FindCustom is the contents of the first custom section of this name.
func (m *Module) FindCustom(name string) ([]byte, bool) {
	for i := range m.Customs {
		if m.Customs[i].Name == name {
			return m.Customs[i].Data, true
		}
	}
	return nil, false
}
