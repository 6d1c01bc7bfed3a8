package main

import (
	"fmt"
	"go/types"
	"strings"
)

// quickKind is what of abi's quick functions reads and writes a field.
type quickKind string

const (
	quickNone  quickKind = ""
	quickUint  quickKind = "Uint"
	quickInt   quickKind = "Int"
	quickBool  quickKind = "Bool"
	quickFloat quickKind = "Float"
	quickText  quickKind = "Text"
	quickBytes quickKind = "Bytes"
	quickTexts quickKind = "Texts"
)

// quick is how a field is read and written the quick way, if it is one of the usual types and its key is
// short.
func (f *field) quick() quickKind {
	if len(f.encoding()) > 7 {
		return quickNone
	}
	return f.usual()
}

// usual is that for keys of any length.
func (f *field) usual() quickKind {
	if isTime(f.typ) {
		return quickNone
	}
	if named, ok := types.Unalias(f.typ).(*types.Named); ok {
		if own, _ := codec(named); own {
			return quickNone
		}
	}
	switch u := f.typ.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsBoolean != 0:
			return quickBool
		case info&types.IsString != 0:
			return quickText
		case info&types.IsUnsigned != 0:
			return quickUint
		case info&types.IsInteger != 0:
			return quickInt
		case u.Kind() == types.Float64:
			return quickFloat
		}
	case *types.Slice:
		if isBytes(u.Elem()) {
			return quickBytes
		}
		if b, ok := types.Unalias(u.Elem()).(*types.Basic); ok && b.Kind() == types.String {
			return quickTexts
		}
	}
	return quickNone
}

// plainType is the type that abi's quick functions have for a kind.
func (k quickKind) plainType() types.BasicKind {
	switch k {
	case quickUint:
		return types.Uint64
	case quickInt:
		return types.Int64
	case quickBool:
		return types.Bool
	case quickFloat:
		return types.Float64
	case quickText:
		return types.String
	}
	return types.Invalid
}

// run is how many fields from i on are written the quick way, in one go.
func (s *structType) run(i int) (n int) {
	if s.unknown == unknownKeep { // others may come in between
		return 0
	}
	for ; i < len(s.fields) && !s.fields[i].omitEmpty && s.fields[i].quick() != quickNone; i++ {
		n++
	}
	return n
}

// writeRun writes the statements that append some fields, of which the first has a head before its key.
func (w *writer) writeRun(fields []field, head []byte) {
	fixed, room := 8, ""
	for i := range fields {
		f := &fields[i]
		fixed += len(f.encoding()) + 9
		switch f.quick() {
		case quickText, quickBytes:
			room += fmt.Sprintf(" + len(m.%s)", f.path)
		case quickTexts:
			room += fmt.Sprintf(" + abi.RoomTexts(m.%s)", f.path)
		}
	}
	w.line("{\np, at := w.Room(%d%s)", fixed+len(head), room)
	for i := range fields {
		f := &fields[i]
		key := append(head, f.encoding()...)
		head = nil
		value := "m." + f.path
		if kind := f.quick().plainType(); kind != types.Invalid {
			value = plain(f.typ, kind, value)
		}
		w.line("abi.QuickPut(p, at, %#x) // %q", word(key), f.key())
		w.line("at = abi.Put%s(p, at+%d, %s)", f.quick(), len(key), value)
	}
	w.line("w.Wrote(at)\n}")
}

// inOrder writes the method that reads the first fields, if they come first and in order, and returns how many fields it
// knows how to read; 0 if there is no such method.
func (w *writer) inOrder(s *structType) (n int) {
	if s.unknown == unknownKeep || len(s.fields) > 64 {
		return 0
	}
	required, seen := 0, uint64(0) // that are certain to come
	for n < len(s.fields) && s.fields[n].quick() != quickNone {
		if !s.fields[n].omitEmpty {
			required++
			seen |= 1 << n
		}
		n++
	}
	if n == 0 {
		return 0
	}
	w.line("\n// inOrderCBOR reads the first of n entries if they are as MarshalCBOR writes them. It returns how many it has")
	w.line("// read, the index of the next key, and a bit for each key; zeros if something else comes.")
	w.line("func (m *%s) inOrderCBOR(r *abi.Reader, n int) (read, next int, seen uint64) {", s.name)
	w.line("p, at, end := r.Quick()")
	w.line("if p == nil || n < %d {\nreturn 0, 0, 0\n}", required)
	w.line("read, seen = %d, %#x", required, seen)
	for i := 0; i < n; i++ {
		f := &s.fields[i]
		key := f.encoding()
		shift := 64 - 8*len(key)
		if f.omitEmpty {
			w.line("if at+%d < end && abi.QuickWord(p, at)<<%d == %#x { // %q", len(key), shift, word(key)<<shift, f.key())
			w.line("read++\nseen |= %#x", uint64(1)<<i)
		} else {
			w.line("if at+%d >= end || abi.QuickWord(p, at)<<%d != %#x { // %q\nreturn 0, 0, 0\n}", len(key), shift, word(key)<<shift, f.key())
		}
		w.readQuick(f, len(key))
		if f.omitEmpty {
			w.line("}")
		}
	}
	w.line("if at > end || read > n {\nreturn 0, 0, 0\n}")
	w.line("r.Went(at)\nreturn read, %d, seen\n}", n)
	return n
}

