package main

import (
	"errors"
	"fmt"
	"go/types"
)

const abiPath = "github.com/wasmactors/wasmactors/abi"

// structType is a struct that methods are written for.
type structType struct {
	name      string
	fields    []field
	all       int  // fields of Go, those that are not written included
	recursive bool // it can contain itself
	unknown   unknownKeys
	rest      string // selector of the field that keeps unknown keys
	message   *message
}

// collect finds the named types and the structs of the package that they contain.
func (s *source) collect(names []string) ([]structType, []protocol, error) {
	c := &collector{source: s, wanted: map[*types.TypeName]bool{}, uses: map[*types.TypeName][]*types.TypeName{}}
	var protocols []protocol
	for _, name := range names {
		obj, ok := s.pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			return nil, nil, fmt.Errorf("there is no type %s in package %s", name, s.pkg.Name())
		}
		if i, ok := obj.Type().Underlying().(*types.Interface); ok && s.said[name].protocol != nil {
			p, err := c.protocol(obj, i)
			if err != nil {
				return nil, nil, err
			}
			protocols = append(protocols, p)
			continue
		}
		if err := c.want(obj); err != nil {
			return nil, nil, err
		}
	}
	var list []structType
	for i := 0; i < len(c.queue); i++ { // grows
		obj := c.queue[i]
		st, err := c.structOf(obj)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, st)
	}
	for i := range list {
		list[i].recursive = c.reaches(c.queue[i], c.queue[i], map[*types.TypeName]bool{})
	}
	return list, protocols, nil
}

type collector struct {
	*source
	queue  []*types.TypeName
	wanted map[*types.TypeName]bool
	uses   map[*types.TypeName][]*types.TypeName
}

// want puts a type on the list of those that get methods.
func (c *collector) want(obj *types.TypeName) error {
	if c.wanted[obj] {
		return nil
	}
	named, ok := obj.Type().(*types.Named)
	if !ok || obj.IsAlias() {
		return fmt.Errorf("%s is not a type of its own", obj.Name())
	}
	if named.TypeParams().Len() > 0 {
		return fmt.Errorf("%s has type parameters, which is not supported", obj.Name())
	}
	if _, ok := named.Underlying().(*types.Struct); !ok {
		return fmt.Errorf("%s is not a struct", obj.Name())
	}
	for i := 0; i < named.NumMethods(); i++ {
		if m := named.Method(i); m.Name() == "MarshalCBOR" || m.Name() == "UnmarshalCBOR" {
			return fmt.Errorf("%s has a method %s already, at %s", obj.Name(), m.Name(), c.fset.Position(m.Pos()))
		}
	}
	c.wanted[obj] = true
	c.queue = append(c.queue, obj)
	return nil
}

func (c *collector) structOf(obj *types.TypeName) (structType, error) {
	st := structType{name: obj.Name(), message: c.byType[obj]}
	var err error
	if err = c.unknown(obj, &st); err != nil {
		return st, err
	}
	if m := st.message; m != nil {
		for _, old := range m.older {
			if err := c.along(old.typ); err != nil {
				return st, err
			}
		}
		if m.answer != "" {
			if err := c.along(c.pkg.Scope().Lookup(m.answer).(*types.TypeName)); err != nil {
				return st, err
			}
		}
	}
	st.fields, err = fields(st.name, obj.Type().Underlying().(*types.Struct))
	if err != nil {
		return st, err
	}
	st.all = obj.Type().Underlying().(*types.Struct).NumFields()
	for i := range st.fields {
		f := &st.fields[i]
		if err := c.check(obj, f.typ, nil); err != nil {
			return st, fmt.Errorf("%s.%s: %w", st.name, f.path, err)
		}
		if _, ok := f.typ.Underlying().(*types.Struct); ok && f.omitEmpty && !isTime(f.typ) {
			return st, fmt.Errorf("%s.%s: a struct is never empty: use a pointer, or leave omitempty out", st.name, f.path)
		}
	}
	return st, nil
}

// along wants a struct that has no methods yet.
func (c *collector) along(obj *types.TypeName) error {
	if named, ok := obj.Type().(*types.Named); ok {
		if has, err := codec(named); has || err != nil {
			return err
		}
	}
	return c.want(obj)
}

