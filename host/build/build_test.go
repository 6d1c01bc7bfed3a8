package build

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write makes files below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// project is a guest of two packages that embeds files.
func project(t *testing.T) string {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":        "module guest\n\ngo 1.23\n",
		"main.go":       "package main\n\nimport (\n\t\"embed\"\n\t\"guest/inner\"\n)\n\n//go:embed all:data\nvar data embed.FS\n\nfunc main() {\n\tf, _ := data.ReadFile(\"data/a/b.text\")\n\tprintln(inner.N, len(f))\n}\n",
		"inner/n.go":    "package inner\n\nconst N = 1\n",
		"data/a/b.text": "one",
	})
	return dir
}

// A build is made again when something has changed that it is made from, and only
// then.
func TestCache(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	dir, cache := project(t), t.TempDir()
	later := time.Now().Add(time.Hour)
	steps := []struct {
		name   string
		change func()
		cached bool
	}{
		{"the first time", func() {}, false},
		{"nothing has changed", func() {}, true},
		{"touched", func() { _ = os.Chtimes(filepath.Join(dir, "main.go"), later, later) }, true},
		{"a test is new", func() { write(t, dir, map[string]string{"main_test.go": "package main\n"}) }, true},
		{"a constant elsewhere", func() { write(t, dir, map[string]string{"inner/n.go": "package inner\n\nconst N = 2\n"}) }, false},
		{"a file is new", func() { write(t, dir, map[string]string{"inner/m.go": "package inner\n\nconst M = 2\n"}) }, false},
		{"an embedded file has changed", func() { write(t, dir, map[string]string{"data/a/b.text": "two"}) }, false},
		{"an embedded file is new", func() { write(t, dir, map[string]string{"data/a/c.text": "three"}) }, false},
		{"an embedded file has gone", func() { _ = os.Remove(filepath.Join(dir, "data/a/c.text")) }, false},
		{"the module has changed", func() { write(t, dir, map[string]string{"go.mod": "module guest\n\ngo 1.22\n"}) }, false},
		{"the kept module is broken", func() {
			for _, e := range glob(t, cache, "v*/*/module") {
				_ = os.WriteFile(e, []byte("\x00asm"), 0o644)
			}
		}, true}, // nobody has looked yet; it is built when somebody does
		{"the kept module has gone", func() {
			for _, e := range glob(t, cache, "v*/*/module") {
				_ = os.Remove(e)
			}
		}, false},
		{"the record is broken", func() {
			for _, e := range glob(t, cache, "v*/*/record") {
				_ = os.WriteFile(e, []byte("{"), 0o644)
			}
		}, false},
		{"and then nothing", func() {}, true},
	}
	for _, s := range steps {
		s.change()
		r, err := Guest(context.Background(), dir, Options{Compiler: "go", CacheDir: cache})
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if r.Cached != s.cached {
			t.Errorf("%s: cached is %v", s.name, r.Cached)
		}
		code, err := r.Code(context.Background())
		if err != nil || len(code) < 1000 || string(code[:4]) != "\x00asm" || sha256.Sum256(code) != r.Sum || r.Compiler != "go" {
			t.Errorf("%s: %d bytes, by %s, %v", s.name, len(code), r.Compiler, err)
		}
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	return names
}

// TestChangedMeanwhile: a source that is saved while the compiler runs may or may
// not be in the module, so nothing is kept.
func TestChangedMeanwhile(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	dir := project(t)
	o := Options{Compiler: "go", CacheDir: t.TempDir()}
	o.Deadline, o.Progress = time.Minute, func(text string) { t.Error(text) }
	ctx := context.Background()
	c, err := choose(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	st := openStore(o, c.key(dir))
	inputs := func() (*record, error) {
		s, err := c.sources(ctx, dir, t.TempDir())
		if err != nil {
			return nil, err
		}
		return st.inputs(s, nil)
	}
	before, err := inputs()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"inner/n.go": "package inner\n\nconst N = 22\n"})
	if err := st.save(before, dir, []byte("module")); err != nil {
		t.Fatal(err)
	}
	if _, ok := st.find(func(*record) {}); ok {
		t.Error("kept")
	}
	if before, err = inputs(); err != nil {
		t.Fatal(err)
	}
	if err := st.save(before, dir, []byte("module")); err != nil {
		t.Fatal(err)
	}
	if k, ok := st.find(func(*record) {}); !ok || k.sum != sha256.Sum256([]byte("module")) {
		t.Error("not kept")
	}
}

