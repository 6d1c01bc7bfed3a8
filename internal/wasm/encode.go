package wasm

// Encode writes the module, in the shortest form throughout.
func (m *Module) Encode() []byte {
	size := 1024
	for i := range m.Code {
		size += len(m.Code[i].Code) + 16
	}
	for i := range m.Data {
		size += len(m.Data[i].Bytes) + 16
	}
	w := make([]byte, 0, size)
	w = append(w, 0, 'a', 's', 'm', 1, 0, 0, 0)
	section := func(id byte, n int, item func(b []byte, i int) []byte) {
		if n == 0 {
			return
		}
		body := AppendU32(nil, uint32(n))
		for i := range n {
			body = item(body, i)
		}
		w = append(AppendU32(append(w, id), uint32(len(body))), body...)
	}
	section(1, len(m.Types), func(b []byte, i int) []byte {
		return appendValTypes(appendValTypes(append(b, 0x60), m.Types[i].Params), m.Types[i].Results)
	})
	section(2, len(m.Imports), func(b []byte, i int) []byte { return appendImport(b, &m.Imports[i]) })
	section(3, len(m.Funcs), func(b []byte, i int) []byte { return AppendU32(b, m.Funcs[i]) })
	section(4, len(m.Tables), func(b []byte, i int) []byte { return appendTable(b, &m.Tables[i]) })
	section(5, len(m.Memories), func(b []byte, i int) []byte { return appendLimits(b, m.Memories[i]) })
	section(6, len(m.Globals), func(b []byte, i int) []byte {
		return append(appendGlobalType(b, m.Globals[i].GlobalType), m.Globals[i].Init...)
	})
	section(7, len(m.Exports), func(b []byte, i int) []byte {
		e := &m.Exports[i]
		return AppendU32(append(appendName(b, e.Name), byte(e.Kind)), e.Index)
	})
	if m.Start != nil {
		body := AppendU32(nil, *m.Start)
		w = append(append(w, 8, byte(len(body))), body...)
	}
	section(9, len(m.Elems), func(b []byte, i int) []byte { return appendElem(b, &m.Elems[i]) })
	if m.DataCount != nil {
		body := AppendU32(nil, *m.DataCount)
		w = append(append(w, 12, byte(len(body))), body...)
	}
	var scratch []byte
	section(10, len(m.Code), func(b []byte, i int) []byte {
		c := &m.Code[i]
		scratch = AppendU32(scratch[:0], uint32(len(c.Locals)))
		for _, g := range c.Locals {
			scratch = append(AppendU32(scratch, g.N), byte(g.Type))
		}
		b = AppendU32(b, uint32(len(scratch)+len(c.Code)))
		return append(append(b, scratch...), c.Code...)
	})
	section(11, len(m.Data), func(b []byte, i int) []byte { return appendData(b, &m.Data[i]) })
	for _, c := range m.Customs {
		body := append(appendName(nil, c.Name), c.Data...)
		w = append(AppendU32(append(w, 0), uint32(len(body))), body...)
	}
	return w
}

// AppendU32 appends an unsigned LEB128.
func AppendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendS64 appends a signed LEB128.
func AppendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, s string) []byte { return append(AppendU32(b, uint32(len(s))), s...) }

func appendValTypes(b []byte, ts []ValType) []byte {
	b = AppendU32(b, uint32(len(ts)))
	for _, t := range ts {
		b = append(b, byte(t))
	}
	return b
}

func appendLimits(b []byte, l Limits) []byte {
	if l.HasMax {
		return AppendU32(AppendU32(append(b, 1), l.Min), l.Max)
	}
	return AppendU32(append(b, 0), l.Min)
}

func appendTable(b []byte, t *Table) []byte { return appendLimits(append(b, byte(t.Elem)), t.Limits) }

func appendGlobalType(b []byte, g GlobalType) []byte {
	if g.Mutable {
		return append(b, byte(g.Type), 1)
	}
	return append(b, byte(g.Type), 0)
}

func appendImport(b []byte, i *Import) []byte {
	b = append(appendName(appendName(b, i.Module), i.Name), byte(i.Kind))
	switch i.Kind {
	case KindFunc:
		return AppendU32(b, i.Func)
	case KindTable:
		return appendTable(b, &i.Table)
	case KindMemory:
		return appendLimits(b, i.Memory)
	}
	return appendGlobalType(b, i.Global)
}

func appendElem(b []byte, e *Elem) []byte {
	flags := byte(0)
	explicit := e.Mode == Active && (e.Explicit || e.Table != 0 || e.Type != FuncRef)
	switch {
	case e.Mode == Passive:
		flags = 1
	case e.Mode == Declarative:
		flags = 3
	case explicit:
		flags = 2
	}
	if e.UseExprs {
		flags |= 4
	}
	b = append(b, flags)
	if e.Mode == Active {
		if explicit {
			b = AppendU32(b, e.Table)
		}
		b = append(b, e.Offset...)
	}
	if flags&3 != 0 {
		if e.UseExprs {
			b = append(b, byte(e.Type))
		} else {
			b = append(b, 0)
		}
	}
	if e.UseExprs {
		b = AppendU32(b, uint32(len(e.Exprs)))
		for _, x := range e.Exprs {
			b = append(b, x...)
		}
		return b
	}
	b = AppendU32(b, uint32(len(e.Funcs)))
	for _, f := range e.Funcs {
		b = AppendU32(b, f)
	}
	return b
}

func appendData(b []byte, d *Data) []byte {
	switch {
	case d.Mode == Passive:
		b = append(b, 1)
	case d.Explicit || d.Memory != 0:
		b = append(AppendU32(append(b, 2), d.Memory), d.Offset...)
	default:
		b = append(append(b, 0), d.Offset...)
	}
	return append(AppendU32(b, uint32(len(d.Bytes))), d.Bytes...)
}
