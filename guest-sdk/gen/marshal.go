package main

import (
	"go/types"
)

// marshal writes the method MarshalCBOR.
func (w *writer) marshal(s *structType) {
	w.vars = 0
	w.declare(s)
	w.declarePlaces(s)
	w.line("\n// MarshalCBOR writes m as a map.")
	w.line("func (m *%s) MarshalCBOR(w *abi.Writer) {", s.name)
	if s.placed() {
		w.line("if abi.WriteStruct(w, %s.Pointer(m), &%s[0]) {\nreturn\n}", w.use("unsafe", "unsafe"), w.table("placesOf_", s))
	}
	optional, keeps := false, s.unknown == unknownKeep
	for _, f := range s.fields {
		optional = optional || f.omitEmpty
	}
	var head []byte // goes along with the first key
	switch {
	case optional:
		w.line("n := %d", len(s.fields))
		for _, f := range s.fields {
			if f.omitEmpty {
				empty, _ := emptiness("m."+f.path, f.typ)
				w.line("if %s {\nn--\n}", empty)
			}
		}
		if keeps {
			w.line("w.Map(n + m.%s.Len())", s.rest)
		} else {
			w.line("w.Map(n)")
		}
	case keeps:
		w.line("w.Map(%d + m.%s.Len())", len(s.fields), s.rest)
	case len(s.fields) == 0 || len(s.fields) >= 24 || len(s.fields[0].encoding()) > 7:
		w.line("w.Map(%d)", len(s.fields))
	default:
		head = []byte{0xa0 | byte(len(s.fields))}
	}
	if keeps && len(s.fields) > 0 {
		w.line("rest := 0")
	}
	for i := 0; i < len(s.fields); i++ {
		if n := s.run(i); n > 0 {
			w.writeRun(s.fields[i:i+n], head)
			head = nil
			i += n - 1
			continue
		}
		f := &s.fields[i]
		if keeps {
			w.line("rest = m.%s.WriteBefore(w, rest, %q)", s.rest, f.encoding())
		}
		if f.omitEmpty {
			_, filled := emptiness("m."+f.path, f.typ)
			w.line("if %s {", filled)
		}
		if key := append(head, f.encoding()...); len(key) <= 8 {
			w.line("w.Word(%#x, %d) // %q", word(key), len(key), f.key())
		} else {
			w.line("w.Encoded(%q)", key)
		}
		head = nil
		w.write("m."+f.path, f.typ)
		if f.omitEmpty {
			w.line("}")
		}
	}
	switch {
	case keeps && len(s.fields) > 0:
		w.line("m.%s.WriteRest(w, rest)", s.rest)
	case keeps:
		w.line("m.%s.WriteRest(w, 0)", s.rest)
	}
	w.line("}")
}

// emptiness are the conditions that omitempty asks for.
func emptiness(expr string, t types.Type) (empty, filled string) {
	if isTime(t) {
		return expr + ".IsZero()", "!" + expr + ".IsZero()"
	}
	zero := "0"
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			return "!" + expr, expr
		case u.Info()&types.IsString != 0:
			zero = `""`
		}
	case *types.Pointer:
		zero = "nil"
	default:
		expr = "len(" + expr + ")"
	}
	return expr + " == " + zero, expr + " != " + zero
}

// write writes the statements that append the value of expr, which must be
// addressable.
func (w *writer) write(expr string, t types.Type) {
	switch {
	case isTime(t):
		w.line("w.Time(%s)", expr)
		return
	case w.own(t):
		w.line("%s.MarshalCBOR(w)", expr)
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		w.writeBasic(expr, t, u)
	case *types.Pointer:
		w.line("if %s == nil {\nw.Null()\n} else {", expr)
		if w.own(u.Elem()) {
			w.line("%s.MarshalCBOR(w)", expr)
		} else {
			w.write("(*"+expr+")", u.Elem())
		}
		w.line("}")
	case *types.Slice:
		if isBytes(u.Elem()) {
			w.line("w.ByteString(%s)", expr)
			return
		}
		w.line("w.Array(len(%s))", expr)
		w.elements(expr, u.Elem())
	case *types.Array:
		if isBytes(u.Elem()) {
			w.line("w.ByteString(%s[:])", expr)
			return
		}
		w.line("w.Array(%d)", u.Len())
		w.elements(expr, u.Elem())
	case *types.Map:
		sorted, key := "SortedIntKeys", "w.Int(int64(%[1]s))"
		switch info := u.Key().Underlying().(*types.Basic).Info(); {
		case info&types.IsString != 0:
			sorted, key = "SortedTextKeys", "w.Text(string(%[1]s))"
		case info&types.IsUnsigned != 0:
			sorted, key = "SortedUintKeys", "w.Uint(uint64(%[1]s))"
		}
		k, v := w.variable("k"), w.variable("v")
		w.line("w.Map(len(%s))", expr)
		w.line("for _, %s := range abi.%s(%s) {", k, sorted, expr)
		w.line(key, k)
		w.line("%s := %s[%s]", v, expr, k)
		w.write(v, u.Elem())
		w.line("}")
	}
}

func (w *writer) elements(expr string, elem types.Type) {
	i := w.variable("i")
	w.line("for %s := range %s {", i, expr)
	w.write(expr+"["+i+"]", elem)
	w.line("}")
}

func (w *writer) writeBasic(expr string, t types.Type, u *types.Basic) {
	switch info := u.Info(); {
	case info&types.IsBoolean != 0:
		w.line("w.Bool(%s)", plain(t, types.Bool, expr))
	case info&types.IsString != 0:
		w.line("w.Text(%s)", plain(t, types.String, expr))
	case info&types.IsUnsigned != 0:
		w.line("w.Uint(%s)", plain(t, types.Uint64, expr))
	case info&types.IsInteger != 0:
		w.line("w.Int(%s)", plain(t, types.Int64, expr))
	case u.Kind() == types.Float32:
		w.line("w.Float32(%s)", plain(t, types.Float32, expr))
	default:
		w.line("w.Float(%s)", plain(t, types.Float64, expr))
	}
}
