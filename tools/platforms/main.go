// Platforms type-checks the packages that it is given, with their tests, as other platforms
// would compile them:
//
//	go run ./tools/platforms windows/amd64 darwin/arm64 linux/amd64+portable -- ./...
//
// It reads everything from source, and of other modules only what they declare. A cross build
// would compile them all, for minutes on a machine that has not done it before.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	platforms, patterns := os.Args[1:], []string{"./..."}
	if i := slices.Index(platforms, "--"); i >= 0 {
		platforms, patterns = platforms[:i], platforms[i+1:]
	}
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	failed := false
	for _, name := range platforms {
		p, err := parse(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		n, errs := p.check(dir, patterns)
		fmt.Printf("   %s: %d packages\n", name, n)
		for _, err := range errs {
			failed = true
			fmt.Printf("%s: %v\n", name, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// platform is what GOOS, GOARCH and -tags say.
type platform struct{ os, arch, tags string }

// parse reads OS/ARCH or OS/ARCH+TAG,TAG.
func parse(s string) (platform, error) {
	target, tags, _ := strings.Cut(s, "+")
	os, arch, ok := strings.Cut(target, "/")
	if !ok || os == "" || arch == "" {
		return platform{}, fmt.Errorf("platforms: %q: want OS/ARCH, such as windows/amd64", s)
	}
	return platform{os, arch, tags}, nil
}

// check is how many packages in dir match the patterns, and what is wrong with them.
func (p platform) check(dir string, patterns []string) (checked int, errs []error) {
	conf := &packages.Config{
		Dir: dir, Tests: true, BuildFlags: []string{"-tags=" + p.tags}, ParseFile: declarationsOutside(dir),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax,
		Env: append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0"),
	}
	roots, err := packages.Load(conf, patterns...)
	if err != nil {
		return 0, []error{err}
	}
	seen := map[string]bool{} // a package and its variant for tests say the same
	for _, r := range roots {
		if strings.HasSuffix(r.ID, ".test") { // the main package of a test, which go makes
			continue
		}
		checked++
		for _, e := range r.Errors {
			if text := e.Error(); !seen[text] {
				seen[text] = true
				errs = append(errs, e)
			}
		}
	}
	return checked, errs
}

// declarationsOutside parses files without the bodies of their functions, but for those below dir:
// the type checker takes such functions for declared elsewhere.
func declarationsOutside(dir string) func(*token.FileSet, string, []byte) (*ast.File, error) {
	below := dir + string(filepath.Separator)
	return func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
		if strings.HasPrefix(name, below) {
			return parser.ParseFile(fset, name, src, parser.AllErrors|parser.SkipObjectResolution)
		}
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if f != nil {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					fn.Body = nil
				}
			}
		}
		return f, err
	}
}
