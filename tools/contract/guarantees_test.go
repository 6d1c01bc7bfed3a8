package contract

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var testName = regexp.MustCompile(`(?:\b([a-z]\w*)\.)?\b((?:Test|Fuzz)[A-Z_0-9]\w*)`)

// testFunctions are the packages that have a test, named by their folders, by its name.
func testFunctions(t *testing.T) map[string][]string {
	known := map[string][]string{}
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
		folder := filepath.Base(filepath.Dir(path))
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && testName.MatchString(f.Name.Name) && !slices.Contains(known[f.Name.Name], folder) {
				known[f.Name.Name] = append(known[f.Name.Name], folder)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// pagesOfGuarantees are the pages whose tables say what holds.
func pagesOfGuarantees(t *testing.T) []string {
	pages, err := filepath.Glob(root + "docs/architecture/*.md")
	if err != nil || len(pages) < 6 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	return append(pages, root+"docs/security.md")
}

// A page names tests that exist; a name that several packages use says which it means.
func TestPagesNameTestsThatExist(t *testing.T) {
	known := testFunctions(t)
	for _, page := range pagesOfGuarantees(t) {
		for i, line := range lines(t, page) {
			for _, name := range testName.FindAllStringSubmatch(line, -1) {
				folder, test := name[1], name[2]
				switch folders := known[test]; {
				case len(folders) == 0 || folder != "" && !slices.Contains(folders, folder):
					t.Errorf("%s:%d: there is no test %s", page, i+1, name[0])
				case folder == "" && len(folders) > 1:
					t.Errorf("%s:%d: %s is a test of %v; write which, as in %s.%s", page, i+1, test, folders, folders[0], test)
				}
			}
		}
	}
}

// withoutTests are the headers of tables that guarantee nothing, and why.
var withoutTests = map[string]string{
	"constant | value | why": "constants",
	"what | where | why":     "which process does what",
	"hazard | what is done":  "what is not guaranteed",
	"alternative | measured": "what was not built",
	"attack | resident | peak, with garbage | accounts | stop | answer": "figures",
}

// Every row of a table that says what holds names a test. A table is one, unless its header
// is known to be another's, or begins without a word and has no column of guarantees, as
// those of figures do.
func TestEveryGuaranteeNamesItsTest(t *testing.T) {
	rows := 0
	for _, page := range pagesOfGuarantees(t) {
		all := lines(t, page)
		for i := 0; i < len(all); i++ {
			if strings.HasPrefix(all[i], "## What is not promised") {
				break
			}
			if !strings.HasPrefix(all[i], "|") {
				continue
			}
			head, first := cells(all[i]), i+1
			column := slices.Index(head, "test")
			_, other := withoutTests[strings.Join(head, " | ")]
			figures := (head[0] == "" || head[0] == "program" || head[0] == "look") && !slices.Contains(head, "guarantee")
			if column < 0 && !other && !figures {
				t.Errorf("%s:%d: a table without a column of tests", page, first)
			}
			for i += 2; i < len(all) && strings.HasPrefix(all[i], "|"); i++ {
				row := cells(all[i])
				if len(row) != len(head) {
					t.Errorf("%s:%d: %d columns, the header has %d", page, i+1, len(row), len(head))
				} else if column >= 0 {
					if rows++; !testName.MatchString(row[column]) {
						t.Errorf("%s:%d: no test proves this", page, i+1)
					}
				}
			}
		}
	}
	if rows < 180 {
		t.Errorf("only %d rows", rows)
	}
}

// lines are those of a file.
func lines(t *testing.T, name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// cells are those of a table's row.
func cells(row string) []string {
	all := strings.Split(strings.Trim(row, "|"), "|")
	for i, c := range all {
		all[i] = strings.TrimSpace(c)
	}
	return all
}
