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

// A name that others can use is used by something that is not a test, or has its place on a
// page; and it says what it is.
func TestExportsAreUsedAndSaidWhat(t *testing.T) {
	word := regexp.MustCompile(`[A-Za-z_]\w*`)
	used, onPages := map[string]int{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		page := strings.HasSuffix(path, ".md")
		if !page && (!strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go")) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			code, _, _ := strings.Cut(line, "//")
			if page {
				code = line
			}
			for _, w := range word.FindAllString(code, -1) {
				if used[w]++; page {
					onPages[w] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]int{}
	check := func(doc bool, where string, names ...*ast.Ident) {
		for _, n := range names {
			if !n.IsExported() {
				continue
			}
			declared[n.Name]++
			if !doc && n.Name != "Error" {
				t.Errorf("%s %s has no docstring", where, n.Name)
			}
		}
	}
	for _, dir := range []string{"abi", "supervision", "supervision/backoff", "runtime", "host", "host/build", "host/bundle"} {
		files, err := filepath.Glob(root + dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if file.Name.Name == "main" {
				continue
			}
			for _, d := range file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil || exportedType(d.Recv.List[0].Type) {
						check(d.Doc != nil, dir, d.Name)
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						switch s := s.(type) {
						case *ast.TypeSpec:
							check(d.Doc != nil || s.Doc != nil || s.Comment != nil, dir, s.Name)
						case *ast.ValueSpec:
							check(d.Doc != nil || s.Doc != nil || s.Comment != nil, dir, s.Names...)
						}
					}
				}
			}
		}
	}
	if len(declared) < 300 {
		t.Fatalf("only %d exports were found", len(declared))
	}
	for name, times := range declared {
		if used[name] <= times && !onPages[name] {
			t.Errorf("%s is used by nothing and on no page", name)
		}
	}
}

// exportedType reports whether a receiver is of a type that others see.
func exportedType(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.StarExpr:
		return exportedType(x.X)
	case *ast.IndexExpr:
		return exportedType(x.X)
	case *ast.Ident:
		return x.IsExported()
	}
	return false
}
