package build

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sources are all files that a build may read, without the compiler and its library.
type sources struct {
	files []string  // each is read
	dirs  []listing // new and deleted files in them matter
	mods  map[string]string

	missing []string // import paths of packages that do not exist
	foreign []string // files that are not Go alone
	open    bool     // a build of them cannot be kept: see includes
}

// pkg is what the go command says of a package.
type pkg struct {
	ImportPath, Dir           string
	IgnoredGoFiles            []string
	EmbedFiles, EmbedPatterns []string
	Standard                  bool
	Module                    *mod
}

type mod struct {
	Path, Dir, GoMod string
	Main             bool
	Replace          *mod
}

// sources lists the files of all packages that a build may need. TinyGo's build tags depend on
// its version, so for TinyGo these are the packages that any tags could need: the imports of
// files that the go command leaves out are followed, too.
func (c *compiler) sources(ctx context.Context, dir, tmp string) (*sources, error) {
	tags := c.tags
	if c.name == "tinygo" {
		tags = append([]string{"tinygo", "tinygo.wasm", "purego"}, tags...)
	}
	seen := map[string]bool{}
	s := &sources{mods: map[string]string{}}
	todo := []string{"."}
	for first := true; len(todo) > 0; first = false {
		lister := *c
		if !first {
			lister.env = append(slices.Clone(c.env), "GOPROXY=off") // fetch nothing for a package that may not be needed
		}
		found, err := lister.list(ctx, dir, tmp, tags, todo)
		if err != nil {
			if first {
				return nil, err
			}
			break // packages that only other tags need, and that do not exist
		}
		todo = nil
		for _, p := range found {
			if seen[p.ImportPath] {
				continue
			}
			seen[p.ImportPath] = true
			if p.Standard || p.Dir == "" {
				if !p.Standard {
					s.missing = append(s.missing, p.ImportPath)
				}
				continue
			}
			if err := s.add(ctx, c, p); err != nil {
				return nil, err
			}
			if c.name != "tinygo" {
				continue
			}
			for _, path := range imports(p.Dir, p.IgnoredGoFiles) {
				if !seen[path] && path != "C" && path != "unsafe" && !slices.Contains(todo, path) {
					todo = append(todo, path)
				}
			}
		}
	}
	return s, nil
}

// list asks the go command about packages and all that they import.
func (c *compiler) list(ctx context.Context, dir, tmp string, tags, packages []string) ([]pkg, error) {
	args := []string{"list", "-e", "-deps", "-tags=" + strings.Join(tags, ","),
		"-json=ImportPath,Dir,IgnoredGoFiles,EmbedFiles,EmbedPatterns,Standard,Module"}
	lister := *c
	lister.env = append(slices.Clone(c.env), "GOOS=wasip1", "GOARCH=wasm")
	out, err := lister.run(ctx, dir, tmp, c.gotool, append(append(args, "--"), packages...)...)
	if err != nil {
		return nil, err
	}
	var found []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("the output of go list cannot be read: %w", err)
		}
		found = append(found, p)
	}
}

// imports of Go files that can be an argument of the go command.
func imports(dir string, files []string) []string {
	var paths []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if _, text, err := readSource(filepath.Join(dir, name)); err == nil {
			paths = append(paths, importsOf(text)...)
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasPrefix(path, "-") })
}

// mostFiles bounds the files of a module with C sources.
const mostFiles = 20_000

// add takes the sources of a package.
func (s *sources) add(ctx context.Context, c *compiler, p pkg) error {
	names, err := sourceNames(p.Dir)
	if err != nil {
		return err
	}
	foreign, err := c.foreign(ctx, p.Dir, names)
	if err != nil {
		return err
	}
	s.foreign = append(s.foreign, foreign...)
	l := listing{Path: p.Dir, Embed: len(p.EmbedPatterns) > 0}
	for _, n := range names {
		s.file(filepath.Join(p.Dir, n))
	}
	for _, n := range p.EmbedFiles {
		s.file(filepath.Join(p.Dir, n))
	}
	m := p.Module
	if m != nil && m.Replace != nil {
		m = m.Replace
	}
	if m != nil && m.GoMod != "" {
		s.file(m.GoMod)
		root := filepath.Dir(m.GoMod)
		for _, n := range []string{"go.sum", filepath.Join("vendor", "modules.txt")} {
			if path := filepath.Join(root, n); exists(path) {
				s.file(path)
			}
		}
		if p.Module.Path != "" && m.Dir != "" {
			s.mods[m.Dir] = p.Module.Path
		}
	}
	// A C source may include any file: all files of its module are inputs, and what else is named.
	if c.o.Cgo && len(foreign) > 0 {
		dirs := []string{p.Dir}
		for _, path := range foreign {
			_, text, err := readSource(path)
			if err != nil {
				return err
			}
			more, err := checkCgo(p.Dir, path, text)
			if err != nil {
				return err
			}
			dirs = append(dirs, more...)
		}
		headers, open := includes(ctx, foreign, dirs)
		s.open = s.open || open
		for _, f := range headers {
			s.file(f)
		}
		root := p.Dir
		if m != nil && m.Dir != "" {
			root = m.Dir
		}
		all, err := below(root)
		if err != nil {
			return err
		}
		if len(all) > mostFiles {
			return fmt.Errorf("%s: %d files are too many for a module with C sources", root, len(all))
		}
		for _, f := range all {
			s.file(f)
		}
		s.dirs = append(s.dirs, listing{Path: root, Embed: true})
	}
	s.dirs = append(s.dirs, l)
	return nil
}

