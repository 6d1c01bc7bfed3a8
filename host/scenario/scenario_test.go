package scenario

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
)

func TestMain(m *testing.M) {
	runtime.CompileMain() // modules compile in processes of their own
	goleak.VerifyTestMain(m)
}

// opened are a bundle and its stage; they end with the test.
func opened(t testing.TB, path string) (*Stage, *bundle.Bundle) {
	t.Helper()
	st := NewStage(all.Kinds()...)
	m, err := bundle.LoadWith(path, nil, st.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := st.Open(t.Context(), m, bundle.Options{
		CacheDir: servicetest.CacheDir(), Compiler: "go", Services: st.Kinds(), Allow: func([]bundle.Reach) error { return nil },
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

// The scenarios of the samples hold.
func TestSamples(t *testing.T) {
	for _, name := range []string{"hello", "flaky", "ledger"} {
		t.Run(name, func(t *testing.T) {
			st, b := opened(t, filepath.Join("../../samples", name))
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

// The published schema is that of the table.
func TestSchemaIsPublished(t *testing.T) {
	got, err := os.ReadFile("../../docs/scenario.schema.json")
	if err != nil || string(got) != string(Schema()) {
		t.Errorf("docs/scenario.schema.json is not what go generate ./host/scenario makes: %v", err)
	}
}
