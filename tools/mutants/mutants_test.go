package main

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// mutated is a function of a package after all mutations, and their kinds.
func mutated(t *testing.T, src string) (string, []string) {
	t.Helper()
	text := []byte("package p\n" + src)
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.Default()}
	if _, err := conf.Check("p", fset, []*ast.File{tree}, info); err != nil {
		t.Fatal(err)
	}
	m := &mutator{p: &pkg{fset: fset, info: info}, f: &file{"p.go", text, tree}, edits: &edits{}, seen: map[string]int{}}
	m.file()
	var kinds []string
	for _, x := range m.all {
		kinds = append(kinds, x.Kind+": "+x.Source)
	}
	out := string(m.edits.apply(text))
	if _, err := parser.ParseFile(fset, "q.go", out, 0); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return out, kinds
}

func TestMutations(t *testing.T) {
	for _, c := range []struct {
		src   string
		kinds []string
		part  string
	}{
		{"func f(a, b int) bool { return a < b }", []string{"negated: a < b", "boundary: a < b"}, "(mutant_(0) != mutantLess_(1, a , b))"},
		{"func f(a, b int) bool { return a == b }", []string{"negated: a == b"}, "(mutant_(0) != (a == b))"},
		{"func f(a, b bool) bool { return a && !b }", []string{"negated: a", "negated: b"}, "(mutant_(0) != a) && !(mutant_(1) != b)"},
		{"func f(a bool) { if a { g() } }; func g() {}", []string{"negated: a", "removed: g()"}, "if (mutant_(0) != a) { if !mutant_(1) { g() } }"},
		{"func f() (n int) { n = 7; return }", []string{"removed: n = 7", "one more: 7", "removed: return"}, "mutantMore_[int](1, 7)"},
		{"func f(n int) int { return n - 1 }", []string{"plus and minus: n - 1", "one more: 1"}, "mutantSub_(0, n , mutantMore_[int](1, 1))"},
		{"func f(n string) string { return n + n }", nil, "return n + n"},
		{"func f(a, b int) (int, int) { return a, b }", []string{"results exchanged: return a, b"}, "return mutantSwap_(0, a, b)"},
		{"func f() bool { return true }", []string{"other constant: true"}, "(mutant_(0) != true)"},
		{"func f() { const c = 3; var x [c]int; _ = x; panic(c) }", nil, "panic(c)"},
		{"func f(n int) { for range n { if n > 2 { continue } } }", []string{"negated: n > 2", "boundary: n > 2", "one more: 2", "removed: continue"}, "if !mutant_(3) { continue }"},
	} {
		out, kinds := mutated(t, c.src)
		if !slices.Equal(kinds, c.kinds) || !strings.Contains(out, c.part) {
			t.Errorf("%s: %q\n%s", c.src, kinds, out)
		}
	}
}

// A mutant that hangs costs the limit of one batch: a batch's own usual time counts, not that of all tests that
// reach the mutant.
func TestBatches(t *testing.T) {
	const id = 7
	of := func(took ...time.Duration) (ts []test) {
		for i, d := range took {
			ts = append(ts, test{string(rune('a' + i)), d, map[int]bool{id: true}})
		}
		return ts
	}
	const floor = 3 * time.Second
	for _, c := range []struct {
		name   string
		tests  []test
		sizes  []int
		limits []time.Duration
	}{
		{"none", nil, nil, nil},
		{"another mutant's", []test{{"a", 1, map[int]bool{1: true}}}, nil, nil},
		{"the floor", of(time.Millisecond), []int{1}, []time.Duration{floor}},
		{"several times the usual", of(time.Second, time.Second), []int{2}, []time.Duration{8 * time.Second}},
		{"growing", of(make([]time.Duration, 21)...), []int{4, 16, 1}, []time.Duration{floor, floor, floor}},
		{"each by itself", of(2*time.Second, 3*time.Second, 4*time.Second, 9*time.Second, 1), []int{2, 1, 1, 1}, []time.Duration{20 * time.Second, 16 * time.Second, 36 * time.Second, floor}},
	} {
		tr := &trial{o: options{timeout: floor}, tests: c.tests}
		var sizes []int
		var limits []time.Duration
		var names string
		for _, b := range tr.batches(id) {
			sizes, limits, names = append(sizes, len(b.names)), append(limits, tr.limit(b)), names+strings.Join(b.names, "")
		}
		if !slices.Equal(sizes, c.sizes) || !slices.Equal(limits, c.limits) || len(sizes) > 0 && names != "abcdefghijklmnopqrstuvwxyz"[:len(c.tests)] {
			t.Errorf("%s: %v tests in %v: %s", c.name, sizes, limits, names)
		}
	}
}

