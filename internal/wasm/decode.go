package wasm

import (
	"bytes"
	"strconv"
)

// Bounds of what Decode accepts; wazero's and the specification's
// implementation limits, whichever is lower.
const (
	MaxModule  = 256 << 20 // bytes
	MaxLocals  = 50_000    // a function, parameters included
	MaxTypes   = 1_000_000
	MaxFuncs   = 1_000_000
	MaxParams  = 1000    // of a function type, and results; Decode accepts moreParams more
	MaxNesting = 1 << 16 // of blocks in a function
	MaxPages   = 1 << 16

	// MaxAllLocals is how many locals all functions together may have beyond the
	// bytes of their code. A few bytes declare 50,000 of them, and wazero's
	// interpreter keeps 64 bytes for each.
	MaxAllLocals = 1 << 20
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count"}

// order in which sections may come.
var sectionOrder = [...]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 10}

// Decode reads a module and checks its structure. The error is an *Error.
func Decode(b []byte) (*Module, error) {
	switch {
	case len(b) > MaxModule:
		return nil, &Error{Func: -1, Reason: "the module is larger than 256 MiB"}
	case len(b) < 8 || !bytes.HasPrefix(b, []byte("\x00asm")):
		return nil, &Error{Func: -1, Reason: "not a WebAssembly module"}
	case !bytes.Equal(b[4:8], []byte{1, 0, 0, 0}):
		if b[4] == 0x0d {
			return nil, &Error{Offset: 4, Func: -1, Reason: "a component, not a core module"}
		}
		return nil, &Error{Offset: 4, Func: -1, Reason: "unknown version of the binary format"}
	}
	m := &Module{}
	d := decoder{m: m}
	r := reader{b: b, at: 8}
	last := 0
	for r.left() > 0 {
		start := r.at
		id := r.byte()
		size := r.count(1)
		at := r.at
		body := r.skip(size)
		if r.err != nil {
			return nil, r.err
		}
		if int(id) >= len(sectionNames) {
			return nil, &Error{Offset: start, Func: -1, Reason: "unknown section " + strconv.Itoa(int(id))}
		}
		if id != 0 {
			if sectionOrder[id] <= last {
				return nil, &Error{Offset: start, Section: sectionNames[id], Func: -1, Reason: "the section is out of order or comes twice"}
			}
			last = sectionOrder[id]
		}
		s := reader{b: body, base: at}
		d.section(id, &s)
		if s.err == nil && s.left() > 0 {
			s.fail("the section is longer than its contents")
		}
		if s.err != nil {
			e := s.err.(*Error)
			e.Section = sectionNames[id]
			return nil, e
		}
	}
	if err := d.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

type decoder struct {
	m       *Module
	hasCode bool
}

func (d *decoder) section(id byte, r *reader) {
	m := d.m
	switch id {
	case 0:
		name := r.name()
		m.Customs = append(m.Customs, Custom{name, r.skip(r.left())})
	case 1:
		for range r.count(3) {
			m.Types = append(m.Types, funcType(r))
		}
	case 2:
		for range r.count(4) {
			m.Imports = append(m.Imports, d.importEntry(r))
		}
	case 3:
		n := r.count(1)
		for range n {
			m.Funcs = append(m.Funcs, d.typeIndex(r))
		}
	case 4:
		for range r.count(3) {
			m.Tables = append(m.Tables, Table{r.refType(), r.limits()})
		}
	case 5:
		for range r.count(2) {
			m.Memories = append(m.Memories, memory(r))
		}
	case 6:
		for range r.count(3) {
			g := Global{GlobalType: r.globalType()}
			g.Init = r.expr()
			m.Globals = append(m.Globals, g)
		}
	case 7:
		for range r.count(3) {
			m.Exports = append(m.Exports, export(r))
		}
	case 8:
		f := r.u32()
		m.Start = &f
	case 9:
		for range r.count(2) {
			m.Elems = append(m.Elems, elem(r))
		}
	case 10:
		m.CodeStart = r.base + r.at
		d.code(r)
	case 11:
		for range r.count(2) {
			m.Data = append(m.Data, data(r))
		}
	case 12:
		n := r.u32()
		m.DataCount = &n
	}
}

func funcType(r *reader) FuncType {
	if r.byte() != 0x60 {
		r.at--
		r.fail("a function type is expected")
	}
	return FuncType{valTypes(r), valTypes(r)}
}

// moreParams is how many parameters the rewriter may add: what it writes is decoded, too.
const moreParams = 8

func valTypes(r *reader) []ValType {
	n := r.count(1)
	if n > MaxParams+moreParams {
		r.fail("more than 1000 parameters or results")
		return nil
	}
	var ts []ValType
	for range n {
		ts = append(ts, r.valType())
	}
	return ts
}

func (d *decoder) typeIndex(r *reader) uint32 {
	at := r.at
	i := r.u32()
	if r.err == nil && int(i) >= len(d.m.Types) {
		r.at = at
		r.fail("unknown type " + strconv.Itoa(int(i)))
	}
	return i
}

func (d *decoder) importEntry(r *reader) Import {
	i := Import{Module: r.name(), Name: r.name(), Kind: ExternKind(r.byte())}
	switch i.Kind {
	case KindFunc:
		i.Func = d.typeIndex(r)
	case KindTable:
		i.Table = Table{r.refType(), r.limits()}
	case KindMemory:
		i.Memory = memory(r)
	case KindGlobal:
		i.Global = r.globalType()
	default:
		r.at--
		r.fail("unknown kind of import")
	}
	return i
}

func memory(r *reader) Limits {
	l := r.limits()
	if r.err == nil && (l.Min > MaxPages || l.Max > MaxPages) {
		r.fail("a memory of more than 4 GiB")
	}
	return l
}

func export(r *reader) Export {
	e := Export{Name: r.name(), Kind: ExternKind(r.byte())}
	if r.err == nil && e.Kind > KindGlobal {
		r.at--
		r.fail("unknown kind of export")
	}
	e.Index = r.u32()
	return e
}

func elem(r *reader) Elem {
	flags := r.u32()
	if flags > 7 {
		r.fail("unknown kind of element segment")
		return Elem{}
	}
	e := Elem{Type: FuncRef, UseExprs: flags&4 != 0}
	switch {
	case flags&1 == 0:
		if flags&2 != 0 {
			e.Table = r.u32()
			e.Explicit = true
		}
		e.Offset = r.expr()
	case flags&2 == 0:
		e.Mode = Passive
	default:
		e.Mode = Declarative
	}
	if flags&3 != 0 {
		if e.UseExprs {
			e.Type = r.refType()
		} else if r.byte() != 0 {
			r.at--
			r.fail("unknown kind of element")
		}
	}
	if e.UseExprs {
		for range r.count(2) {
			e.Exprs = append(e.Exprs, r.expr())
		}
		return e
	}
	n := r.count(1)
	e.Funcs = make([]uint32, 0, n)
	for range n {
		e.Funcs = append(e.Funcs, r.u32())
	}
	return e
}

func data(r *reader) Data {
	var d Data
	switch r.u32() {
	case 0:
		d.Offset = r.expr()
	case 1:
		d.Mode = Passive
	case 2:
		d.Explicit = true
		d.Memory = r.u32()
		d.Offset = r.expr()
	default:
		r.fail("unknown kind of data segment")
	}
	d.Bytes = r.skip(r.count(1))
	return d
}

func (d *decoder) code(r *reader) {
	m := d.m
	d.hasCode = true
	n := r.count(2)
	if r.err == nil && n != len(m.Funcs) {
		r.fail("the function section announces " + strconv.Itoa(len(m.Funcs)) + " functions, there is code for " + strconv.Itoa(n))
		return
	}
	imported := m.NumImported(KindFunc)
	m.Code = make([]Body, 0, n)
	all := uint64(0)
	for i := range n {
		size := r.count(1)
		at := r.at
		f := reader{b: r.skip(size), base: r.base + at}
		body := Body{}
		total := uint64(0)
		if r.err == nil {
			total = uint64(len(m.Types[m.Funcs[i]].Params))
		}
		for range f.count(2) {
			g := LocalGroup{f.u32(), f.valType()}
			if total += uint64(g.N); total > MaxLocals {
				f.fail("more than 50000 locals")
				break
			}
			if all += uint64(g.N); all > MaxAllLocals+uint64(len(r.b)) {
				f.fail("the functions have too many locals together")
				break
			}
			body.Locals = append(body.Locals, g)
		}
		body.Offset = f.base + f.at
		body.Code = f.skip(f.left())
		if f.err == nil && r.err == nil {
			m.Code = append(m.Code, body)
			continue
		}
		if r.err == nil {
			r.err = f.err
		}
		r.err.(*Error).Func = imported + i
		return
	}
}

// finish checks what needs the whole module.
func (d *decoder) finish() error {
	m := d.m
	bad := func(section, reason string) error { return &Error{Section: section, Func: -1, Reason: reason} }
	if !d.hasCode && len(m.Funcs) > 0 {
		return bad("function", "functions without code")
	}
	if m.DataCount != nil && int(*m.DataCount) != len(m.Data) {
		return bad("data count", "it does not match the data section")
	}
	funcs := m.NumImported(KindFunc) + len(m.Funcs)
	counts := [4]int{funcs, m.NumImported(KindTable) + len(m.Tables), m.NumImported(KindMemory) + len(m.Memories), m.NumImported(KindGlobal) + len(m.Globals)}
	if counts[KindMemory] > 1 {
		return bad("memory", "multiple memories are not supported")
	}
	names := make(map[string]bool, len(m.Exports))
	for _, e := range m.Exports {
		if int(e.Index) >= counts[e.Kind] {
			return bad("export", strconv.Quote(e.Name)+" names an unknown "+e.Kind.String())
		}
		if names[e.Name] {
			return bad("export", "the name "+strconv.Quote(e.Name)+" is exported twice")
		}
		names[e.Name] = true
	}
	if m.Start != nil && int(*m.Start) >= funcs {
		return bad("start", "unknown function")
	}
	for i := range m.Elems {
		e := &m.Elems[i]
		if e.Mode == Active && int(e.Table) >= counts[KindTable] {
			return bad("element", "unknown table")
		}
		for _, f := range e.Funcs {
			if int(f) >= funcs {
				return bad("element", "unknown function")
			}
		}
		for _, x := range append([]Expr{e.Offset}, e.Exprs...) {
			if !refsInRange(x, funcs) {
				return bad("element", "ref.func of an unknown function")
			}
		}
	}
	for i := range m.Globals {
		if !refsInRange(m.Globals[i].Init, funcs) {
			return bad("global", "ref.func of an unknown function")
		}
	}
	for i := range m.Data {
		if m.Data[i].Mode == Active && int(m.Data[i].Memory) >= counts[KindMemory] {
			return bad("data", "unknown memory")
		}
	}
	return nil
}

// refsInRange reports whether a constant expression names known functions only.
func refsInRange(x Expr, funcs int) bool {
	it := NewInstrs(x, 0)
	var in Instr
	for {
		if ok, err := it.Next(&in); !ok || err != nil {
			return true // the expression was read before
		}
		if in.Op == OpRefFunc && int(in.X) >= funcs {
			return false
		}
	}
}
