package service

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Size is a number of bytes, in manifests with a unit: 64MiB.
type Size int64

// Shape describes a value of a manifest: its parser, its JSON Schema and its docs are made from it. [ShapeOf] makes it from a struct.
type Shape = grammar.Shape

// The kinds of values that a [Shape] of a service describes.
const (
	ShapeText     = grammar.Text
	ShapeBool     = grammar.Bool
	ShapeInt      = grammar.Int
	ShapeNumber   = grammar.Number
	ShapeSize     = grammar.Size
	ShapeDuration = grammar.Duration
	ShapeList     = grammar.List
	ShapeMapping  = grammar.Mapping
	ShapeObject   = grammar.Object
)

// mostNumber is the largest number that a field without max takes: those up to it every JSON reader has exactly.
const mostNumber = 1 << 53

// ShapeOf reads the tags of a struct's exported fields:
//
//	Hosts []string `manifest:"hosts,required" doc:"patterns of hosts" pattern:"^[a-z.*]+$" what:"a host"`
//
// manifest is the key, "-" for none; doc is needed. enum (texts with commas), pattern with what
// (for people), min and max are about texts and numbers, also those within lists and mappings;
// key is the pattern of a mapping's keys. reach says what a text names outside of the bundle, see [Reach],
// and keyreach what the keys of a mapping name; both are needed. Types are string, bool, ints, floats, time.Duration,
// [Size], and slices, maps from string and structs of these. It panics about anything else: that
// is a mistake in a program.
func ShapeOf(t reflect.Type) *Shape {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("service: %v is not a struct", t))
	}
	s := &Shape{Kind: ShapeObject}
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("manifest"), ",")
		if name == "-" {
			continue
		}
		if !f.IsExported() || name == "" || f.Tag.Get("doc") == "" {
			panic(fmt.Sprintf("service: %v.%s needs the tags manifest and doc", t, f.Name))
		}
		of := shapeOf(f.Type, f.Tag)
		of.Doc = f.Tag.Get("doc")
		s.Fields = append(s.Fields, grammar.Field{Name: name, Required: rest == "required", Shape: of, Index: i})
	}
	return s
}

func shapeOf(t reflect.Type, tag reflect.StructTag) *Shape {
	s := &Shape{Doc: tag.Get("doc")}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		s.Kind = ShapeDuration
		return s
	case t == reflect.TypeFor[Size]():
		s.Kind = ShapeSize
		bounds(s, tag, 1, 0)
		s.Min = max(s.Min, 1)
		return s
	}
	switch t.Kind() {
	case reflect.String:
		s.Kind, s.What, s.Reach = ShapeText, tag.Get("what"), Reach(tag.Get("reach"))
		s.Match = ruleOf(tag.Get("pattern"))
		if e := tag.Get("enum"); e != "" {
			s.Enum = strings.Split(e, ",")
		}
	case reflect.Bool:
		s.Kind = ShapeBool
	case reflect.Int, reflect.Int64, reflect.Int32:
		s.Kind = ShapeInt
		bounds(s, tag, 0, mostNumber)
	case reflect.Float64:
		s.Kind = ShapeNumber
		bounds(s, tag, 0, mostNumber)
	case reflect.Slice:
		s.Kind, s.Of = ShapeList, shapeOf(t.Elem(), tag)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(fmt.Sprintf("service: the keys of %v are no texts", t))
		}
		s.Kind, s.Of = ShapeMapping, shapeOf(t.Elem(), tag)
		s.Key, s.What, s.KeyReach = ruleOf(tag.Get("key")), cmp.Or(tag.Get("what"), "a name"), Reach(tag.Get("keyreach"))
	case reflect.Struct:
		object := ShapeOf(t)
		object.Doc = s.Doc
		return object
	default:
		panic(fmt.Sprintf("service: a manifest cannot have a %v", t))
	}
	return s
}

// ruleOf is the rule of a pattern; nil: there is none.
func ruleOf(pattern string) *grammar.Rule {
	if pattern == "" {
		return nil
	}
	return grammar.NewRule(pattern)
}

// bounds reads the tags min and max, which have defaults.
func bounds(s *Shape, tag reflect.StructTag, least, most float64) {
	s.Min, s.Max = least, most
	for _, x := range []struct {
		key string
		to  *float64
	}{{"min", &s.Min}, {"max", &s.Max}} {
		text := tag.Get(x.key)
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(fmt.Sprintf("service: %s:%q is not a number", x.key, text))
		}
		*x.to = v
	}
}

// FieldError is an error in one field of settings or of a grant.
type FieldError struct {
	Key string // the path of keys: databases.main.file, hosts[2]
	Err error
}

func (e *FieldError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap is the error in the field.
func (e *FieldError) Unwrap() error { return e.Err }

// At says where an error is, for CheckGrant and CheckSettings: key is the path of keys from
// the grant or the settings on, such as databases.main.file or hosts[2].
func At(key string, err error) error { return &FieldError{key, err} }
