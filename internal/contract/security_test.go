package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile(`\b(Test|Fuzz)[A-Z_0-9]\w*`)

// Every row of docs/security.md that says what holds names a test, and every test that a
// page of guarantees names exists.
func TestPagesNameTestsThatExist(t *testing.T) {
	known := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			if path == root {
				return nil
			}
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				known[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(root + "docs/architecture/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, root+"docs/security.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range testName.FindAllString(string(text), -1) {
			if !known[name] {
				t.Errorf("%s: there is no test %s", page, name)
			}
		}
	}
	text, err := os.ReadFile(root + "docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	held, _, ok := strings.Cut(string(text), "## What is not promised")
	rows := 0
	for _, line := range strings.Split(held, "\n") {
		if !ok || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| with what") {
			continue
		}
		rows++
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !testName.MatchString(cells[2]) {
			t.Errorf("no test proves this: %s", line)
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows", rows)
	}
}
