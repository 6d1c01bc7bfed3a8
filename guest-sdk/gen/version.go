package main

import (
	"go/token"
	"go/types"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
)

// message is what a struct is as a message: it has a name and a version, and may be the last of a chain of
// versions, each of which turns itself into the next.
type message struct {
	name    string
	version uint16
	answer  string     // Go type of the answer, "" for none
	older   []*message // from version-1 down to 1, or as far as there are any
	typ     *types.TypeName
	at      token.Pos // of the directive
}

// messages finds the types that are messages, by their names and versions.
func (s *source) messages() error {
	s.byName = map[string][]*message{}
	s.byType = map[*types.TypeName]*message{}
	for _, goName := range sortedNames(s.said) {
		x := s.said[goName].message
		if x == nil {
			continue
		}
		obj, ok := s.pkg.Scope().Lookup(goName).(*types.TypeName)
		if !ok {
			continue
		}
		m := &message{name: x.name, version: x.version, answer: x.answer, typ: obj, at: x.at}
		if m.name == "" {
			m.name = goName
		}
		s.byName[m.name] = append(s.byName[m.name], m)
		s.byType[obj] = m
	}
	for _, name := range sortedNames(s.byName) {
		list := s.byName[name]
		slices.SortFunc(list, func(a, b *message) int { return int(b.version) - int(a.version) })
		for i, m := range list {
			if m.answer != "" {
				if _, ok := s.pkg.Scope().Lookup(m.answer).(*types.TypeName); !ok {
					return s.fault(m.at, "the answer of %s is %s, and there is no such type in package %s", m.typ.Name(), m.answer, s.pkg.Name())
				}
			}
			if i+1 == len(list) {
				continue
			}
			old := list[i+1]
			switch {
			case old.version == m.version:
				return s.fault(old.at, "%s and %s, at %s, are both version %d of the message %s: give one another version, or another name",
					old.typ.Name(), m.typ.Name(), s.fset.Position(m.at), m.version, name)
			case old.version != m.version-1:
				return s.fault(m.at, "%s is version %d of the message %s, and the one before is version %d (%s, at %s): version %d is missing",
					m.typ.Name(), m.version, name, old.version, old.typ.Name(), s.fset.Position(old.at), m.version-1)
			case !s.hasUpcast(old, m):
				return s.fault(old.typ.Pos(), "nothing turns version %d of the message %s into version %d: write func (old *%s) Upcast(next *%s)",
					old.version, name, m.version, old.typ.Name(), m.typ.Name())
			}
			m.older = list[i+1:]
		}
	}
	return nil
}

// hasUpcast reports whether a version turns itself into the next.
func (s *source) hasUpcast(old, next *message) bool {
	named, ok := old.typ.Type().(*types.Named)
	if !ok {
		return false
	}
	sel := types.NewMethodSet(types.NewPointer(named)).Lookup(s.pkg, "Upcast")
	if sel == nil {
		return false
	}
	sig := sel.Type().(*types.Signature)
	return sig.Results().Len() == 0 && sig.Params().Len() == 1 &&
		types.Identical(sig.Params().At(0).Type(), types.NewPointer(next.typ.Type()))
}

// identity writes what a message says of itself, and how older versions are read.
func (w *writer) identity(m *message) {
	goName := m.typ.Name()
	w.line("\n// MessageType is the name and the version of the message.")
	w.line("func (*%s) MessageType() string { return %q }", goName, m.header())
	w.line("\n// UnmarshalVersion reads what a writer of that version has written: it makes of it, step by step, what m is now.")
	w.line("func (m *%s) UnmarshalVersion(r *abi.Reader, version uint16) {", goName)
	w.line("switch version {")
	w.line("case %d:\nm.UnmarshalCBOR(r)", m.version)
	for i, old := range m.older {
		w.line("case %d:", old.version)
		w.line("var v%d %s\nv%[1]d.UnmarshalCBOR(r)", old.version, old.typ.Name())
		w.line("if r.OK() {")
		for j := i; j >= 0; j-- { // from old up to the one before m
			from := m.older[j]
			if j == 0 {
				w.line("*m = %s{}\nv%d.Upcast(m)", goName, from.version)
				continue
			}
			w.line("var v%d %s\nv%d.Upcast(&v%[1]d)", m.older[j-1].version, m.older[j-1].typ.Name(), from.version)
		}
		w.line("}")
	}
	w.line("default:\n*m = %s{}\nr.Fail(abi.ErrMessageType)\nr.In(%q)\n}\n}", goName, goName)
	if m.answer != "" {
		w.line("\n// Answer is room for the answer to the message.")
		w.line("func (*%s) Answer() *%s { return new(%[2]s) }", goName, m.answer)
	}
}

func (m *message) header() string { return abi.JoinMessageType(m.name, m.version) }
