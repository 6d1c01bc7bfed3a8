package build

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a build reads is told before it, also if it fails or was made already.
func TestInputs(t *testing.T) {
	dir := project(t)
	other := t.TempDir()
	write(t, other, map[string]string{"go.mod": "module other\n\ngo 1.23\n", "o.go": "package other\n\nconst O = 1\n"})
	cache := t.TempDir()
	look := func() (files, dirs []string, err error) {
		var in Inputs
		_, err = Guest(context.Background(), dir, Options{Compiler: "go", CacheDir: cache, Inputs: func(i Inputs) { in = i }})
		name := func(path string) string {
			for prefix, root := range map[string]string{"": dir, "other:": other} {
				if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
					return prefix + filepath.ToSlash(rel)
				}
			}
			return path
		}
		for _, f := range in.Files {
			files = append(files, name(f))
		}
		for _, d := range in.Dirs {
			text := name(d.Path)
			if d.Deep {
				text += "/..."
			}
			dirs = append(dirs, text)
		}
		slices.Sort(files)
		slices.Sort(dirs)
		return files, dirs, err
	}
	for _, s := range []struct {
		name        string
		change      map[string]string
		long        bool
		files, dirs string
		err         string
	}{
		{"a mistake in the syntax", map[string]string{"inner/n.go": "package inner\n\nconst N = \n"}, false,
			"data/a/b.text go.mod inner/n.go main.go", "./... inner", "inner/n.go"},
		{"a package that is missing", map[string]string{"inner/n.go": "package inner\n\nimport _ \"guest/later/on\"\n\nconst N = 1\n"}, false,
			"data/a/b.text go.mod inner/n.go main.go", "./... inner later/on", "guest/later/on"},
		{"a broken go.mod", map[string]string{"go.mod": "modul guest\n"}, false, "go.mod go.sum main.go", ".", "go.mod:1"},
		{"a replaced module", map[string]string{
			"go.mod":     "module guest\n\ngo 1.23\n\nrequire other v0.0.0\n\nreplace other => " + other + "\n",
			"inner/n.go": "package inner\n\nimport \"other\"\n\nconst N = other.O\n",
		}, true, "data/a/b.text go.mod inner/n.go main.go other:go.mod other:o.go", "./... inner other:.", ""},
		{"and from the cache", nil, true, "data/a/b.text go.mod inner/n.go main.go other:go.mod other:o.go", "./... inner other:.", ""},
	} {
		if s.long && testing.Short() {
			continue
		}
		write(t, dir, s.change)
		files, dirs, err := look()
		if got := strings.Join(files, " "); got != s.files {
			t.Errorf("%s: files %s\nwant %s", s.name, got, s.files)
		}
		if got := strings.Join(dirs, " "); got != s.dirs {
			t.Errorf("%s: folders %s\nwant %s", s.name, got, s.dirs)
		}
		if text := fmt.Sprint(err); s.err == "" && err != nil || !strings.Contains(text, s.err) {
			t.Errorf("%s: %v", s.name, err)
		}
		var e *Error
		if s.err != "" && errors.As(err, &e) {
			if p := e.Problems()[0]; !filepath.IsAbs(p.File) || p.Line == 0 || p.Message == "" {
				t.Errorf("%s: %+v of\n%s", s.name, p, e.Output)
			}
		}
	}
}

func TestProblems(t *testing.T) {
	dir := filepath.FromSlash("/src/guest")
	at := func(file string) string { return filepath.Join(dir, file) }
	for _, c := range []struct {
		output, hint string
		want         []Problem
	}{
		{"# guest\n./main.go:3:15: undefined: oops\ninner/n.go:7:2: cannot use x\n\thave int\n\twant string\n", "", []Problem{
			{at("main.go"), 3, 15, "undefined: oops"}, {at("inner/n.go"), 7, 2, "cannot use x have int want string"}}},
		{"go: errors parsing go.mod:\n" + at("go.mod") + ":1: unknown directive: modul\n", "", []Problem{{at("go.mod"), 1, 0, "unknown directive: modul"}}},
		{"main.go:4:2: no required module provides package x\n", "do this", []Problem{{at("main.go"), 4, 2, "no required module provides package x; do this"}}},
		{"signal: killed\n", "", []Problem{{Message: "building " + dir + " has failed:\nsignal: killed"}}},
		{strings.Repeat("./a.go:1:1: x\n", 1000), "", slices.Repeat([]Problem{{at("a.go"), 1, 1, "x"}}, mostProblems)},
	} {
		if got := (&Error{Dir: dir, Output: c.output, Hint: c.hint}).Problems(); !slices.Equal(got, c.want) {
			t.Errorf("%q:\n%+v\nwant %+v", c.output, got, c.want)
		}
	}
}

func TestIsSource(t *testing.T) {
	for name, want := range map[string]bool{"a.go": true, "a_test.go": false, ".#a.go": false, "_a.go": false, "go.mod": true, "a.txt": false, "4913": false, "a.go~": false, "a.s": true} {
		if IsSource(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
