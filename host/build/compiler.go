package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// compiler is a compiler that was found, and how it is called.
type compiler struct {
	name string // go or tinygo
	path string
	env  []string // without what depends on the build

	gotool           string // the go command, which lists sources for TinyGo, too
	goroot, modcache string
	identity         []string // everything about the compiler that its output may depend on
	tags, flags      []string
	o                Options
}

// choose finds the compiler and asks for its version: the program in the PATH may be a
// wrapper, whose own file does not change with the compiler behind it.
func choose(ctx context.Context, dir string, o Options) (*compiler, error) {
	env := environment(os.Environ(), dir, o.Root)
	find := func(name string) string { return lookup(env, name) }
	c := &compiler{name: o.Compiler, gotool: find("go"), env: env, o: o}
	switch o.Compiler {
	case "", "auto":
		if c.name, c.path = "tinygo", find("tinygo"); c.path == "" {
			c.name, c.path = "go", c.gotool
		}
	case "go":
		c.path = c.gotool
	case "tinygo":
		c.path = find("tinygo")
	default:
		return nil, fmt.Errorf("%w: %q is neither auto, go nor tinygo", ErrNoCompiler, o.Compiler)
	}
	switch {
	case c.path == "":
		return nil, fmt.Errorf("%w: %s is not in the PATH; install it, or use a bundle whose modules are .wasm files", ErrNoCompiler, c.name)
	case c.gotool == "":
		return nil, fmt.Errorf("%w: tinygo needs the go command, which is not in the PATH", ErrNoCompiler)
	}
	for _, t := range o.Tags {
		if !tagRule().MatchString(t) {
			return nil, fmt.Errorf("%w: %q cannot be a build tag", ErrFlag, t)
		}
	}
	for _, f := range o.Flags[c.name] {
		if err := CheckFlag(c.name, f); err != nil {
			return nil, err
		}
	}
	c.tags, c.flags = o.Tags, o.Flags[c.name]
	return c, c.identify(ctx)
}

// identify asks the tools for their versions and settings, in a folder of the system's, where
// no go.mod and no go.work applies.
func (c *compiler) identify(ctx context.Context) error {
	neutral := os.TempDir()
	out, err := c.run(ctx, neutral, "", c.gotool, "env", "-json", "GOVERSION", "GOROOT", "GOMODCACHE", "GOEXPERIMENT")
	if err != nil {
		return err
	}
	var v struct{ GOVERSION, GOROOT, GOMODCACHE, GOEXPERIMENT string }
	if err := json.Unmarshal(out, &v); err != nil || v.GOROOT == "" {
		return fmt.Errorf("the output of %s env cannot be read: %q", c.gotool, out)
	}
	c.goroot, c.modcache = v.GOROOT, v.GOMODCACHE
	c.identity = []string{c.gotool, stamp(c.gotool), v.GOVERSION, v.GOROOT, v.GOEXPERIMENT}
	if c.name != "tinygo" {
		return nil
	}
	version, err := c.run(ctx, neutral, "", c.path, "version")
	if err != nil {
		return err
	}
	root, err := c.run(ctx, neutral, "", c.path, "env", "TINYGOROOT")
	if err != nil {
		return err
	}
	folder := strings.TrimSpace(string(root))
	c.identity = append(c.identity, c.path, stamp(c.path), string(version), folder,
		stamp(filepath.Join(folder, "src")), stamp(filepath.Join(folder, "targets", "wasip1.json")))
	return nil
}

// args of the compiler's command line, without the output and the package.
func (c *compiler) args() []string {
	var args []string
	if c.name == "tinygo" {
		// No scheduler: a turn is one call. Without it an actor takes a tenth of the memory.
		args = []string{"build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-no-debug"}
		if !slices.ContainsFunc(c.flags, func(f string) bool { return strings.HasPrefix(f, "-panic=") }) {
			args = append(args, "-panic=print")
		}
	} else {
		// -w drops DWARF, which rewriting would drop anyway; the names of functions stay.
		// A profile (default.pgo) in the folder is not used.
		args = []string{"build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-pgo=off"}
		if !slices.ContainsFunc(c.flags, func(f string) bool { return strings.HasPrefix(f, "-ldflags=") }) {
			args = append(args, "-ldflags=-w")
		}
	}
	if len(c.tags) > 0 {
		args = append(args, "-tags="+strings.Join(c.tags, ","))
	}
	for _, f := range c.flags {
		if x, ok := strings.CutPrefix(f, "-ldflags="); ok && c.name == "go" {
			f = "-ldflags=-w " + x
		}
		args = append(args, f)
	}
	return args
}

