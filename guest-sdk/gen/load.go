package main

import (
	"bytes"
	"encoding/json"
	"errors"
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

// source is the package that the types are in.
type source struct {
	fset   *token.FileSet
	pkg    *types.Package
	said   map[string]said       // by type, or type.method
	byName map[string][]*message // the newest first
	byType map[*types.TypeName]*message
}

// load parses and checks the package in dir, without the file called target: it
// is to be written. The code may lack the methods that will be in there, so what
// the type checker complains about counts only if the types themselves are hurt.
func load(dir, target string) (*source, error) {
	list, err := goList(dir)
	if err != nil {
		return nil, err
	}
	self := list[len(list)-1] // dependencies come first
	exports := map[string]string{}
	for _, p := range list {
		exports[p.ImportPath] = p.Export
	}
	s := &source{fset: token.NewFileSet(), said: map[string]said{}}
	var files []*ast.File
	for _, name := range self.GoFiles {
		if name == target {
			continue
		}
		f, err := parser.ParseFile(s.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if err := s.directives(f); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no Go files in %s: %s", dir, self.Error.Err)
	}
	made, err := s.toBeMade(files[0].Name.Name)
	if err != nil {
		return nil, err
	}
	files = append(files, made)
	conf := types.Config{
		Error: func(error) {},
		Importer: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
			file := exports[path]
			if file == "" {
				return nil, errors.New("no export data for " + path)
			}
			return os.Open(file)
		}),
	}
	s.pkg, _ = conf.Check(self.ImportPath, s.fset, files, nil)
	return s, s.messages()
}

// toBeMade declares what messages may mention that is in no file yet: the interfaces of protocols' messages.
func (s *source) toBeMade(pkg string) (*ast.File, error) {
	text := "package " + pkg + "\n"
	for _, name := range sortedNames(s.said) {
		if s.said[name].protocol != nil {
			text += "type " + (&protocol{name: name}).messageName() + " interface{}\n"
		}
	}
	return parser.ParseFile(s.fset, "", text, parser.SkipObjectResolution)
}

type listed struct {
	ImportPath, Export string
	GoFiles            []string
	Error              struct{ Err string }
}

// goList asks the go command for the package in dir and all that it imports, with
// the compiled form of the latter. It needs no network if a build needs none.
func goList(dir string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-export", "-json=ImportPath,Export,GoFiles,Error", ".")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var list []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("go list: no package in %s", dir)
	}
	return list, nil
}