// unknown finds out what is done with unknown keys.
func (c *collector) unknown(obj *types.TypeName, st *structType) error {
	x := c.said[st.name]
	s := obj.Type().Underlying().(*types.Struct)
	for i := 0; i < s.NumFields(); i++ {
		f := s.Field(i)
		if !isUnknown(f.Type()) {
			continue
		}
		switch {
		case st.rest != "":
			return c.fault(f.Pos(), "%s keeps unknown keys twice, also in %s: one field is enough", st.name, st.rest)
		case x.unknown == unknownSkip || x.unknown == unknownRefuse:
			return c.fault(f.Pos(), "%s.%s keeps unknown keys, and the directive at %s says otherwise: leave one out", st.name, f.Name(), c.fset.Position(x.at))
		}
		st.rest = f.Name()
	}
	switch st.unknown = x.unknown; {
	case st.rest != "":
		st.unknown = unknownKeep
	case x.unknown == unknownKeep:
		return c.fault(x.at, "%s has no place for unknown keys: add a field of the type actor.Unknown", st.name)
	}
	return nil
}

func isUnknown(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "Unknown" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == abiPath
}

// check says why t cannot be written, and puts the structs within on the list.
// Within are the named types that t is the inside of.
func (c *collector) check(of *types.TypeName, t types.Type, within []*types.Named) error {
	if isTime(t) {
		return nil
	}
	named, _ := types.Unalias(t).(*types.Named)
	if named != nil {
		both, err := codec(named)
		if both || err != nil {
			return err
		}
		for _, w := range within {
			if w == named {
				return fmt.Errorf("%s contains itself: put a struct in between", name(t))
			}
		}
		within = append(within, named)
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Kind() == types.Invalid:
			return errors.New("the type is not known: is an import missing, or a name misspelt?")
		case u.Info()&(types.IsBoolean|types.IsInteger|types.IsString) != 0, u.Kind() == types.Float32, u.Kind() == types.Float64:
			return nil
		}
	case *types.Slice:
		return c.checkElem(of, u.Elem(), within)
	case *types.Array:
		return c.checkElem(of, u.Elem(), within)
	case *types.Pointer:
		if _, ok := u.Elem().Underlying().(*types.Pointer); ok {
			return fmt.Errorf("%s is a pointer to a pointer", name(t))
		}
		return c.check(of, u.Elem(), within)
	case *types.Map:
		key, ok := u.Key().Underlying().(*types.Basic)
		if !ok || key.Info()&(types.IsInteger|types.IsString) == 0 {
			return fmt.Errorf("the keys of a map must be texts or integers, not %s", name(u.Key()))
		}
		return c.check(of, u.Elem(), within)
	case *types.Struct:
		switch {
		case named == nil:
			return errors.New("a struct without a name: give it one")
		case named.Obj().Pkg() != c.pkg:
			return fmt.Errorf("%s belongs to another package and lacks MarshalCBOR and UnmarshalCBOR: generate them there", name(t))
		}
		c.uses[of] = append(c.uses[of], named.Obj())
		return c.want(named.Obj())
	case *types.Interface:
		return fmt.Errorf("%s is an interface: use actor.Raw for any CBOR", name(t))
	}
	return fmt.Errorf("%s cannot be written as CBOR", name(t))
}

// checkElem refuses elements that codecs with reflection would take for bytes.
func (c *collector) checkElem(of *types.TypeName, t types.Type, within []*types.Named) error {
	if b, ok := t.Underlying().(*types.Basic); ok && b.Kind() == types.Uint8 && !isBytes(t) {
		if own, _ := codec(types.Unalias(t).(*types.Named)); !own {
			return fmt.Errorf("a list of %s: bytes to some and numbers to others; use byte or a wider type", name(t))
		}
	}
	return c.check(of, t, within)
}

// reaches reports whether a struct contains target.
func (c *collector) reaches(from, target *types.TypeName, seen map[*types.TypeName]bool) bool {
	for _, next := range c.uses[from] {
		if next == target {
			return true
		}
		if !seen[next] {
			seen[next] = true
			if c.reaches(next, target, seen) {
				return true
			}
		}
	}
	return false
}

// codec reports whether a type writes and reads itself; one without the other is
// an error.
func codec(named *types.Named) (bool, error) {
	if _, ok := named.Underlying().(*types.Interface); ok {
		return false, nil
	}
	set := types.NewMethodSet(types.NewPointer(named))
	has := func(method, param string) bool {
		sel := set.Lookup(nil, method)
		if sel == nil {
			return false
		}
		sig := sel.Type().(*types.Signature)
		return sig.Results().Len() == 0 && sig.Params().Len() == 1 && sig.Params().At(0).Type().String() == "*"+abiPath+"."+param
	}
	writes, reads := has("MarshalCBOR", "Writer"), has("UnmarshalCBOR", "Reader")
	switch {
	case writes && !reads:
		return false, fmt.Errorf("%s has MarshalCBOR, but lacks UnmarshalCBOR(*abi.Reader)", name(named))
	case reads && !writes:
		return false, fmt.Errorf("%s has UnmarshalCBOR, but lacks MarshalCBOR(*abi.Writer)", name(named))
	}
	return writes, nil
}

// name is a type as an author writes it.
func name(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return p.Name() })
}