// TestPlanted: what somebody else has put into the cache in the place of a build,
// or has moved there from elsewhere in it, is not found.
func TestPlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("lists packages")
	}
	dir := project(t)
	ctx, keys := context.Background(), t.TempDir()
	options := func(name string) Options {
		return Options{
			Compiler: "go", CacheDir: t.TempDir(), CacheKey: filepath.Join(keys, name),
			Deadline: time.Minute, Progress: func(text string) { t.Error(text) },
		}
	}
	mine, theirs := options("mine"), options("theirs")
	c, err := choose(ctx, dir, mine)
	if err != nil {
		t.Fatal(err)
	}
	save := func(o Options, module string) store {
		st := openStore(o, c.key(dir))
		var before *record
		from, err := c.sources(ctx, dir, t.TempDir())
		if err == nil {
			before, err = st.inputs(from, nil)
		}
		if err == nil {
			err = st.save(before, dir, []byte(module))
		}
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	entry := func(o Options, part string) string { return glob(t, o.CacheDir, "v*/*/"+part)[0] }
	copyOver := func(from, to string) {
		raw, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	st := save(mine, "mine")
	good, ok := st.find(func(*record) {})
	if !ok {
		t.Fatal("not kept")
	}
	save(theirs, "theirs")
	copyOver(entry(theirs, "module"), entry(mine, "module"))
	if wasm, ok := st.module(good.sum); ok {
		t.Errorf("found %q", wasm)
	}
	save(mine, "mine")
	copyOver(entry(theirs, "module"), entry(mine, "module"))
	copyOver(entry(theirs, "record"), entry(mine, "record"))
	if _, ok := st.find(func(*record) {}); ok {
		t.Error("found a whole build of theirs")
	}
	save(mine, "mine")
	copyOver(entry(mine, "record"), entry(mine, "module"))
	if wasm, ok := st.module(good.sum); ok {
		t.Errorf("found %q", wasm)
	}
	save(mine, "mine")
	if err := os.Remove(mine.CacheKey); err != nil {
		t.Fatal(err)
	}
	if st := openStore(mine, c.key(dir)); st.cache == nil {
		t.Error("a lost key is the end of the cache")
	} else if _, ok := st.find(func(*record) {}); ok {
		t.Error("found what was sealed with the lost key")
	}
}

// TestUnusableCache: a cache that cannot be used costs time, and is told of.
func TestUnusableCache(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var told []string
	r, err := Guest(context.Background(), project(t), Options{Compiler: "go", CacheDir: filepath.Join(file, "x"), Progress: func(s string) { told = append(told, s) }})
	if err != nil || r.Cached {
		t.Fatal(err)
	}
	if len(told) == 0 || !strings.Contains(told[0], "nothing can be kept") {
		t.Errorf("%q", told)
	}
}

// What cannot be built is said with the compiler's own words, and is not kept.
func TestErrors(t *testing.T) {
	dir, cache := project(t), t.TempDir()
	build := func(dir string, o Options) error {
		o.CacheDir = cache
		_, err := Guest(context.Background(), dir, o)
		return err
	}
	write(t, dir, map[string]string{"main.go": "package main\n\nfunc main() { oops }\n"})
	var failed *Error
	if err := build(dir, Options{Compiler: "go"}); !errors.As(err, &failed) || !strings.Contains(failed.Output, "main.go:3:15: undefined: oops") {
		t.Errorf("a mistake: %v", err)
	}
	if err := build(filepath.Join(dir, "nowhere"), Options{}); err == nil || !strings.Contains(err.Error(), "no such folder") {
		t.Errorf("no folder: %v", err)
	}
	if err := build(dir, Options{Compiler: "gcc"}); !errors.Is(err, ErrNoCompiler) || !strings.Contains(err.Error(), "auto, go nor tinygo") {
		t.Errorf("another compiler: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	for _, c := range []string{"", "go", "tinygo"} {
		if err := build(dir, Options{Compiler: c}); !errors.Is(err, ErrNoCompiler) {
			t.Errorf("without compilers, %q: %v", c, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "v*/*")); len(left) > 0 {
		t.Errorf("kept: %v", left)
	}
}

// A build that nobody waits for any more ends.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Guest(ctx, project(t), Options{Compiler: "go"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