func (c *compiler) compile(ctx context.Context, dir, tmp string) ([]byte, error) {
	out := filepath.Join(tmp, "guest.wasm")
	if _, err := c.run(ctx, dir, tmp, c.path, append(c.args(), "-o", out, ".")...); err != nil {
		return nil, err
	}
	wasm, err := regular.Read(ctx, out, MaxModuleBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("building %s: %s has ended without an error, and without a module", dir, c.name)
	case errors.Is(err, regular.ErrSize):
		return nil, fmt.Errorf("building %s: the module is larger than %d bytes", dir, int64(MaxModuleBytes))
	}
	return wasm, err
}

// key names what a build depends on besides the sources.
func (c *compiler) key(dir string) cache.Key {
	parts := [][]byte{[]byte("wasmactors build 5"), []byte(dir), []byte(c.name), fmt.Append(nil, c.o.Cgo, c.o.Root)}
	for _, list := range [][]string{c.args(), c.identity} {
		parts = append(parts, []byte(strings.Join(list, "\x00")))
	}
	return cache.KeyOf(parts...)
}

// stamp is a text that changes when a file does: its path, size and time.
func stamp(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprint(path, info.Size(), info.ModTime().UnixNano())
}

var tagRule = pattern(`^[A-Za-z_][A-Za-z0-9_.]{0,63}$`)

// accepted are the flags that a manifest may give, by compiler: they change the code
// that comes out and cannot name a program or a file.
var accepted = map[string][]func() *regexp.Regexp{
	"go": {
		pattern(`^-gcflags=(all=)?-[lNB]( -[lNB])*$`),
		pattern(`^-ldflags=(-s|-X [A-Za-z0-9_./-]+=[A-Za-z0-9_.:/+-]*)( (-s|-X [A-Za-z0-9_./-]+=[A-Za-z0-9_.:/+-]*))*$`),
	},
	"tinygo": {
		pattern(`^-opt=(none|0|1|2|s|z)$`),
		pattern(`^-gc=(leaking|conservative|precise)$`),
		pattern(`^-panic=(print|trap)$`),
		pattern(`^-stack-size=[0-9]{1,7}(kb|KB|k)?$`),
		pattern(`^-ldflags=-X [A-Za-z0-9_./-]+=[A-Za-z0-9_.:/+-]*( -X [A-Za-z0-9_./-]+=[A-Za-z0-9_.:/+-]*)*$`),
	},
}

// CheckFlag reports whether a manifest may give a flag to a compiler, go or tinygo.
// The error wraps ErrFlag.
func CheckFlag(compiler, flag string) error {
	rules, ok := accepted[compiler]
	if !ok {
		return fmt.Errorf("%w: %q is neither go nor tinygo", ErrFlag, compiler)
	}
	for _, r := range rules {
		if len(flag) <= 1024 && r().MatchString(flag) {
			return nil
		}
	}
	known := map[string]string{
		"go":     "-gcflags=-l, -gcflags=-N, -gcflags=-B, -ldflags=-s, -ldflags=-X pkg.name=value",
		"tinygo": "-opt=0 1 2 s z, -gc=leaking conservative precise, -panic=print trap, -stack-size=64kb, -ldflags=-X pkg.name=value",
	}
	return fmt.Errorf("%w: %q; for %s there are %s", ErrFlag, flag, compiler, known[compiler])
}

// lookup finds a program in the PATH of an environment; "" if it is not there.
func lookup(env []string, name string) string {
	for _, dir := range filepath.SplitList(valueOf(env, "PATH")) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}
