package main

import (
	"fmt"
	"go/types"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// field is one entry of a struct's map.
type field struct {
	path      string // Go selector behind the receiver: "ID", "Base.ID"
	name      string // key as text, if it is one
	number    int64  // key as integer, if asInt
	asInt     bool
	omitEmpty bool
	required  bool
	typ       types.Type
	depth     int // of embedding
}

// key describes the key for a person.
func (f *field) key() string {
	if f.asInt {
		return strconv.FormatInt(f.number, 10)
	}
	return f.name
}

// label names the field in errors: as in the message where it has a name there.
func (f *field) label() string {
	if f.asInt {
		return f.path
	}
	return f.name
}

// tag is what a field's tag says.
type tag struct {
	skip, named, asInt, omitEmpty, required bool
	name                                    string
}

// parseTag reads the tag cbor, or the tag json where there is none.
func parseTag(text string) (tag, error) {
	var t tag
	kind := "cbor"
	value, ok := reflect.StructTag(text).Lookup(kind)
	if !ok {
		kind = "json"
		value = reflect.StructTag(text).Get(kind)
	}
	if value == "-" {
		return tag{skip: true}, nil
	}
	parts := strings.Split(value, ",")
	t.name, t.named = parts[0], parts[0] != ""
	for _, option := range parts[1:] {
		switch option {
		case "":
		case "omitempty":
			t.omitEmpty = true
		case "keyasint":
			t.asInt = true
		case "required":
			t.required = true
		default:
			return t, fmt.Errorf("the option %q of the tag %s is not supported: use omitempty, required or keyasint", option, kind)
		}
	}
	if t.asInt && !t.named {
		return t, fmt.Errorf("keyasint needs a number: `cbor:\"1,keyasint\"`")
	}
	if t.omitEmpty && t.required {
		return t, fmt.Errorf("omitempty and required exclude each other")
	}
	return t, nil
}

// fields lists what a struct is made of, in the order of deterministic CBOR. The
// fields of embedded structs are promoted by Go's rules: what is nested less
// deeply hides what has the same key.
func fields(name string, s *types.Struct) ([]field, error) {
	var all []field
	if err := walk(name, "", 0, s, &all); err != nil {
		return nil, err
	}
	best := map[string]field{}
	for _, f := range all {
		id := f.key()
		if f.asInt {
			id = "#" + id
		}
		old, taken := best[id]
		switch {
		case taken && old.depth == f.depth:
			return nil, fmt.Errorf("%s.%s and %s.%s have the same key %s", name, old.path, name, f.path, f.key())
		case !taken || f.depth < old.depth:
			best[id] = f
		}
	}
	list := make([]field, 0, len(best))
	for _, f := range best {
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool { return less(&list[i], &list[j]) })
	return list, nil
}

// less is the order of the keys' encodings: integers before texts, what is
// shorter first.
func less(a, b *field) bool {
	switch {
	case a.asInt != b.asInt:
		return a.asInt
	case !a.asInt:
		return len(a.name) < len(b.name) || len(a.name) == len(b.name) && a.name < b.name
	case a.number < 0 && b.number < 0:
		return a.number > b.number
	case a.number < 0 || b.number < 0:
		return b.number < 0
	}
	return a.number < b.number
}

func walk(name, prefix string, depth int, s *types.Struct, all *[]field) error {
	for i := 0; i < s.NumFields(); i++ {
		v := s.Field(i)
		at := name + "." + prefix + v.Name()
		if isUnknown(v.Type()) {
			if depth > 0 {
				return fmt.Errorf("%s: unknown keys are kept by the struct itself, not by one that is embedded", at)
			}
			continue // see collector.unknown
		}
		t, err := parseTag(s.Tag(i))
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if t.skip {
			continue
		}
		if v.Embedded() && !t.named {
			if inner, ok := v.Type().Underlying().(*types.Struct); ok && !isTime(v.Type()) {
				if err := walk(name, prefix+v.Name()+".", depth+1, inner, all); err != nil {
					return err
				}
				continue
			}
			if p, ok := v.Type().(*types.Pointer); ok {
				return fmt.Errorf("%s: an embedded pointer: embed %s itself, or give the field a name", at, types.TypeString(p.Elem(), nil))
			}
		}
		if !v.Exported() {
			if t.named {
				return fmt.Errorf("%s has a tag and is not exported: begin its name with a capital", at)
			}
			continue
		}
		f := field{path: prefix + v.Name(), name: v.Name(), omitEmpty: t.omitEmpty, required: t.required, typ: v.Type(), depth: depth}
		if t.named {
			f.name = t.name
		}
		if f.asInt = t.asInt; f.asInt {
			if f.number, err = strconv.ParseInt(t.name, 10, 64); err != nil {
				return fmt.Errorf("%s: %q is not an integer", at, t.name)
			}
		}
		*all = append(*all, f)
	}
	return nil
}

func isTime(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == "Time" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "time"
}
