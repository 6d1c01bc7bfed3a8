//go:build unix

package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeTinyGo puts a tinygo on the PATH that is a wrapper: what it says of itself is
// in files beside it, and its own file never changes. It counts builds and records
// how it was called.
type fakeTinyGo struct {
	t   *testing.T
	dir string
}

func newFakeTinyGo(t *testing.T) *fakeTinyGo {
	t.Helper()
	f := &fakeTinyGo{t, t.TempDir()}
	root := filepath.Join(f.dir, "root")
	write(t, root, map[string]string{"src/runtime/runtime.go": "package runtime\n", "targets/wasip1.json": "{}"})
	f.set("version", "tinygo version 0.41.0 linux/amd64 (using go version go1.26.0 and LLVM version 20.1.1)")
	f.set("tinygoroot", root)
	script(t, filepath.Join(f.dir, "tinygo"), `here=`+f.dir+`
echo "$*" >>$here/calls
case "$1" in
version) cat $here/version ;;
env) cat $here/tinygoroot ;;
build)
  env >$here/environment
  while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
  printf '\000asm\001\000\000\000' >$out ;;
*) exit 9 ;;
esac`)
	real, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	script(t, filepath.Join(f.dir, "go"), `if [ "$1" = env ] && [ -f `+f.dir+`/goenv ]; then cat `+f.dir+`/goenv; else exec `+real+` "$@"; fi`)
	t.Setenv("PATH", f.dir+":"+os.Getenv("PATH"))
	return f
}

func (f *fakeTinyGo) set(name, text string) {
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text+"\n"), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeTinyGo) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(f.dir, name))
	return string(text)
}

// TestTinyGoCache: a build counts as up to date only if nothing has changed that
// TinyGo would see.
func TestTinyGoCache(t *testing.T) {
	f := newFakeTinyGo(t)
	dir, cache := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":          "module guest\n\ngo 1.23\n",
		"main.go":         "package main\n\nfunc main() {}\n",
		"tiny.go":         "//go:build tinygo && !scheduler.tasks\n\npackage main\n\nimport _ \"guest/only\"\n",
		"std.go":          "//go:build !tinygo\n\npackage main\n\nimport _ \"guest/never\"\n",
		"only/only.go":    "package only\n\nimport _ \"guest/deeper\"\n",
		"deeper/d.go":     "//go:build gc.conservative\n\npackage deeper\n\nconst D = 1\n",
		"never/never.go":  "package never\n",
		"c/c.go":          "package c\n\n// int one(void);\nimport \"C\"\n\nvar One = C.one()\n",
		"c/one.c":         "#include \"../headers/one.h\"\nint one(void) { return ONE; }\n",
		"headers/one.h":   "#define ONE 1\n",
		"usec.go":         "package main\n\nimport _ \"guest/c\"\n",
		"unrelated/u.txt": "x",
		"tags.go":         "//go:build scheduler.none\n\npackage main\n\nimport _ \"guest/under\"\n",
		"under/u.go":      "package under\n",
	})
	o := Options{Compiler: "tinygo", CacheDir: cache, Cgo: true, Root: dir}
	for _, s := range []struct {
		name   string
		change func()
		cached bool
	}{
		{"the first time", func() {}, false},
		{"nothing has changed", func() {}, true},
		{"a package that only TinyGo imports", func() {
			write(t, dir, map[string]string{"only/only.go": "package only\n\nimport _ \"guest/deeper\"\n\nvar X = 1\n"})
		}, false},
		{"a file is new in it", func() { write(t, dir, map[string]string{"only/more.go": "package only\n"}) }, false},
		{"what that one imports, under a tag", func() {
			write(t, dir, map[string]string{"deeper/d.go": "//go:build gc.conservative\n\npackage deeper\n\nconst D = 2\n"})
		}, false},
		{"what only a tag of TinyGo's brings in", func() { write(t, dir, map[string]string{"under/u.go": "package under\n\nvar U = 1\n"}) }, false},
		{"a C source", func() {
			write(t, dir, map[string]string{"c/one.c": "#include \"../headers/one.h\"\nint one(void) { return 1+ONE; }\n"})
		}, false},
		{"a header elsewhere", func() { write(t, dir, map[string]string{"headers/one.h": "#define ONE 2\n"}) }, false},
		{"nothing again", func() {}, true},
		{"the version behind the wrapper", func() {
			f.set("version", "tinygo version 0.41.1 linux/amd64 (using go version go1.26.0 and LLVM version 20.1.1)")
		}, false},
		{"the Go version that TinyGo uses", func() {
			f.set("version", "tinygo version 0.41.1 linux/amd64 (using go version go1.26.1 and LLVM version 20.1.1)")
		}, false},
		{"TINYGOROOT", func() {
			write(t, filepath.Join(f.dir, "root2"), map[string]string{"src/x.go": "", "targets/wasip1.json": "{}"})
			f.set("tinygoroot", filepath.Join(f.dir, "root2"))
		}, false},
		{"the target in TINYGOROOT", func() { write(t, filepath.Join(f.dir, "root2"), map[string]string{"targets/wasip1.json": "{ }"}) }, false},
		{"the Go version behind a wrapper", func() { f.set("goenv", `{"GOVERSION":"go1.99","GOROOT":"/opt/go","GOMODCACHE":"/m"}`) }, false},
		{"and then nothing", func() {}, true},
		{"a tag", func() { o.Tags = []string{"extra"} }, false},
		{"a flag", func() { o.Flags = map[string][]string{"tinygo": {"-opt=2"}} }, false},
		{"another compiler's flag", func() { o.Flags["go"] = []string{"-gcflags=-l"} }, true},
	} {
		s.change()
		before := strings.Count(f.read("calls"), "build ")
		r, err := Guest(context.Background(), dir, o)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if built := strings.Count(f.read("calls"), "build ") > before; r.Cached != s.cached || built == s.cached {
			t.Errorf("%s: cached is %v, built %v", s.name, r.Cached, built)
		}
	}
	if calls := f.read("calls"); !strings.Contains(calls, "build -target=wasip1 -buildmode=c-shared -scheduler=none -no-debug -panic=print -tags=extra -opt=2 -o ") {
		t.Errorf("%s", calls)
	}
	if env := f.read("environment"); !strings.Contains(env, "CGO_ENABLED=1\n") || !strings.Contains(env, "GOFLAGS=-buildvcs=false\n") {
		t.Errorf("%s", env)
	}
}

// C sources are compiled only if somebody says so.
func TestTinyGoWithoutC(t *testing.T) {
	f := newFakeTinyGo(t)
	if _, err := Guest(context.Background(), plain(t), Options{}); err != nil {
		t.Fatal(err)
	}
	if env := f.read("environment"); !strings.Contains(env, "CGO_ENABLED=0\n") {
		t.Errorf("%s", env)
	}
}
