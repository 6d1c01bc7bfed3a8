package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// pkg is a package as it is to be mutated.
type pkg struct {
	path, dir string
	files     []*file
	info      *types.Info
	fset      *token.FileSet
}

type file struct {
	name string // base
	text []byte
	tree *ast.File
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// load finds, parses and type-checks packages.
func load(ctx context.Context, patterns []string) ([]*pkg, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, patterns...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	var roots []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			roots = append(roots, l)
		}
	}
	var pkgs []*pkg
	for _, l := range roots {
		if len(l.GoFiles) == 0 {
			continue
		}
		p, err := check(l, exports)
		if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

func check(l listed, exports map[string]string) (*pkg, error) {
	p := &pkg{path: l.ImportPath, dir: l.Dir, fset: token.NewFileSet(), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
	var trees []*ast.File
	for _, name := range l.GoFiles {
		text, err := os.ReadFile(filepath.Join(l.Dir, name))
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(p.fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, &file{name, text, tree})
		trees = append(trees, tree)
	}
	find := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", find)}
	if _, err := conf.Check(l.ImportPath, p.fset, trees, p.info); err != nil {
		return nil, fmt.Errorf("%s: %w", l.ImportPath, err)
	}
	return p, nil
}
