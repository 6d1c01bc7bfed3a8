package build

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Inputs are the files that a build depends on, so that a caller can watch them. Files that
// only change with the compiler or by version, Go's own packages and its module cache, are
// left out.
type Inputs struct {
	Files []string // sources, embedded files, go.mod, go.sum
	Dirs  []InputDir
}

// InputDir is a folder in which new and deleted files matter.
type InputDir struct {
	Path string
	Deep bool // all files below it matter, since some are embedded
}

// IsSource reports whether a file of this name matters in an InputDir that is not deep.
func IsSource(name string) bool {
	return isSource(name) && name[0] != '.' && name[0] != '_'
}

func (o Options) tell(in Inputs) {
	if o.Inputs != nil {
		o.Inputs(in)
	}
}

// reads lists what is to be recorded of the sources, before they are read.
func (s *sources) reads() ([]input, []listing) {
	var files []input
	for _, path := range s.files {
		files = append(files, input{Path: path})
	}
	dirs := slices.Clone(s.dirs)
	for _, path := range s.missing { // they may be created
		for dir, module := range s.mods {
			if rest, ok := strings.CutPrefix(path, module+"/"); ok {
				dirs = append(dirs, listing{Path: filepath.Join(dir, filepath.FromSlash(rest))})
			}
		}
	}
	return files, dirs
}

// inputs makes Inputs, without what belongs to the compiler.
func (c *compiler) inputs(files []input, dirs []listing) (in Inputs) {
	fixed := func(path string) bool { return within(path, c.goroot, c.modcache) }
	for _, d := range dirs {
		if !fixed(d.Path) {
			in.Dirs = append(in.Dirs, InputDir{Path: d.Path, Deep: d.Embed})
		}
	}
	known := map[string]bool{} // by folder, so that the links of each are followed once
	for _, f := range files {
		dir := filepath.Dir(f.Path)
		if _, ok := known[dir]; !ok {
			known[dir] = fixed(dir)
		}
		if !known[dir] {
			in.Files = append(in.Files, f.Path)
		}
	}
	return in
}

// guessInputs are the inputs of a package that the go command cannot list: its sources, and
// the go.mod above it.
func guessInputs(dir string) Inputs {
	in := Inputs{Dirs: []InputDir{{Path: dir}}}
	if names, err := sourceNames(dir); err == nil {
		for _, n := range names {
			in.Files = append(in.Files, filepath.Join(dir, n))
		}
	}
	for at := dir; ; at = filepath.Dir(at) {
		mod := filepath.Join(at, "go.mod")
		if _, err := os.Stat(mod); err == nil || at == filepath.Dir(at) {
			if err != nil { // there is none, but it may be created
				mod = filepath.Join(dir, "go.mod")
			}
			if !slices.Contains(in.Files, mod) {
				in.Files = append(in.Files, mod)
			}
			in.Files = append(in.Files, filepath.Join(filepath.Dir(mod), "go.sum"))
			return in
		}
	}
}

// Problem is one thing that a compiler has found.
type Problem struct {
	File         string // absolute; "" if the compiler names none
	Line, Column int    // from 1; 0 if they are not known
	Message      string
}

var position = pattern(`^(?:go: |vet: )?((?:[A-Za-z]:)?[^:\s][^:]*\.(?:go|s|c|h|mod|sum)):(\d+)(?::(\d+))?: (.*)$`)

// mostProblems bounds the problems that are read from the output of a compiler.
const mostProblems = 100

// Problems are the compiler's errors with their places; if it names no place, one problem
// without a place.
func (e *Error) Problems() []Problem {
	var found []Problem
	for _, line := range strings.Split(trimRight(e.Output), "\n") {
		m := position().FindStringSubmatch(strings.TrimRight(line, "\r"))
		switch {
		case m != nil && len(found) < mostProblems:
			p := Problem{File: m[1], Message: m[4]}
			p.Line, _ = strconv.Atoi(m[2])
			p.Column, _ = strconv.Atoi(m[3]) // 0 if there is none
			if !filepath.IsAbs(p.File) {
				p.File = filepath.Join(e.Dir, p.File)
			}
			found = append(found, p)
		case m == nil && len(found) > 0 && strings.HasPrefix(line, "\t"):
			found[len(found)-1].Message += " " + strings.TrimSpace(line) // the line goes on
		}
	}
	if len(found) == 0 {
		return []Problem{{Message: e.Error()}}
	}
	if e.Hint != "" {
		found[0].Message += "; " + e.Hint
	}
	return found
}
