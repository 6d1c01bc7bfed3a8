package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readers are the functions that open a file or a folder for reading by its name, wait for the
// other end of a FIFO, or read without a bound.
var readers = map[string][]string{
	"os":                    {"Open", "OpenFile", "ReadFile", "OpenRoot", "OpenInRoot", "DirFS", "CopyFS"},
	"io/ioutil":             {"ReadFile"},
	"crypto/tls":            {"LoadX509KeyPair"},
	"net/http":              {"Dir", "ServeFile"},
	"go/parser":             {"ParseDir"}, // and ParseFile, if its source is nil
	"text/template":         {"ParseFiles", "ParseGlob"},
	"html/template":         {"ParseFiles", "ParseGlob"},
	"syscall":               {"Open"},
	"golang.org/x/sys/unix": {"Open", "Openat"},
}

// ofRoots are methods of an *os.Root that wait for a FIFO, too.
var ofRoots = []string{"Open", "OpenFile", "OpenRoot", "ReadFile", "FS"}

// openers may call these functions: a file, or a folder with a slash at the end, and why.
var openers = map[string]string{
	"internal/regular/":                "the one place",
	"cmd/wasmactors/replay.go":         "a file that the user names at the command line, for writing: a new one",
	"internal/cache/":                  "its own folder, which internal/trust has checked; openPlain does not wait",
	"internal/trust/":                  "/etc/group",
	"internal/sandbox/":                "/proc and /sys",
	"internal/slots/":                  "/proc",
	"host/metrics/process_unix.go":     "/proc",
	"host/cluster/natscluster/":        "files of a node's own folder that it makes, and the folder, to have them on the disk",
	"host/recorder/recorder.go":        "a file that the user names at the command line, for writing: a new one",
	"host/durable/store.go":            "its own folder, and the secret in it, for its owner alone",
	"host/durable/archive.go":          "a store's own folder, and one that it makes",
	"internal/guesttest/":              "what it has compiled, in a folder of its own",
	"internal/planted/":                "sources of this repository, for tests",
	"internal/wal/":                    "its own files, in a folder that is its owner's alone",
	"internal/wasi/":                   "names by guests: path.go opens without waiting, and checks what it has opened",
	"host/admin/token.go":              "the user's own file, opened without waiting, checked by internal/trust",
	"host/observe/crashfile.go":        "a folder that the user names at the command line, for writing; it is read by internal/regular",
	"host/service/blob/once.go":        "files that it makes itself, below a root; they are read by internal/regular",
	"host/service/blob/store.go":       "files that it makes itself; objects are opened by internal/regular",
	"host/service/schedule/journal.go": "the state folder, which is the user's; for reading and writing, which does not wait",
	"host/service/sql/sqlite.go":       "makes a new file",
	"host/service/sql/fence.go":        "the folder of a database that is open",
	"cmd/wasmactors/detach.go":         "the log, a regular file that the user names at the command line",
	"cmd/wasmactors/input.go":          "a pipe that the user names at the command line, opened in the background",
	"cmd/wasmactors/admin.go":          "makes a new file",
	"cmd/wasmactors/storefile.go":      "makes a new file",
	"internal/scaffold/":               "the checkout of the SDK",
}

// TestFilesAreReadInOnePlace: code of the host and the command opens files that somebody else may have
// named only with internal/regular. A new place that opens its own files is added to openers, with its reason.
func TestFilesAreReadInOnePlace(t *testing.T) {
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skip(err)
	}
	used := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") || !slices.Contains([]string{"host", "cmd", "internal", "runtime", "supervision", "abi"}, strings.SplitN(name, "/", 2)[0]) {
			continue // samples, examples and benchmarks read their own files
		}
		places, err := reads(root+name, nil)
		if err != nil {
			t.Error(err)
		}
		for _, place := range places {
			switch by := allowing(name); by {
			case "":
				t.Errorf("%s: use internal/regular, or say in openers whose file it is", strings.TrimPrefix(place, root))
			default:
				used[by] = true
			}
		}
	}
	for by := range openers {
		if !used[by] {
			t.Errorf("%s opens nothing: take it from openers", by)
		}
	}
}

func allowing(name string) string {
	for by := range openers {
		if name == by || strings.HasSuffix(by, "/") && strings.HasPrefix(name, by) {
			return by
		}
	}
	return ""
}

// reads are the places where a file calls one of readers.
func reads(name string, src any) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	imported := map[string]string{}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		as := path.Base(p)
		if i.Name != nil {
			as = i.Name.Name
		}
		imported[as] = p
	}
	var places []string
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && len(c.Args) == 4 && isParseFile(c, imported) {
			places = append(places, fmt.Sprintf("%s: parser.ParseFile", fset.Position(c.Pos())))
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of := ""
		switch x := s.X.(type) {
		case *ast.Ident:
			of = x.Name
		case *ast.SelectorExpr:
			of = x.Sel.Name
		}
		if p, ok := imported[of]; ok && slices.Contains(readers[p], s.Sel.Name) || of == "root" && slices.Contains(ofRoots, s.Sel.Name) {
			places = append(places, fmt.Sprintf("%s: %s.%s", fset.Position(s.Pos()), of, s.Sel.Name))
		}
		return true
	})
	return places, nil
}

// isParseFile reports a call of parser.ParseFile that reads the file itself.
func isParseFile(c *ast.CallExpr, imported map[string]string) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "ParseFile" {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	source, none := c.Args[2].(*ast.Ident)
	return ok && imported[of.Name] == "go/parser" && none && source.Name == "nil"
}

// The search finds what it is for.
func TestReadsAreFound(t *testing.T) {
	for src, want := range map[string]int{
		`import "os"; func f() { os.ReadFile("x"); os.Open("y"); os.Stat("z") }`:            2,
		`import o "os"; var f = o.Open`:                                                     1,
		`import "crypto/tls"; func f() { tls.LoadX509KeyPair("a", "b") }`:                   1,
		`import "os"; type s struct { root *os.Root }; func (x s) f() { x.root.Open("a") }`: 1,
		`import "os"; func f(root *os.Root) { root.FS(); root.Stat("a") }`:                  1,
		`import "go/parser"; var f, e = parser.ParseFile(nil, "x.go", nil, 0)`:              1,
		`import "go/parser"; var f, e = parser.ParseFile(nil, "x.go", text, 0)`:             0,
		`import os "example.com/os"; func f() { os.Open("y") }`:                             0,
	} {
		if got, err := reads("x.go", "package x; "+src); err != nil || len(got) != want {
			t.Errorf("%s: %q, %v", src, got, err)
		}
	}
}