// readQuick writes the statements that read a field whose key has some bytes.
func (w *writer) readQuick(f *field, key int) {
	kind, v, next := f.quick(), w.variable("v"), w.variable("at")
	switch kind {
	case quickText, quickBytes, quickTexts:
		w.line("%s, %s := r.Quick%s(p, at+%d, end)", v, next, kind, key)
	case quickUint, quickInt:
		w.line("%s, %s := %s(abi.QuickByte(p, at+%d)), at+%d", v, next, types.Typ[kind.plainType()].Name(), key, key+1)
		w.line("if %s >= 24 {\n%s, %s = abi.Quick%s(p, at+%d)\n}", v, v, next, kind, key)
	default:
		w.line("%s, %s := abi.Quick%s(p, at+%d)", v, next, kind, key)
	}
	value := v
	if plain := kind.plainType(); plain == types.Invalid {
		if _, named := types.Unalias(f.typ).(*types.Named); named {
			value = w.typ(f.typ) + "(" + v + ")"
		}
	} else {
		value = w.convert(f.typ, plain, v)
	}
	fails := next + " == 0"
	if b, ok := f.typ.Underlying().(*types.Basic); ok && (kind == quickUint && b.Kind() != types.Uint64 || kind == quickInt && b.Kind() != types.Int64) {
		fails += fmt.Sprintf(" || %s(%s) != %s", types.Typ[kind.plainType()].Name(), value, v)
	}
	w.line("if %s {\nreturn 0, 0, 0\n}", fails)
	w.line("m.%s, at = %s, %s", f.path, value, next)
}

// filled reports whether the first n fields, all of which come, are all that the struct has.
func (s *structType) filled(n int) bool {
	if n != len(s.fields) || n != s.all {
		return false
	}
	for i := range s.fields {
		if f := &s.fields[i]; f.omitEmpty || strings.Contains(f.path, ".") {
			return false
		}
	}
	return true
}

// placed reports whether a struct has a table for abi.ReadStruct and abi.WriteStruct: all its fields are of the usual
// types, and all are always written.
func (s *structType) placed() bool {
	if s.unknown == unknownKeep || len(s.fields) == 0 || len(s.fields) >= 24 || !s.filled(len(s.fields)) {
		return false
	}
	for i := range s.fields {
		if s.fields[i].usual() == quickNone {
			return false
		}
	}
	return true
}

// declarePlaces writes that table.
func (w *writer) declarePlaces(s *structType) {
	if !s.placed() {
		return
	}
	unsafe := w.use("unsafe", "unsafe")
	w.line("\nvar %s = [...]abi.Place{", w.table("placesOf_", s))
	head := []byte{0xa0 | byte(len(s.fields))} // goes along with the first key
	for i := range s.fields {
		f := &s.fields[i]
		key := append(head, f.encoding()...)
		head = nil
		for ; len(key) > 8; key = key[8:] {
			w.line("{Key: %#x, Len: 8, Kind: abi.PlaceKey},", word(key))
		}
		field := s.name + "{}." + f.path
		bits := ""
		if kind := f.usual(); kind == quickUint || kind == quickInt {
			bits = fmt.Sprintf(", Bits: uint8(8 * %s.Sizeof(%s))", unsafe, field)
		}
		w.line("{Key: %#x, Len: %d, Shift: %d, Kind: abi.Place%s, Offset: uint32(%s.Offsetof(%s))%s}, // %q",
			word(key), len(key), 64-8*len(key), f.usual(), unsafe, field, bits, f.key())
	}
	w.line("{},\n}")
}

// readPlaces writes the statements that read a struct by its table. What they leave is read entry by entry.
func (w *writer) readPlaces(s *structType) {
	unsafe, table := w.use("unsafe", "unsafe"), w.table("placesOf_", s)
	w.line("how := abi.ReadStruct(r, %s.Pointer(m), &%s[0])", unsafe, table)
	w.line("if how > abi.ReadAll {\nhow = r.ReadStructAgain(%s.Pointer(m), &%s[0], how)\n}", unsafe, table)
	w.line("if how == abi.ReadAll {\nreturn\n}")
}
