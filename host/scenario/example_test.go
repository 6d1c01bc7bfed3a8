package scenario_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/scenario"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

func TestHello(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	stage := scenario.NewStage(all.Kinds()...) // between the bundle and its services
	m, err := bundle.LoadWith("../../samples/hello", nil, stage.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := stage.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Compiler: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	files, err := scenario.Find(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := scenario.Load(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Fits(m); err != nil {
			t.Fatal(err)
		}
		for _, s := range f.Scenarios {
			t.Run(s.ID(), func(t *testing.T) {
				if r := stage.Run(t.Context(), b, s, scenario.Options{}); r.Failure != nil {
					t.Errorf("line %d: %s", r.Failure.Line, r.Failure.What)
				}
			})
		}
	}
}

var (
	block  = regexp.MustCompile("(?sm)^```(go|yaml)\n(.*?)^```$")
	linked = regexp.MustCompile(`\]\(\.\./\.\./([\w./-]+\.(?:go|ya?ml))\)`)
)

// Every piece of Go and of a file on the page is a part of the file that is linked before it, as
// it stands there: all of these are run by tests. Every step, key and tag is on the page.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := block.FindAllSubmatchIndex(text, -1)
	for _, at := range blocks {
		code, files := string(text[at[4]:at[5]]), linked.FindAllSubmatch(text[:at[0]], -1)
		if len(files) == 0 {
			t.Fatalf("no file is linked before\n%s", code)
		}
		name := string(files[len(files)-1][1])
		file, err := os.ReadFile("../../" + name)
		if err != nil || !strings.Contains(string(file), code) {
			t.Errorf("%v: this is not in %s:\n%s", err, name, code)
		}
	}
	if len(blocks) < 4 {
		t.Errorf("only %d pieces", len(blocks))
	}
	for _, word := range scenario.Words() {
		if !strings.Contains(string(text), word) {
			t.Errorf("%s is not on the page", word)
		}
	}
}