func TestGlobsOfFiles(t *testing.T) {
	var g globs
	if !g.match("a.go") {
		t.Error("without a pattern a file is left out")
	}
	for _, pattern := range []string{"a*.go", "b.go"} {
		if err := g.Set(pattern); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"a.go": true, "ab.go": true, "b.go": true, "bb.go": false} {
		if g.match(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if err := g.Set("["); err == nil {
		t.Error("a pattern that matches nothing was taken")
	}
}

// A module with a weak test: what survives is what it does not look at.
func TestRun(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("it builds and runs a module")
	}
	t.Setenv("GOWORK", "off")
	t.Chdir(filepath.Join("testdata", "weak"))
	accepted := filepath.Join(t.TempDir(), "accepted.txt")
	write := func(text string) {
		if err := os.WriteFile(accepted, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var found bytes.Buffer
	o := options{found: &found, seed: 1, workers: 2, timeout: 3 * time.Second, longest: 10 * time.Second, accepted: accepted, json: filepath.Join(t.TempDir(), "report.json")}
	report := func() (int, string) {
		var out bytes.Buffer
		left, err := run(t.Context(), o, []string{"."}, &out)
		if err != nil {
			t.Fatal(err)
		}
		return left, out.String()
	}
	write("")
	left, text := report()
	for _, want := range []string{"removed: *to = append(*to, text) (survived)", "negated: n == 3 (no test reaches it)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(found.String(), "\n"); n != strings.Count(text, "(survived)") || !strings.Contains(found.String(), "weak.go: Log: removed: *to = append(*to, text) #1 has survived 1 tests") {
		t.Errorf("found at once: %s", found.String())
	}
	if strings.Contains(text, "negated: v < low") || !strings.Contains(text, "by their time") {
		t.Error(text)
	}
	if b, err := os.ReadFile(o.json); err != nil || !bytes.Contains(b, []byte(`"status": "killed"`)) {
		t.Errorf("%s, %v", b, err)
	}
	write("# nobody reads it\nexample.org/weak/weak.go: Log: removed: *to = append(*to, text) #1\nexample.org/weak/weak.go: Gone: removed: x #1\n")
	fewer, text := report()
	if fewer != left-1 || !strings.Contains(text, "there is no such mutant: example.org/weak/weak.go: Gone") {
		t.Errorf("%d, before %d\n%s", fewer, left, text)
	}
	write("example.org/weak/weak.go: Log: removed: x #1\n")
	if _, err := run(t.Context(), o, []string{"."}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "without a reason") {
		t.Error(err)
	}
	write("# nobody reads it\nexample.org/weak/weak.go: Gone: removed: x #1\n")
	o.run, o.files = regexp.MustCompile("Log"), globs{"more.go", "w*.go"}
	if _, text = report(); !strings.Contains(text, "0 killed (0 by their time), 1 survived") || !strings.Contains(text, "there is no such mutant") {
		t.Errorf("one test, which looks at nothing:\n%s", text)
	}
	o.run, o.files = nil, globs{"more.go"}
	if _, text = report(); strings.Contains(text, "weak.go:") || !strings.Contains(text, "2 mutants, 2 killed") {
		t.Errorf("the mutants of one file:\n%s", text)
	}
	o.files = globs{"other.go"}
	if _, err := run(t.Context(), o, []string{"."}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "other.go") {
		t.Error(err)
	}
}
