package observe

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write schema.json")

// documents are what whoever renders the model puts on the wire.
var documents = []any{
	System{}, Page{}, TreeNode{}, Detail{}, DeadPage{}, CrashPage{}, CrashReport{}, History{}, Latencies{}, Outcome{}, Flow{}, TraceRecord{}, Verb{}, Select{},
}

// describer makes the schema of Go types.
type describer map[string]any

func (d describer) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[RawJSON]():
		return map[string]any{}
	case t == reflect.TypeFor[State]():
		return map[string]any{"type": "string", "enum": States()}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": d.of(t.Elem())}
	case reflect.Map:
		m := map[string]any{"type": "object", "additionalProperties": d.of(t.Elem())}
		if t.Key() == reflect.TypeFor[State]() {
			m["propertyNames"] = d.of(t.Key())
		}
		return m
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.Struct:
		if d[t.Name()] == nil {
			d[t.Name()] = true // it may contain itself
			properties, required := map[string]any{}, []string{}
			d.fields(t, properties, &required)
			d[t.Name()] = map[string]any{"type": "object", "properties": properties, "required": required}
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	}
	panic("no schema of " + t.String())
}

func (d describer) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			d.fields(f.Type, properties, required)
			continue
		}
		properties[name] = d.of(f.Type)
		if !strings.Contains(options, "omitempty") {
			*required = append(*required, name)
		}
	}
}

// The schema is that of the types: a field is not renamed, dropped or changed unseen.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	d := describer{}
	for _, x := range documents {
		d.of(reflect.TypeOf(x))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", " ")
	if err := enc.Encode(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "wasmactors, package host/observe, version 1", "$defs": d,
	}); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(b.Bytes(), Schema()) {
		t.Error("schema.json is not that of the types: run go test ./host/observe -run Schema -update, and look whether Version must change")
	}
}

// fits checks a value's JSON against the schema.
func fits(t testing.TB, x any) {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json#/$defs/" + reflect.TypeOf(x).Name())
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

// What comes out fits the schema, in every state of an actor.
func TestWhatComesOutFitsTheSchema(t *testing.T) {
	for _, c := range situations {
		s := c.make(t)
		fits(t, s.Observer.System())
		p, err := s.Actors(Query{})
		tree, err2 := s.Observer.Tree(TreeQuery{})
		d, err3 := s.Actor(subject)
		dead, err4 := s.Observer.DeadLetters(DeadQuery{})
		out, err5 := s.Do(Verb{Verb: VerbRestart, Select: Select{Paths: []string{"/**"}}, DryRun: true})
		for i, err := range []error{err, err2, err3, err4, err5} {
			if err != nil {
				t.Errorf("%s: %d: %v", c.name, i, err)
			}
		}
		fits(t, p)
		fits(t, tree)
		fits(t, d)
		fits(t, dead)
		fits(t, out)
	}
	// A golden detail: what a dashboard's supervision view is made of.
	s := newStage(t, nil)
	s.below(delaying.WithMaxRestarts(3, time.Hour), faulty())
	s.tell(subject, "fail")
	s.run()
	d, err := s.Actor(subject)
	if err != nil {
		t.Fatal(err)
	}
	d.Ref, d.HeldParts, d.Held, d.Limits = "", Held{}, 0, Limits{}
	got, _ := json.MarshalIndent(d, "", " ")
	golden, err := os.ReadFile("testdata/detail.json")
	if *update {
		err = os.WriteFile("testdata/detail.json", append(got, '\n'), 0o644)
	} else if !bytes.Equal(append(got, '\n'), golden) {
		t.Errorf("%s", got)
	}
	if err != nil {
		t.Error(err)
	}
}
