package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/build"
	"go/build/constraint"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// ErrForeign is returned for sources that are not Go without [Options.Cgo]. Compilers and assemblers
// include any file that such a source names.
var ErrForeign = errors.New("sources that are not Go")

// notGo are the extensions of files that a compiler of another language, an assembler or the linker reads.
var notGo = []string{".c", ".cc", ".cpp", ".cxx", ".m", ".s", ".S", ".sx", ".f", ".F", ".for", ".f90", ".swig", ".swigcxx", ".syso"}

// foreign lists the files of a package that may be compiled, and are not Go alone. The compiler is not asked:
// TinyGo compiles C whatever CGO_ENABLED says.
func (c *compiler) foreign(ctx context.Context, dir string, names []string) (found []string, err error) {
	for _, name := range names {
		if name[0] == '.' || name[0] == '_' {
			continue
		}
		isGo := filepath.Ext(name) == ".go"
		if !isGo && !slices.Contains(notGo, filepath.Ext(name)) {
			continue
		}
		text, err := regular.Read(ctx, filepath.Join(dir, name), maxSource)
		if err != nil {
			return nil, err
		}
		if isGo && !importsC(text) || c.includesNothing(name, text) {
			continue
		}
		if c.mayBuild(dir, name, text) {
			found = append(found, filepath.Join(dir, name))
		}
	}
	return found, nil
}

// includesNothing reports whether a file is assembly of standard Go that can name no other file: the one directive that does is
// spelt out in the file itself. Then its instructions are the guest's, like those of Go. An assembler of C knows other ways.
func (c *compiler) includesNothing(name string, text []byte) bool {
	return c.name != "tinygo" && filepath.Ext(name) == ".s" && !bytes.Contains(text, []byte("include"))
}

// importsC reports whether a Go file imports C; one that cannot be parsed does if it may.
func importsC(text []byte) bool {
	return bytes.Contains(text, []byte(`"C"`)) || bytes.Contains(text, []byte("`C`")) || slices.Contains(importsOf(text), "C")
}

// mayBuild reports whether a file may be part of a build for WebAssembly. TinyGo's tags depend on its version
// and flags, so with TinyGo an unknown tag may hold or not.
func (c *compiler) mayBuild(dir, name string, text []byte) bool {
	match := func(name string, text []byte, tags []string) bool {
		b := build.Default
		b.GOOS, b.GOARCH, b.Compiler, b.CgoEnabled, b.BuildTags = "wasip1", "wasm", "gc", true, tags
		b.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		ok, err := b.MatchFile(dir, name)
		return ok || err != nil
	}
	tags := slices.Clone(c.tags)
	if c.name != "tinygo" {
		return match(name, text, tags)
	}
	tags = append(tags, "tinygo", "tinygo.wasm", "purego")
	var open []string
	for _, tag := range tagsOf(text) {
		system := !match("x_"+tag+".go", []byte("package x"), nil) // and not ours
		if !system && !slices.Contains(append(tags, "wasm", "wasip1", "unix", "gc", "gccgo", "cgo"), tag) {
			open = append(open, tag)
		}
	}
	if len(open) > mostTags {
		return true
	}
	for set := range 1 << len(open) {
		held := slices.Clone(tags)
		for i, tag := range open {
			if set&(1<<i) != 0 {
				held = append(held, tag)
			}
		}
		if match(name, text, held) {
			return true
		}
	}
	return false
}

// mostTags bounds the tags of one file whose values are tried.
const mostTags = 8

// tagsOf are all tags in lines that may be build constraints.
func tagsOf(text []byte) (tags []string) {
	for line := range bytes.Lines(text) {
		l := strings.TrimSpace(string(line))
		if !constraint.IsGoBuild(l) && !constraint.IsPlusBuild(l) {
			continue
		}
		x, err := constraint.Parse(l)
		if err != nil {
			continue
		}
		x.Eval(func(tag string) bool { // it is called for all
			if !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
			return true
		})
	}
	return tags
}

// mostNamed bounds the files that an error names.
const mostNamed = 10

func refuseForeign(dir string, found []string) error {
	list := strings.Join(found[:min(len(found), mostNamed)], "\n  ")
	if more := len(found) - mostNamed; more > 0 {
		list += fmt.Sprintf("\n  and %d more", more)
	}
	return fmt.Errorf("building %s: %w are compiled only with --allow-cgo, because they can include any file of yours:\n  %s", dir, ErrForeign, list)
}

var cgoLine = pattern(`(?m)^[ \t]*(?://|/?\*)?[ \t]*#cgo[ \t]+([^:\n]*):(.*)$`)

// cgoFlag is a flag of a #cgo line that cannot name a program or a plugin. TinyGo passes on whatever is there.
var cgoFlag = pattern(`^-(I.+|D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?|U[A-Za-z_][A-Za-z0-9_]*|O[0-3sz]?|std=[a-z0-9+]+|W[a-z][a-z0-9=+-]*|w|g|fno-[a-z-]+|ffast-math|f(un)?signed-char|msimd128|mbulk-memory|lm|lc)$`)

// checkCgo checks the #cgo lines of a Go file and returns the folders in which it looks for headers: those of
// the package and below.
func checkCgo(dir, path string, text []byte) (include []string, err error) {
	for _, m := range cgoLine().FindAllSubmatch(text, -1) {
		for _, flag := range strings.Fields(strings.ReplaceAll(string(m[2]), "${SRCDIR}", dir)) {
			flag = strings.TrimSuffix(flag, "*/")
			if flag == "" {
				continue
			}
			if !cgoFlag().MatchString(flag) {
				return nil, fmt.Errorf("%s: a #cgo line has %q: %w", path, flag, ErrFlag)
			}
			if at, ok := strings.CutPrefix(flag, "-I"); ok {
				if !filepath.IsAbs(at) {
					at = filepath.Join(dir, at)
				}
				if !within(at, dir) {
					return nil, fmt.Errorf("%s: its #cgo flags name files outside of the package: %s", path, flag)
				}
				include = append(include, at)
			}
		}
	}
	return include, nil
}
