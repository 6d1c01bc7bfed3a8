package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/runtime"
)

func TestMain(m *testing.M) {
	runtime.CompileMain() // modules compile in processes of their own
	goleak.VerifyTestMain(m)
}

// sample opens a bundle of samples. Under the race detector compiling a guest takes half a minute,
// and what runs at the same time is in the bundle of testdata.
func sample(t testing.TB, name string) (*Stage, *bundle.Bundle) {
	t.Helper()
	if testing.Short() || race.Enabled {
		t.Skip("compiles a guest")
	}
	return opened(t, filepath.Join("../../samples", name))
}

// opened are a bundle and its stage; they end with the test.
func opened(t testing.TB, path string) (*Stage, *bundle.Bundle) {
	t.Helper()
	return openedWith(t, path, nil)
}

// openedWith is opened with variables of the manifest.
func openedWith(t testing.TB, path string, vars bundle.Variables) (*Stage, *bundle.Bundle) {
	t.Helper()
	st := NewStage(all.Kinds()...)
	m, err := bundle.LoadWith(path, vars, st.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := st.Open(t.Context(), m, bundle.Options{
		CacheDir: servicetest.CacheDir(), Compiler: guesttest.Compiler(), Services: st.Kinds(), Allow: func([]bundle.Reach) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return st, b
}

var samples = []string{"hello", "flaky", "ledger", "ledger/cluster.yaml", "chat", "crawler", "webhooks"}

// The scenarios of the samples hold.
func TestSamples(t *testing.T) {
	for _, name := range samples {
		t.Run(name, func(t *testing.T) {
			st, b := sample(t, name)
			files, err := Find(b.Manifest)
			if err != nil || len(files) == 0 {
				t.Fatalf("%v, %v", files, err)
			}
			for _, path := range files {
				f, err := Load(t.Context(), path)
				if err == nil {
					err = f.Fits(b.Manifest)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range f.Scenarios {
					holds(t, st.Run(t.Context(), b, s, Options{}))
				}
			}
		})
	}
}

func holds(t testing.TB, r Result) {
	t.Helper()
	if f := r.Failure; f != nil {
		t.Errorf("%s:%d:%d: %s: %s: %s\nwant %s\ngot %s\nhint %s\n%s", f.File, f.Line, f.Column, r.Scenario.Name, f.Verb, f.What, f.Want, f.Got, f.Hint, strings.Join(f.Before, "\n"))
	}
	t.Logf("%s: %s in %v, %v passed", r.Scenario.ID(), r.Outcome, r.Took, r.Passed)
}

// Files are valid to the schema where the loader takes them, and not where a key is wrong.
func TestSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err == nil {
		err = c.AddResource("scenario.json", doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(doc)
	}
	files, err := filepath.Glob("../../samples/*/*_test.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err == nil {
			err = valid(string(text))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, k := range keys {
		if !strings.Contains(k.good, "steps:") && k.good != "" {
			if err := valid("scenarios:\n- name: a\n  steps:\n  " + strings.ReplaceAll(k.good, "\n", "\n  ")); err != nil {
				t.Errorf("%s: %v", k.key, err)
			}
		}
	}
	for _, bad := range []string{"{}", "scenarios: 5", "scenarios: [{name: a}]", "scenarios: [{name: a, steps: [{send: a}]}]", "scenarios: [{name: a, steps: [{advance: 1s, to: a}]}]",
		"scenarios: [{name: a, steps: [{expect-event: x}]}]", "scenarios: [{name: a, steps: [{advance: soon}]}]", "scenarios: [{name: a, x: 1, steps: [{advance: 1s}]}]"} {
		if valid(bad) == nil {
			t.Errorf("%s is valid", bad)
		}
	}
}

// The published schema is that of the table.
func TestSchemaIsPublished(t *testing.T) {
	got, err := os.ReadFile("../../docs/scenario.schema.json")
	if err != nil || string(got) != string(Schema()) {
		t.Errorf("docs/scenario.schema.json is not what go generate ./host/scenario makes: %v", err)
	}
}
