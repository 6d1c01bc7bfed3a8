//go:build unix

package build

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// TestForeignSources: C, assembly and objects are refused by both compilers, wherever they come from, before
// either of them is started, unless Cgo is set.
func TestForeignSources(t *testing.T) {
	const c = "package main\n\n// #include \"/etc/passwd\"\nimport \"C\"\n"
	lib := map[string]string{
		"go.mod": "module guest\n\ngo 1.23\n\nrequire example.com/lib v1.0.0\n\nreplace example.com/lib => ./lib\n",
		"l.go":   "package main\n\nimport _ \"example.com/lib\"\n", "lib/go.mod": "module example.com/lib\n", "lib/l.go": "package lib\n",
	}
	with := func(more map[string]string, name, text string) map[string]string {
		files := map[string]string{name: text}
		for n, t := range more {
			files[n] = t
		}
		return files
	}
	for _, x := range []struct {
		name    string
		files   map[string]string
		refused string // the file; "": it is none
		tinygo  bool   // refused for TinyGo only, whose tags are not known
	}{
		{"C in a comment", map[string]string{"c.go": c}, "c.go", false},
		{"in raw quotes", map[string]string{"c.go": "package main\n\nimport `C`\n"}, "c.go", false},
		{"in a group", map[string]string{"c.go": "package main\n\nimport (\n\t\"fmt\"\n\tx /* */ \"C\"\n)\n"}, "c.go", false},
		{"escaped", map[string]string{"c.go": "package main\n\nimport \"\\x43\"\n"}, "c.go", false},
		{"with a mistake before it", map[string]string{"c.go": "package main\n\nimport 7\nimport \"C\"\n"}, "c.go", false},
		{"with cgo only", map[string]string{"c.go": "//go:build cgo\n\n" + c}, "c.go", false},
		{"in a package below", map[string]string{"i.go": "package main\n\nimport _ \"guest/deep/er\"\n", "deep/er/c.go": strings.Replace(c, "main", "er", 1)}, "deep/er/c.go", false},
		{"a C file", map[string]string{"x.c": "#embed \"/etc/passwd\"\n"}, "x.c", false},
		{"C++", map[string]string{"x.cpp": "\n"}, "x.cpp", false},
		{"Objective C", map[string]string{"x.m": "\n"}, "x.m", false},
		{"assembly", map[string]string{"x.s": "#include \"/etc/passwd\"\n"}, "x.s", false},
		{"assembly of C", map[string]string{"x.S": ".incbin \"/etc/passwd\"\n"}, "x.S", false},
		{"assembly that includes by another line", map[string]string{"x_wasm.s": "#define X\n#/* */include \"/etc/passwd\"\n"}, "x_wasm.s", false},
		{"assembly that includes in a macro", map[string]string{"x_wasm.s": "#define X include \"/etc/passwd\"\n#X\n"}, "x_wasm.s", false},
		{"assembly that includes nothing", map[string]string{"x_wasm.s": "#define N $0\n\nTEXT ·f(SB), 4, N-0\n\tRET\n", "f.go": "package main\n\nfunc f()\n"}, "x_wasm.s", true},
		{"assembly of C that includes nothing", map[string]string{"x_wasm.S": "\n"}, "x_wasm.S", false},
		{"an object", map[string]string{"x.syso": "\x00asm"}, "x.syso", false},
		{"swig", map[string]string{"x.swig": "\n"}, "x.swig", false},
		{"in a replaced module", with(lib, "lib/x.c", "\n"), "lib/x.c", false},
		{"under a tag that may hold", map[string]string{"c.go": "//go:build scheduler.none && !never\n\n" + c}, "c.go", true},
		{"under a tag in a package", map[string]string{"i.go": "//go:build gc.custom\n\npackage main\n\nimport _ \"guest/deep\"\n", "deep/x.c": "\n", "deep/d.go": "package deep\n"}, "deep/x.c", true},

		{"of another system", map[string]string{"c_linux.go": c}, "", false},
		{"of another processor", map[string]string{"x_amd64.s": "\n", "y.s": "//go:build arm64 && !noasm\n\n"}, "", false},
		{"without cgo", map[string]string{"c.go": "//go:build !cgo\n\npackage main\n"}, "", false},
		{"not with TinyGo", map[string]string{"x.s": "//go:build unix\n\n"}, "", false},
		{"a header alone", map[string]string{"x.h": "\n"}, "", false},
		{"hidden", map[string]string{"_x.c": "\n", ".y.c": "\n"}, "", false},
		{"not imported", map[string]string{"other/x.c": "\n", "other/o.go": "package other\n"}, "", false},
		{"a text", map[string]string{"s.go": "package main\n\nvar s = \"#include\"\n"}, "", false},
	} {
		for _, compiler := range []string{"go", "tinygo"} {
			t.Run(x.name+"/"+compiler, func(t *testing.T) {
				if compiler == "go" && x.refused == "" && x.name != "without cgo" && !thorough.Slow {
					t.Skip("compiles")
				}
				f := newFakeTinyGo(t)
				dir := plain(t)
				write(t, dir, x.files)
				o := Options{Compiler: compiler, Root: dir}
				_, err := Guest(context.Background(), dir, o)
				refused := x.refused != "" && (compiler == "tinygo" || !x.tinygo)
				if !refused {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), filepath.Join(dir, x.refused)) || !strings.Contains(err.Error(), "--allow-cgo") {
					t.Errorf("%v", err)
				}
				if strings.Contains(f.read("calls"), "build ") {
					t.Error("the compiler was started")
				}
				if o.Cgo = true; compiler == "tinygo" {
					if _, err := Guest(context.Background(), dir, o); err != nil && !strings.Contains(err.Error(), "/etc/passwd") {
						t.Errorf("allowed: %v", err)
					}
				}
			})
		}
	}
}

