// Package build makes guests: it compiles a Go main package to WebAssembly, with
// TinyGo where there is one or with standard Go, and remembers the result by the
// contents of all source files that went into it.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/internal/cache"
)

// Options say how to build. The zero value builds with what there is, without a
// cache.
type Options struct {
	Compiler string // auto (or ""), go or tinygo
	CacheDir string // "" for none
	// CacheBytes bounds what is kept; 0 means DefaultCacheBytes.
	CacheBytes int64
	CacheKey   string // the key file; "" means the user's
	// Progress is told what is going on, in a few words; nil is fine.
	Progress func(text string)
}

// DefaultCacheBytes bounds the built modules on disk: some hundred guests.
const DefaultCacheBytes = 256 << 20

// Result is a built guest.
type Result struct {
	Sum      [sha256.Size]byte // of the module
	Compiler string            // go or tinygo
	Cached   bool
	Took     time.Duration

	wasm  []byte // nil: it was not read yet
	again func(context.Context) (*Result, error)
	store store
}

// Code is the module. What the cache holds is read only now: whoever keeps what
// becomes of a module can do without. Should it have gone meanwhile, it is built
// again; Sum tells whether it is still the same.
func (r *Result) Code(ctx context.Context) ([]byte, error) {
	if r.wasm == nil {
		wasm, ok := r.store.module(r.Sum)
		if !ok {
			built, err := r.again(ctx)
			if err != nil {
				return nil, err
			}
			*r = *built
			wasm = r.wasm
		}
		r.wasm = wasm
	}
	return r.wasm, nil
}

// Error is a guest that does not compile, with what the compiler has said.
type Error struct {
	Dir    string
	Output string // at most maxOutput bytes
}

func (e *Error) Error() string {
	return fmt.Sprintf("building %s has failed:\n%s", e.Dir, strings.TrimRight(e.Output, "\n"))
}

// ErrNoCompiler is returned where the compiler that is asked for is missing.
var ErrNoCompiler = errors.New("no compiler")

// maxOutput bounds what is kept of a compiler's messages.
const maxOutput = 32 << 10

// Guest builds the main package in dir.
func Guest(ctx context.Context, dir string, o Options) (*Result, error) {
	start := time.Now()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("building %s: there is no such folder", dir)
	}
	c, err := choose(o.Compiler)
	if err != nil {
		return nil, err
	}
	progress := o.Progress
	if progress == nil {
		progress = func(string) {}
	}
	st := openStore(o, cacheKey(dir, c), progress)
	if sum, ok := st.find(); ok {
		again := func(ctx context.Context) (*Result, error) { return fresh(ctx, dir, c, st, progress) }
		return &Result{Sum: sum, Compiler: c.name, Cached: true, Took: time.Since(start), store: st, again: again}, nil
	}
	return fresh(ctx, dir, c, st, progress)
}

// fresh compiles, and keeps the result.
func fresh(ctx context.Context, dir string, c compiler, st store, progress func(string)) (*Result, error) {
	start := time.Now()
	progress("compiling " + filepath.Base(dir) + " with " + c.name)
	before, notKept := st.inputs(ctx, dir)
	wasm, err := c.compile(ctx, dir)
	if err != nil {
		return nil, err
	}
	if notKept == nil {
		notKept = st.save(before, dir, wasm)
	}
	if notKept != nil {
		progress("the result cannot be kept: " + notKept.Error())
	}
	return &Result{Sum: sha256.Sum256(wasm), wasm: wasm, Compiler: c.name, Took: time.Since(start)}, nil
}

// compiler is one that was found.
type compiler struct {
	name string
	path string
}

// choose finds the compiler.
func choose(want string) (compiler, error) {
	find := func(name string) (compiler, bool) {
		path, err := exec.LookPath(name)
		return compiler{name, path}, err == nil
	}
	switch want {
	case "", "auto":
		if c, ok := find("tinygo"); ok {
			return c, nil
		}
		want = "go"
		fallthrough
	case "go", "tinygo":
		if c, ok := find(want); ok {
			return c, nil
		}
		return compiler{}, fmt.Errorf("%w: %s is not in the PATH", ErrNoCompiler, want)
	}
	return compiler{}, fmt.Errorf("%w: %q is neither auto, go nor tinygo", ErrNoCompiler, want)
}

// args of the compiler's command line, without the output and the package.
func (c compiler) args() []string {
	if c.name == "tinygo" {
		// No scheduler: a turn is one call. Without it an actor takes a tenth of the memory.
		return []string{"build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-panic=print", "-no-debug"}
	}
	// -w drops DWARF, which rewriting would drop anyway; the names of functions stay.
	return []string{"build", "-buildmode=c-shared", "-trimpath", "-ldflags=-w"}
}

func (c compiler) env() []string {
	env := append(os.Environ(), "GOWORK=off")
	if c.name == "go" {
		env = append(env, "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	}
	return env
}

func (c compiler) compile(ctx context.Context, dir string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "wasmactors-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "guest.wasm")
	cmd := exec.CommandContext(ctx, c.path, append(c.args(), "-o", out, ".")...)
	cmd.Dir, cmd.Env = dir, c.env()
	var text bounded
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &Error{Dir: dir, Output: text.String()}
	}
	return os.ReadFile(out)
}

// bounded keeps the first maxOutput bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// cacheKey names what a build depends on besides the sources.
func cacheKey(dir string, c compiler) cache.Key {
	return cache.KeyOf([]byte("wasmactors build 3"), []byte(dir), []byte(c.name), []byte(strings.Join(c.args(), " ")),
		[]byte(os.Getenv("GOFLAGS")), []byte(stamp(c.path)))
}

// stamp changes when a file does.
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
