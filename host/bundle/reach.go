package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmactors/wasmactors/host/build"
)

// Reach is something outside of the bundle's folder that a manifest asks for.
type Reach struct {
	Module string
	Path   string // as the manifest, or the build, names it
	Real   string // where that is, symbolic links followed
	Access string // read, "read and write", or build: its sources become part of a guest
	Guest  string // of a folder: the path that the guest sees
}

// String is a line for a person.
func (r Reach) String() string {
	text := fmt.Sprintf("module %s: %s", r.Module, r.Path)
	if r.Real != r.Path {
		text += " (really " + r.Real + ")"
	}
	if r.Access == accessBuild {
		return text + " as a source of its code"
	}
	return text + " as " + r.Guest + ", to " + r.Access
}

const accessBuild = "build"

// OutsideError is a bundle that needs folders or sources outside of its own folder without
// having been allowed to.
type OutsideError struct{ Reaches []Reach }

func (e *OutsideError) Error() string {
	lines := []string{"the bundle reaches outside of its folder:"}
	for _, r := range e.Reaches {
		lines = append(lines, "  "+r.String())
	}
	return strings.Join(lines, "\n")
}

// Reaches lists the granted folders that lie outside of the bundle's own, by "..", by an
// absolute path or over a symbolic link.
func (m *Manifest) Reaches() []Reach {
	var found []Reach
	inside := realPath(m.Dir)
	for _, mod := range m.Modules {
		for _, d := range mod.Dirs {
			real := realPath(d.Host)
			if rel, err := filepath.Rel(inside, real); err == nil && filepath.IsLocal(rel) {
				continue
			}
			access := "read and write"
			if d.ReadOnly {
				access = "read"
			}
			found = append(found, Reach{mod.Name, d.Host, real, access, d.Guest})
		}
	}
	return found
}

// allow calls Allow.
func (o Options) allow(found []Reach) error {
	switch {
	case len(found) == 0:
		return nil
	case o.Allow == nil:
		return &OutsideError{found}
	}
	return o.Allow(found)
}

// allowSources is allow for the sources of a module.
func (o Options) allowSources(module string) func([]build.Outside) error {
	return func(found []build.Outside) error {
		var reaches []Reach
		for _, f := range found {
			reaches = append(reaches, Reach{Module: module, Path: f.Path, Real: f.Real, Access: accessBuild})
		}
		return o.allow(reaches)
	}
}

// pinned is the module with the links in its folders resolved, so that the folders that were
// checked are those that are opened.
func (mod Module) pinned() Module {
	dirs := append(mod.Dirs[:0:0], mod.Dirs...)
	for i := range dirs {
		dirs[i].Host = realPath(dirs[i].Host)
	}
	mod.Dirs = dirs
	return mod
}

// realPath follows the symbolic links of a path, of which the end may not exist.
func realPath(path string) string {
	rest := ""
	for at := path; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		} else if target, lerr := os.Readlink(at); lerr == nil && rest == "" {
			// A link to a file that does not exist, but may be created.
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			return filepath.Clean(target)
		}
		up := filepath.Dir(at)
		if up == at {
			return path
		}
		rest, at = filepath.Join(filepath.Base(at), rest), up
	}
}