func (s *sources) file(path string) {
	if !slices.Contains(s.files, path) {
		s.files = append(s.files, path)
	}
}

// sourceExtensions are those of files that a build of a package may read.
var sourceExtensions = []string{".go", ".s", ".S", ".sx", ".h", ".hh", ".hpp", ".hxx", ".c", ".cc", ".cpp", ".cxx", ".m", ".inc", ".syso", ".swig", ".swigcxx", ".f", ".F", ".for", ".f90"}

// sourceNames are the names of the files of a folder that a build may read.
func sourceNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		n := e.Name()
		if isSource(n) && !e.IsDir() {
			names = append(names, n)
		}
	}
	return names, nil
}

func isSource(name string) bool {
	return name == "go.mod" || slices.Contains(sourceExtensions, filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go")
}

// below are the names of all files in a folder, at any depth, but for tests.
func below(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir() && !strings.HasSuffix(path, "_test.go"):
			names = append(names, path)
		case e.IsDir() && e.Name() == ".git":
			return filepath.SkipDir
		}
		return nil
	})
	return names, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sdk are the modules of the guest SDK, which may be in any folder: samples in a checkout use
// those of the checkout. A module counts as one of them only if its own go.mod has its path,
// which the go command does not check.
var sdk = []string{"github.com/wasmactors/wasmactors/abi", "github.com/wasmactors/wasmactors/guest-sdk"}

var moduleLine = pattern(`(?m)^[ \t]*module[ \t]+"?([^\s"]+)`)

// modulePath is the module path in the go.mod of a folder.
func modulePath(dir string) string {
	_, text, err := readSource(filepath.Join(dir, "go.mod"))
	if m := moduleLine().FindSubmatch(text); err == nil && m != nil {
		return string(m[1])
	}
	return ""
}

// Outside is a source that lies outside of the folder that it should be in.
type Outside struct {
	Path string // as the build reads it
	Real string // where that is, symbolic links followed
}

// outside lists the sources that are neither below root nor Go's own; nothing if root is "".
// A module outside is listed as its folder, and not file by file.
func (s *sources) outside(root string, others ...string) []Outside {
	if root == "" {
		return nil
	}
	fine := append([]string{root}, others...)
	for dir, path := range s.mods {
		if slices.Contains(sdk, path) && modulePath(dir) == path {
			fine = append(fine, dir)
		}
	}
	for i, f := range fine {
		if f != "" {
			fine[i] = realPath(f)
		}
	}
	in := func(real string) bool {
		return slices.ContainsFunc(fine, func(f string) bool {
			rel, err := filepath.Rel(f, real)
			return f != "" && err == nil && filepath.IsLocal(rel)
		})
	}
	var found []Outside
	seen := map[string]bool{}
	report := func(path, real string) {
		for dir := range s.mods {
			if real != realPath(dir) && within(real, dir) && !in(realPath(dir)) {
				path, real = dir, realPath(dir)
			}
		}
		if !seen[real] && !seen[filepath.Dir(real)] {
			seen[real] = true
			found = append(found, Outside{path, real})
		}
	}
	for _, d := range s.dirs {
		if real := realPath(d.Path); !in(real) {
			report(d.Path, real)
		}
	}
	for _, f := range s.files {
		if real := realPath(f); !in(real) {
			report(f, real)
		}
	}
	slices.SortFunc(found, func(a, b Outside) int { return strings.Compare(a.Path, b.Path) })
	return found
}

// outside calls Allow for sources outside of Root.
func (o Options) outside(dir string, found []Outside) error {
	if len(found) == 0 {
		return nil
	}
	if o.Allow == nil {
		return &OutsideError{dir, o.Root, found}
	}
	return o.Allow(found)
}

// OutsideError is a build that would read files outside of the folder that its sources
// should be in.
type OutsideError struct {
	Dir, Root string
	Found     []Outside
}

func (e *OutsideError) Error() string {
	text := fmt.Sprintf("building %s would read what is not in %s:", e.Dir, e.Root)
	for _, f := range e.Found {
		text += "\n  " + f.String()
	}
	return text
}

// String is the path of a source, and where its links lead.
func (f Outside) String() string {
	if f.Path == f.Real {
		return f.Path
	}
	return f.Path + " (a link to " + f.Real + ")"
}