// TestHeadersAreInputs: headers outside of the module are sources like others: shown, and part of what is kept.
func TestHeadersAreInputs(t *testing.T) {
	f := newFakeTinyGo(t)
	dir, other, cache := plain(t), t.TempDir(), t.TempDir()
	write(t, other, map[string]string{"one.h": "#include \"two.h\"\n", "two.h": "#define TWO 2\n", "data": "x"})
	write(t, dir, map[string]string{
		"c.go": "package main\n\n// #cgo CFLAGS: -I${SRCDIR}/include -DX=1\n// #include <three.h>\nimport \"C\"\n", "include/three.h": "# include \"" + other + "/one.h\"\n",
		"x.c": "#embed \"" + other + "/data\" limit(1)\n#include <stdint.h>\n",
	})
	var asked []Outside
	o := Options{Compiler: "tinygo", CacheDir: cache, Cgo: true, Root: dir, Allow: func(found []Outside) error { asked = found; return nil }}
	build := func(cached bool) {
		t.Helper()
		r, err := Guest(context.Background(), dir, o)
		if err != nil || r.Cached != cached {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	build(false)
	if text := fmt.Sprint(asked); !strings.Contains(text, "one.h") && !strings.Contains(text, other) {
		t.Error(text)
	}
	build(true)
	for _, name := range []string{"two.h", "data", "one.h"} {
		write(t, other, map[string]string{name: "// " + name + "\n#include \"two.h\"\n"})
		build(false)
		build(true)
	}
	o.Allow = nil
	var outside *OutsideError
	if _, err := Guest(context.Background(), dir, o); !errors.As(err, &outside) {
		t.Error(err)
	}
	o.Root = ""
	write(t, dir, map[string]string{"x.c": "#define F \"" + other + "/data\"\n#embed F\n"})
	build(false)
	build(false) // nobody knows what it depends on
	for _, flag := range []string{"-I/usr/include", "-I${SRCDIR}/..", "-fplugin=/x.so", "-Xclang -load", "-include /etc/passwd", "@file", "-Wl,-T", "-mllvm"} {
		write(t, dir, map[string]string{"c.go": "package main\n\n/*\n#cgo LDFLAGS: -O2 " + flag + "\n*/\nimport \"C\"\n"})
		if _, err := Guest(context.Background(), dir, o); err == nil || !strings.Contains(err.Error(), "#cgo") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if !strings.Contains(f.read("environment"), "CGO_ENABLED=1\n") {
		t.Error(f.read("environment"))
	}
}
