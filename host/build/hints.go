package build

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// Bounds of the sources that are searched for hints.
const (
	hintFiles = 200
	hintBytes = 1 << 20 // of a file
)

// guestSources are the guest's own Go files in dir, and in the folders below it that are of the same module, parsed as far
// as possible. Tests and vendored packages are none of them.
func guestSources(ctx context.Context, dir string) (*token.FileSet, []*ast.File) {
	set := token.NewFileSet()
	var files []*ast.File
	_ = filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case e.IsDir():
			if name := e.Name(); p != dir && (name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		case len(files) >= hintFiles || ctx.Err() != nil:
			return filepath.SkipAll
		case !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go"):
			return nil
		}
		text, err := regular.Read(ctx, p, hintBytes)
		if err != nil {
			return nil
		}
		if f, _ := parser.ParseFile(set, p, text, parser.SkipObjectResolution); f != nil {
			files = append(files, f)
		}
		return nil
	})
	return set, files
}

// explain adds to a failed build with TinyGo what the guest uses that only standard Go has. The compiler's own words
// are about itself, or there are none.
func (c *compiler) explain(ctx context.Context, dir string, err error) error {
	var failed *Error
	if c.name != "tinygo" || !errors.As(err, &failed) || failed.Hint != "" {
		return err
	}
	set, files := guestSources(ctx, dir)
	for _, f := range files {
		if at, what := needsGo(f); what != "" {
			chosen := "compiler: tinygo asks for TinyGo"
			if c.o.Compiler == "" || c.o.Compiler == "auto" {
				chosen = "TinyGo is in the PATH, and so compiler: auto has taken it"
			}
			failed.Hint = fmt.Sprintf("%s: %s, which guests have with standard Go only. %s: write compiler: go at the module in bundle.yaml, or use --compiler go", short(set.Position(at), dir), what, chosen)
			break
		}
	}
	return err
}

// short is a position with a path relative to dir.
func short(p token.Position, dir string) string {
	if rel, err := filepath.Rel(dir, p.Filename); err == nil {
		p.Filename = rel
	}
	return p.String()
}

// standardOnly are packages that TinyGo lacks for WASI, or has only in part.
var standardOnly = []string{"net/http", "net", "os/exec", "plugin", "reflect/metadata", "go/types", "database/sql"}

// needsGo finds what a file uses that TinyGo does not have, as guests are built here.
func needsGo(f *ast.File) (at token.Pos, what string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if what != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.GoStmt:
			at, what = n.Pos(), "this starts a goroutine"
		case *ast.SelectStmt:
			at, what = n.Pos(), "this waits for channels"
		}
		return what == ""
	})
	if what == "" {
		for _, i := range f.Imports {
			if p := strings.Trim(i.Path.Value, `"`); slices.Contains(standardOnly, p) {
				return i.Pos(), "this imports " + p
			}
		}
	}
	return at, what
}

// called are the methods that the SDK calls if an actor has them, by the types of their parameters and results; formerly
// are names that releases before have called.
var called = map[string]string{
	"Started": "(*Context) error", "Stopped": "(*Context)", "PreRestart": "(*Context, string)",
	"Decide": "(*Context, Ref, *Failure) Directive",
}

var formerly = map[string]string{"Start": "Started", "Stop": "Stopped", "OnStart": "Started", "OnStop": "Stopped"}

// uncalled reports methods of actors that are never called: their names are of an earlier release, or their signatures
// are not those that the SDK looks for. The compiler says nothing about them, since these methods are optional.
func uncalled(ctx context.Context, dir string) (hints []string) {
	set, files := guestSources(ctx, dir)
	methods := map[string]map[string]*ast.FuncDecl{} // by folder and receiver, and by name
	var types []string
	for _, f := range files {
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || m.Recv == nil || len(m.Recv.List) != 1 {
				continue
			}
			on := filepath.Dir(set.Position(f.Pos()).Filename) + " " + typeName(m.Recv.List[0].Type)
			if methods[on] == nil {
				methods[on] = map[string]*ast.FuncDecl{}
				types = append(types, on)
			}
			methods[on][m.Name.Name] = m
		}
	}
	for _, on := range types {
		all := methods[on]
		if r := all["Receive"]; r == nil || signature(r) != "(*Context, *Message) error" {
			continue
		}
		_, typ, _ := strings.Cut(on[strings.LastIndexByte(on, '/')+1:], " ")
		for _, name := range sortedNames(all) {
			m := all[name]
			is, at := signature(m), short(set.Position(m.Name.Pos()), dir)
			if want, optional := called[name]; optional {
				if is != want {
					hints = append(hints, fmt.Sprintf("%s: %s of the actor %s is never called: its signature is %s%s, and the SDK calls %s%s", at, name, typ, name, is, name, want))
				}
			} else if now := formerly[name]; now != "" && all[now] == nil && strings.HasPrefix(is, "(*Context") {
				hints = append(hints, fmt.Sprintf("%s: %s of the actor %s is never called: the SDK calls %s%s", at, name, typ, now, called[now]))
			}
		}
	}
	return hints
}

func sortedNames(m map[string]*ast.FuncDecl) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// typeName is the name of a receiver's type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return types.ExprString(e)
}

// signature is the types of a method's parameters and results, without the names of packages.
func signature(m *ast.FuncDecl) string {
	list := func(fields *ast.FieldList) (out []string) {
		if fields == nil {
			return nil
		}
		for _, f := range fields.List {
			for range max(len(f.Names), 1) {
				out = append(out, unqualified(f.Type))
			}
		}
		return out
	}
	text := "(" + strings.Join(list(m.Type.Params), ", ") + ")"
	switch results := list(m.Type.Results); len(results) {
	case 0:
	case 1:
		text += " " + results[0]
	default:
		text += " (" + strings.Join(results, ", ") + ")"
	}
	return text
}

func unqualified(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "*" + unqualified(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return types.ExprString(e)
}
