package runtime

import (
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the aliases have into runtime.go")

// has is what go doc shows of an alias besides its own words: nothing, so the comment lists it.
const has = "\t//\n\t// It has:\n\t//\n"

// The comment of each alias lists the methods, or the fields, of the type that it stands for.
func TestAliasesShowWhatTheyHave(t *testing.T) {
	const file = "runtime.go"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	alias := regexp.MustCompile(`(?m)^\t([A-Z]\w*) = (\w+)\.([A-Z]\w*)$`)
	folders := map[string]string{"sandbox": "../internal/sandbox", "wasi": "../internal/wasi", "abi": "../abi"}
	packages := map[string]*doc.Package{}
	n := 0
	block, _, _ := strings.Cut(text[strings.Index(text, "type (\n"):], "\n)\n")
	for _, m := range alias.FindAllStringSubmatch(block+"\n", -1) {
		p := packages[m[2]]
		if p == nil {
			p = parsed(t, folders[m[2]])
			packages[m[2]] = p
		}
		i := slices.IndexFunc(p.Types, func(x *doc.Type) bool { return x.Name == m[3] })
		if i < 0 {
			t.Fatalf("there is no %s.%s", m[2], m[3])
		}
		want := ""
		if lines := members(p.Types[i]); len(lines) > 0 {
			want = has + "\t//\t" + strings.Join(lines, "\n\t//\t") + "\n"
			n += len(lines)
		}
		at := strings.Index(text, "\n"+m[0]+"\n") + 1
		begin := strings.LastIndex(text[:at], has)
		if begin < 0 || strings.Contains(text[begin:at], " = ") {
			begin = at
		}
		if text[begin:at] != want {
			if !*update {
				t.Errorf("%s does not list what it has: run go test ./runtime -update", m[1])
			}
			text = text[:begin] + want + text[at:]
		}
	}
	if n < 30 {
		t.Errorf("%d methods and fields", n)
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func parsed(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, "github.com/wasmactors/wasmactors/"+path.Base(dir), doc.Mode(0))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// members are the methods of a type, each with the first sentence of its comment, and the exported fields.
func members(x *doc.Type) (lines []string) {
	for _, m := range x.Methods {
		line := m.Name + strings.TrimPrefix(types.ExprString(m.Decl.Type), "func")
		if first := new(doc.Package).Synopsis(m.Doc); first != "" {
			line += " // " + first
		}
		if m.Name != "Error" && m.Name != "Unwrap" {
			lines = append(lines, line)
		}
	}
	for _, s := range x.Decl.Specs {
		st, ok := s.(*ast.TypeSpec).Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range st.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					line := name.Name + " " + types.ExprString(f.Type)
					if first := new(doc.Package).Synopsis(f.Doc.Text() + f.Comment.Text()); first != "" {
						line += " // " + first
					}
					lines = append(lines, line)
				}
			}
		}
	}
	return lines
}
