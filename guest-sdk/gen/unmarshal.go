package main

import (
	"fmt"
	"go/types"

	"github.com/wasmactors/wasmactors/abi"
)

// firstRoom bounds what is allocated because of a length alone, in elements.
const firstRoom = 64

// unmarshal writes the method UnmarshalCBOR.
func (w *writer) unmarshal(s *structType) {
	w.vars = 0
	quick := w.inOrder(s)
	placed := s.placed()
	switch s.unknown {
	case unknownKeep:
		w.line("\n// UnmarshalCBOR reads what MarshalCBOR writes. Keys that are not known are kept; those that")
		w.line("// are missing leave zero.")
	case unknownRefuse:
		w.line("\n// UnmarshalCBOR reads what MarshalCBOR writes. Keys that are not known are refused; those that")
		w.line("// are missing leave zero.")
	default:
		w.line("\n// UnmarshalCBOR reads what MarshalCBOR writes. Keys that are not known are stepped")
		w.line("// over; those that are missing leave zero.")
	}
	w.line("func (m *%s) UnmarshalCBOR(r *abi.Reader) {", s.name)
	if placed {
		w.readPlaces(s)
	}
	if quick == 0 || !s.filled(quick) {
		w.line("*m = %s{}", s.name)
	}
	if s.recursive {
		w.line("if !r.Enter() {\nr.In(%q)\nreturn\n}", s.name)
	}
	words := (len(s.fields) + 63) / 64
	if words > 1 {
		w.line("var seen [%d]uint64", words)
	}
	noted := ""
	if s.unknown == unknownKeep || s.unknown == unknownRefuse {
		noted = "\nfrom := r.Offset()"
	}
	switch {
	case len(s.fields) == 0:
		w.line("for n := r.Map(); n > 0 && r.OK(); n-- {%s\nr.Skip()\n%s\n}", noted, s.otherwise())
	case quick > 0:
		w.line("n := r.Map()")
		if placed {
			w.line("read, next, seen := 0, 0, uint64(0)")
			w.line("if how == abi.ReadNot {\nread, next, seen = m.inOrderCBOR(r, n)\n}")
		} else {
			w.line("read, next, seen := m.inOrderCBOR(r, n)")
		}
		w.line("if next == 0 {\n*m = %s{}\n}", s.name)
		w.line("for n -= read; n > 0 && r.OK(); n-- {%s", noted)
	default:
		if words == 1 {
			w.line("var seen uint64")
		}
		w.line("next := 0")
		w.line("for n := r.Map(); n > 0 && r.OK(); n-- {%s", noted)
	}
	if len(s.fields) > 0 {
		w.line("switch r.Field(%s[:], &next) {", w.keys(s))
		for i, f := range s.fields {
			w.line("case %d:", i)
			seen, bit := seenBit(words, i)
			w.line("r.Once(&%s, %s)", seen, bit)
			w.read("m."+f.path, f.typ)
			w.line("r.In(%q)", s.name+"."+f.label())
		}
		w.line("default:\n%s\n}\n}", s.otherwise())
	}
	if s.recursive {
		w.line("r.Leave()")
	}
	w.line("r.In(%q)", s.name)
	for i, f := range s.fields {
		if f.required {
			seen, bit := seenBit(words, i)
			w.line("if %s&(%s) == 0 {\nr.Fail(abi.ErrMissing)\nr.In(%q)\n}", seen, bit, s.name+"."+f.label())
		}
	}
	w.line("}")
}

// otherwise is what is done behind an unknown key.
func (s *structType) otherwise() string {
	switch s.unknown {
	case unknownKeep:
		return "m." + s.rest + ".Keep(r, from)"
	case unknownRefuse:
		return "r.Refuse(from)"
	}
	return "r.Skip()"
}

func seenBit(words, i int) (seen, bit string) {
	if words > 1 {
		return fmt.Sprintf("seen[%d]", i/64), fmt.Sprintf("1<<%d", i%64)
	}
	return "seen", fmt.Sprintf("1<<%d", i)
}

// keys names the table of a struct's keys, which declare writes.
func (w *writer) keys(s *structType) string { return w.table("keysOf_", s) }

// table names a table of a struct.
func (w *writer) table(of string, s *structType) string {
	name := of + s.name
	for w.pkg.Scope().Lookup(name) != nil {
		name += "_"
	}
	return name
}

