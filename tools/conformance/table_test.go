package conformance

import (
	"fmt"
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

const root = "../.."

// rows are the ids that the page must have, each once.
func rows() (ids []string) {
	series := func(format string, from, to int) {
		for i := from; i <= to; i++ {
			ids = append(ids, fmt.Sprintf(format, i))
		}
	}
	series("A%02d", 1, 37)
	series("B%02d", 1, 46)
	series("C%02d", 1, 6)
	series("D%02d", 1, 16)
	series("E%02d", 1, 23)
	series("F%02d", 1, 26)
	series("G%02d", 1, 12)
	series("H%02d", 1, 22)
	series("H%02d", 24, 35)
	series("I%02d", 1, 18)
	series("J%02d", 1, 6)
	series("K%02d", 1, 23)
	series("L%02d", 1, 36)
	series("N%02d", 2, 16)
	ids = append(ids, "N18", "N20")
	series("M%02d", 1, 7)
	series("O%02d", 1, 4)
	series("O%02d", 8, 12)
	series("1.%d", 1, 5)
	series("3.%d", 1, 8)
	return ids
}

var (
	id          = regexp.MustCompile(`^([A-O]\d\d|\d\.\d)?$`)
	test        = regexp.MustCompile(`\bTest\w+`)
	conformance = regexp.MustCompile(`^Test([A-O]\d\d|C_\d)`)
	exempt      = regexp.MustCompile(`\bnot applicable: \S.{10,}`)
)

// row is one of the page; a row without an id goes on with the one before.
type row struct {
	line      int
	id, proof string
}

func page(t *testing.T) (table []row) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || cells[0] != "" {
			continue
		}
		first := strings.TrimSpace(cells[1])
		if first == "row" || strings.HasPrefix(first, "---") {
			continue
		}
		if len(cells) != 5 || !id.MatchString(first) {
			t.Errorf("line %d is not | row | what | proof |: %s", i+1, line)
			continue
		}
		table = append(table, row{i + 1, first, cells[3]})
	}
	return table
}

// tests are all test functions of the project, by name.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
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
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				found[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEveryRowIsThereOnce(t *testing.T) {
	want := rows()
	count := map[string]int{}
	for _, r := range page(t) {
		if r.id == "" {
			continue
		}
		if count[r.id]++; count[r.id] > 1 {
			t.Errorf("line %d: the row %s is there already", r.line, r.id)
		}
		if !slices.Contains(want, r.id) {
			t.Errorf("line %d: there is no row %s", r.line, r.id)
		}
	}
	for _, id := range want {
		if count[id] == 0 {
			t.Errorf("the row %s is missing", id)
		}
	}
}

func TestEveryRowIsProvedOrExempt(t *testing.T) {
	known := tests(t)
	for _, r := range page(t) {
		names := test.FindAllString(r.proof, -1)
		if len(names) == 0 && !exempt.MatchString(r.proof) {
			t.Errorf("line %d: %s names neither a test nor a reason (not applicable: ...)", r.line, r.id)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("line %d: there is no test %s", r.line, name)
			}
		}
	}
}

func TestEveryConformanceTestIsOnThePage(t *testing.T) {
	named := map[string]bool{}
	for _, r := range page(t) {
		for _, name := range test.FindAllString(r.proof, -1) {
			named[name] = true
		}
	}
	n := 0
	for name := range tests(t) {
		if !conformance.MatchString(name) {
			continue
		}
		n++
		if !named[name] {
			t.Errorf("docs/conformance.md does not name %s", name)
		}
	}
	if n < 90 {
		t.Errorf("only %d conformance tests were found below %s", n, root)
	}
}
