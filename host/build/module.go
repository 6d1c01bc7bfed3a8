package build

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// module is what the go command reads of a guest's module before it lists anything. Its errors quote these
// files, so they are checked, and allowed, before it is started.
type module struct {
	dir   string            // the folder of go.mod; "" if there is none
	path  string            // of the module
	files []string          // go.mod, go.sum, vendor/modules.txt, and go.mod of replaced modules
	local map[string]string // folders of replaced modules, by module path
	err   error             // go.mod cannot be parsed
}

// Bounds of what is read ahead of the go command.
const (
	maxModFile = 4 << 20  // bytes of a go.mod, and of what belongs to it
	maxGoFile  = 16 << 20 // bytes of a Go file
	maxFolders = 10_000   // packages of the bundle
)

// readModule reads the go.mod that the go command finds from dir.
func readModule(ctx context.Context, dir string) (*module, error) {
	m := &module{local: map[string]string{}}
	for at := realPath(dir); m.dir == ""; at = filepath.Dir(at) {
		switch info, err := os.Stat(filepath.Join(at, "go.mod")); {
		case err == nil && !info.IsDir():
			m.dir = at
		case at == filepath.Dir(at):
			return m, nil
		}
	}
	var text []byte
	for i, name := range []string{"go.mod", "go.sum", filepath.Join("vendor", "modules.txt")} {
		path := filepath.Join(m.dir, name)
		data, err := regular.Read(ctx, path, maxModFile)
		switch {
		case errors.Is(err, fs.ErrNotExist) && i > 0:
			continue
		case err != nil:
			return nil, fmt.Errorf("building %s: %w", dir, err)
		case i == 0:
			text = data
		}
		m.files = append(m.files, path)
	}
	file := filepath.Join(m.dir, "go.mod")
	f, err := modfile.ParseLax(file, text, nil) // what it does not know is the go command's to judge
	if err != nil {
		m.err = &Error{Dir: dir, Output: "go: errors parsing go.mod:\n" + err.Error()}
		return m, nil
	}
	if f.Module != nil {
		m.path = f.Module.Mod.Path
	}
	for _, r := range replacements(f.Syntax) {
		if !modfile.IsDirectoryPath(r[1]) {
			continue
		}
		target := r[1]
		if !filepath.IsAbs(target) {
			target = filepath.Join(m.dir, target)
		}
		m.local[r[0]] = target
		mod := filepath.Join(target, "go.mod")
		if _, err := regular.Read(ctx, mod, maxModFile); err == nil {
			m.files = append(m.files, mod)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("building %s: %w", dir, err)
		}
	}
	return m, nil
}

// replacements are the pairs of a module and what takes its place; ParseLax leaves them out.
func replacements(syntax *modfile.FileSyntax) (found [][2]string) {
	add := func(tokens []string) {
		if at := slices.Index(tokens, "=>"); at > 0 && at+1 < len(tokens) {
			found = append(found, [2]string{unquoted(tokens[0]), unquoted(tokens[at+1])})
		}
	}
	for _, s := range syntax.Stmt {
		switch s := s.(type) {
		case *modfile.Line:
			if len(s.Token) > 1 && s.Token[0] == "replace" {
				add(s.Token[1:])
			}
		case *modfile.LineBlock:
			for _, l := range s.Line {
				if len(s.Token) == 1 && s.Token[0] == "replace" {
					add(l.Token)
				}
			}
		}
	}
	return found
}

func unquoted(token string) string {
	if s, err := strconv.Unquote(token); err == nil {
		return s
	}
	return token
}

// sources are the module's files, as sources whose places are checked.
func (m *module) sources() *sources {
	s := &sources{files: m.files, mods: map[string]string{}}
	for path, dir := range m.local {
		s.mods[dir] = path
		s.dirs = append(s.dirs, listing{Path: dir})
	}
	return s
}

// folder is where a package of the module, of a replaced or of a vendored one lies; "" if it is none of them.
func (m *module) folder(path string) string {
	below := func(module, dir string) string {
		if rest, ok := strings.CutPrefix(path, module); ok && module != "" && (rest == "" || rest[0] == '/') {
			return filepath.Join(dir, filepath.FromSlash(rest))
		}
		return ""
	}
	best, found := "", ""
	for module, dir := range m.local {
		if at := below(module, dir); at != "" && len(module) > len(best) {
			best, found = module, at
		}
	}
	if at := below(m.path, m.dir); at != "" && len(m.path) > len(best) {
		found = at
	}
	if vendored := filepath.Join(m.dir, "vendor", filepath.FromSlash(path)); found == "" && filepath.IsLocal(filepath.FromSlash(path)) {
		if info, err := os.Stat(vendored); err == nil && info.IsDir() {
			found = vendored
		}
	}
	return found
}

// check looks at the sources of all packages that the module's folders have for the one in dir, under
// any tags: the go command would wait for a FIFO, and read a device without end.
func (m *module) check(ctx context.Context, dir string) error {
	todo, seen := []string{dir}, map[string]bool{dir: true}
	for len(todo) > 0 && len(seen) <= maxFolders {
		at := todo[0]
		todo = todo[1:]
		entries, err := os.ReadDir(at)
		if err != nil {
			continue // the go command says that it is missing
		}
		for _, e := range entries {
			name := e.Name()
			if e.IsDir() || name[0] == '.' || name[0] == '_' || !slices.Contains(sourceExtensions, filepath.Ext(name)) {
				continue
			}
			path := filepath.Join(at, name)
			if filepath.Ext(name) != ".go" {
				f, err := regular.Open(path)
				if err == nil {
					_ = f.Close()
				} else if errors.Is(err, regular.ErrKind) && !isDir(path) {
					return fmt.Errorf("building %s: %w", dir, err)
				}
				continue
			}
			text, err := regular.Read(ctx, path, maxGoFile)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, regular.ErrSize) || errors.Is(err, regular.ErrKind) && !isDir(path):
				return fmt.Errorf("building %s: %w", dir, err)
			}
			for _, i := range importsOf(text) {
				if next := m.folder(i); next != "" && !seen[next] {
					seen[next] = true
					todo = append(todo, next)
				}
			}
		}
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// importsOf are the imports of a Go file, as far as it can be parsed.
func importsOf(text []byte) (paths []string) {
	f, _ := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
	if f == nil {
		return nil
	}
	for _, i := range f.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}