// declare writes the table of a struct's keys, in their order.
func (w *writer) declare(s *structType) {
	if len(s.fields) == 0 {
		return
	}
	w.line("\nvar %s = [...]abi.Key{", w.keys(s))
	for _, f := range s.fields {
		enc := f.encoding()
		w.line("{Word: %#x, Encoded: %q}, // %q", word(enc), enc, f.key())
	}
	w.line("}")
}

// encoding is the key as CBOR.
func (f *field) encoding() []byte {
	w := abi.NewWriter(nil)
	if f.asInt {
		w.Int(f.number)
	} else {
		w.Text(f.name)
	}
	return w.Bytes()
}

// word is the first 8 bytes, the lowest first.
func word(b []byte) (v uint64) {
	for i := min(len(b), 8) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// read writes the statements that read into a variable, which holds zero.
func (w *writer) read(to string, t types.Type) {
	switch {
	case isTime(t):
		w.line("%s = r.Time()", to)
		return
	case w.own(t):
		w.line("%s.UnmarshalCBOR(r)", to)
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		w.line("%s = %s", to, w.readBasic(t, u))
	case *types.Pointer:
		w.line("if !r.Null() {\n%s = new(%s)", to, w.typ(u.Elem()))
		if w.own(u.Elem()) {
			w.line("%s.UnmarshalCBOR(r)", to)
		} else {
			w.read("(*"+to+")", u.Elem())
		}
		w.line("}")
	case *types.Array:
		if isBytes(u.Elem()) {
			w.line("r.Fixed(%s[:])", to)
			return
		}
		i := w.variable("i")
		w.line("if r.Array() != %d {\nr.Fail(abi.ErrArity)\n}", u.Len())
		w.line("for %s := 0; %[1]s < %d && r.OK(); %[1]s++ {", i, u.Len())
		w.read(to+"["+i+"]", u.Elem())
		w.line("}")
	case *types.Slice:
		w.line("if !r.Null() {")
		if isBytes(u.Elem()) {
			w.line("%s = %s", to, w.convertBytes(t))
		} else {
			n, v := w.variable("n"), w.variable("v")
			w.line("%s := r.Array()", n)
			w.line("%s = make(%s, 0, min(%s, %d))", to, w.typ(t), n, firstRoom)
			w.line("for ; %s > 0 && r.OK(); %[1]s-- {", n)
			w.line("var %s %s", v, w.typ(u.Elem()))
			w.read(v, u.Elem())
			w.line("%s = append(%[1]s, %s)\n}", to, v)
		}
		w.line("}")
	case *types.Map:
		n, k, v := w.variable("n"), w.variable("k"), w.variable("v")
		w.line("if !r.Null() {\n%s := r.Map()", n)
		w.line("%s = make(%s, min(%s, %d))", to, w.typ(t), n, firstRoom)
		w.line("for ; %s > 0 && r.OK(); %[1]s-- {", n)
		w.line("%s := %s", k, w.readBasic(u.Key(), u.Key().Underlying().(*types.Basic)))
		w.line("if _, twice := %s[%s]; twice {\nr.Fail(abi.ErrDuplicate)\n}", to, k)
		w.line("var %s %s", v, w.typ(u.Elem()))
		w.read(v, u.Elem())
		w.line("%s[%s] = %s\n}\n}", to, k, v)
	}
}

// convertBytes reads bytes as a type.
func (w *writer) convertBytes(t types.Type) string {
	if _, named := types.Unalias(t).(*types.Named); named {
		return w.typ(t) + "(r.Bytes())"
	}
	return "r.Bytes()"
}

func (w *writer) readBasic(t types.Type, u *types.Basic) string {
	switch info := u.Info(); {
	case info&types.IsBoolean != 0:
		return w.convert(t, types.Bool, "r.Bool()")
	case info&types.IsString != 0:
		return w.convert(t, types.String, "r.Text()")
	case u.Kind() == types.Int64:
		return w.convert(t, types.Int64, "r.Int()")
	case u.Kind() == types.Uint64:
		return w.convert(t, types.Uint64, "r.Uint()")
	case info&types.IsUnsigned != 0:
		return "abi.ReadUint[" + w.typ(t) + "](r)"
	case info&types.IsInteger != 0:
		return "abi.ReadInt[" + w.typ(t) + "](r)"
	case u.Kind() == types.Float32:
		return w.convert(t, types.Float32, "r.Float32()")
	default:
		return w.convert(t, types.Float64, "r.Float()")
	}
}
