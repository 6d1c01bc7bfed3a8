package admin

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
)

// object is JSON.
type object = map[string]any

// schemas makes JSON Schemas of Go types, by name: what encoding/json would write, and
// nothing else. Descriptions are the comments in the sources.
type schemas struct {
	t        *testing.T
	comments map[string]string // of "Type" and "Type.Field"
	made     object
	types    map[string]reflect.Type // by name: there is one of each
}

func newSchemas(t *testing.T, dirs ...string) *schemas {
	s := &schemas{t, map[string]string{}, object{}, map[string]reflect.Type{}}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			s.read(file)
		}
	}
	return s
}

// read notes the comments of a file's types.
func (s *schemas) read(file *ast.File) {
	for _, d := range file.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			t := spec.(*ast.TypeSpec)
			s.comments[t.Name.Name] = oneText(gen.Doc, t.Doc)
			fields, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range fields.Fields.List {
				for _, n := range f.Names {
					s.comments[t.Name.Name+"."+n.Name] = oneText(f.Doc, f.Comment)
				}
			}
		}
	}
}

func oneText(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}

// of is the schema of a type, or a reference to it.
func (s *schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{} // any JSON
	case reflect.TypeFor[observe.State]():
		return object{"type": "string", "enum": observe.States()}
	case reflect.TypeFor[observe.Event](), reflect.TypeFor[host.Event]():
		s.made["Event"] = eventSchema()
		return object{"$ref": "#/components/schemas/Event"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		if other := s.types[t.Name()]; other != nil && other != t {
			s.t.Errorf("%s and %s have the same name", t, other)
		}
		s.types[t.Name()] = t
		if _, ok := s.made[t.Name()]; !ok {
			o := object{"type": "object", "additionalProperties": false}
			s.made[t.Name()] = o // before its fields: a tree has itself in it
			if text := s.comments[t.Name()]; text != "" {
				o["description"] = text
			}
			properties, required := object{}, []string{}
			s.fields(t, properties, &required)
			o["properties"] = properties
			if len(required) > 0 {
				o["required"] = required
			}
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	s.t.Fatalf("no schema for %s", t)
	return nil
}

// fields are those of a struct, the ones that are embedded included.
func (s *schemas) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			s.fields(f.Type, properties, required)
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			s.t.Errorf("%s.%s has no JSON name", t, f.Name)
		}
		o := s.of(f.Type)
		if text := s.comments[t.Name()+"."+f.Name]; text != "" {
			o["description"] = text
		}
		properties[name] = o
		if options == "" {
			*required = append(*required, name)
		}
	}
}

// eventSchema is what host.Event writes, with its number.
func eventSchema() object {
	text, number := object{"type": "string"}, object{"type": "integer"}
	list := object{"type": "array", "items": text}
	return object{
		"type": "object", "additionalProperties": false, "required": []string{"time", "event", "number"},
		"description": "Something that has happened to an actor. Which of the other fields are there depends on the event.",
		"properties": object{
			"number": object{"type": "integer", "description": "from 1, of those that were seen"},
			"id":     object{"type": "string", "description": "of a crash report; who was waiting for an answer gets it, too"},
			"time":   object{"type": "string", "format": "date-time"}, "event": object{"type": "string", "enum": observe.EventKinds()},
			"actor": text, "ref": text, "type": text, "incarnation": number,
			"failure": object{"type": "object", "additionalProperties": false, "required": []string{"kind", "turn", "fuel"}, "properties": object{
				"kind": text, "reason": text, "message": text, "stack": list, "guest_stack": text, "turn": number, "fuel": number}},
			"directive": text, "delay_ms": object{"type": "number"}, "failures": number, "note": text, "level": text, "text": text,
			"reason": text, "from": text, "to": text, "bytes": number,
			"message": object{"type": "object", "additionalProperties": false, "required": []string{"kind", "bytes"}, "properties": object{
				"kind": text, "sender": number, "bytes": number, "payload": object{}, "redelivered": number}},
			"memory": number, "waiting": number, "key": text,
			"refused": object{"type": "object", "additionalProperties": false, "required": []string{"what", "reason"}, "properties": object{
				"what": text, "type": text, "name": text, "reason": text}},
		},
	}
}
