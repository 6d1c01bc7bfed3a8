// Package build makes guests: it compiles a Go main package to WebAssembly, with
// TinyGo where there is one or with standard Go, and remembers the result by the
// contents of all source files that went into it.
//
// The sources need not be trusted: nothing in their folder decides which programs run.
// docs/bundle.md says what is promised, and what is not.
package build

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options say how to build. The zero value builds with the compiler that is found, without
// a cache, from sources anywhere.
type Options struct {
	Compiler string // auto (or ""), go or tinygo
	CacheDir string // "" for none
	// CacheBytes bounds what is kept; 0 means DefaultCacheBytes.
	CacheBytes int64
	CacheKey   string // the key file; "" means the user's
	// Progress is called with a few words on what is going on; nil is fine.
	Progress func(text string)

	// Tags are build tags besides the compiler's own.
	Tags []string
	// Flags are further flags by compiler, go or tinygo. Only those that
	// [CheckFlag] knows are accepted.
	Flags map[string][]string
	// Cgo lets TinyGo compile C sources, and both compilers assemble: they include any file that is named
	// there. Without it such sources are refused, with ErrForeign, but for standard Go's assembly that includes nothing.
	// Standard Go has no cgo for WebAssembly.
	Cgo bool

	// Root is the folder that all sources must lie in, symbolic links followed; ""
	// is anywhere. Go's own packages, its module cache and the modules of the guest
	// SDK may lie elsewhere.
	Root string
	// Allow is asked about sources outside of Root, before anything is compiled. An
	// error refuses them; nil refuses all with an [OutsideError].
	Allow func([]Outside) error

	// Inputs is called with what the build reads, before anything is compiled, also if the
	// result comes from the cache or the build fails; nil is fine. See [Inputs].
	Inputs func(Inputs)

	// Deadline ends the compiler and all that it has started; 0 means
	// DefaultDeadline.
	Deadline time.Duration
}

// Bounds of a build.
const (
	// DefaultCacheBytes bounds the built modules on disk: some hundred guests.
	DefaultCacheBytes = 256 << 20
	// DefaultDeadline is how long a compiler may take.
	DefaultDeadline = 5 * time.Minute
	// MaxProcessBytes is what each process of a compiler may allocate, on Linux.
	MaxProcessBytes = 4 << 30
	// MaxModuleBytes bounds the module that comes out, in bytes.
	MaxModuleBytes = 256 << 20
	// maxOutput bounds what is kept of a compiler's messages, in bytes.
	maxOutput = 32 << 10
)

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

// Code is the module. A module in the cache is read only now, since a caller that has its
// image cached does not need it. If it was evicted meanwhile, it is built again; Sum tells
// whether it is still the same.
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
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	c, err := choose(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	st := openStore(o, c.key(dir))
	if found, ok := st.find(func(r *record) { o.tell(c.inputs(r.Files, r.Dirs)) }); ok {
		if err := o.outside(dir, found.outside); err != nil {
			return nil, err
		}
		again := func(ctx context.Context) (*Result, error) { return fresh(ctx, dir, c, st, o) }
		return &Result{Sum: found.sum, Compiler: c.name, Cached: true, Took: time.Since(start), store: st, again: again}, nil
	}
	return fresh(ctx, dir, c, st, o)
}

// fresh compiles, and stores the result in the cache.
func fresh(ctx context.Context, dir string, c *compiler, st store, o Options) (*Result, error) {
	start := time.Now()
	tmp, err := os.MkdirTemp("", "wasmactors-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	o.Progress("compiling " + filepath.Base(dir) + " with " + c.name)
	allowed, err := c.ahead(ctx, dir)
	if err != nil {
		o.tell(guessInputs(dir))
		return nil, err
	}
	s, err := c.sources(ctx, dir, tmp)
	if err != nil {
		o.tell(guessInputs(dir))
		return nil, err
	}
	o.tell(c.inputs(s.reads()))
	if len(s.foreign) > 0 && !o.Cgo {
		return nil, refuseForeign(dir, s.foreign)
	}
	outside := s.outside(o.Root, c.goroot, c.modcache)
	outside = slices.DeleteFunc(outside, func(f Outside) bool {
		return slices.ContainsFunc(allowed, func(a Outside) bool { return a.Real == f.Real })
	})
	if err := o.outside(dir, outside); err != nil {
		return nil, err
	}
	outside = append(allowed, outside...)
	before, err := st.inputs(s, outside)
	if err == nil && before != nil && s.open {
		before, err = nil, errors.New("what its C sources include cannot be known")
	}
	if err != nil {
		o.Progress("the result cannot be kept: " + err.Error())
	}
	wasm, err := c.compile(ctx, dir, tmp)
	if err != nil {
		return nil, c.explain(ctx, dir, err)
	}
	for _, hint := range uncalled(ctx, dir) {
		o.Progress("hint: " + hint)
	}
	if before != nil {
		if err := st.save(before, dir, wasm); err != nil {
			o.Progress("the result cannot be kept: " + err.Error())
		}
	}
	return &Result{Sum: sha256.Sum256(wasm), wasm: wasm, Compiler: c.name, Took: time.Since(start)}, nil
}

// ahead checks what the go command reads before it lists anything, and has what lies outside allowed.
func (c *compiler) ahead(ctx context.Context, dir string) ([]Outside, error) {
	m, err := readModule(ctx, dir)
	if err != nil {
		return nil, err
	}
	outside := m.sources().outside(c.o.Root, c.goroot, c.modcache)
	if err := c.o.outside(dir, outside); err != nil {
		return nil, err
	}
	if m.err != nil {
		return nil, m.err
	}
	return outside, m.check(ctx, dir)
}

// Error is a guest that does not compile, with the compiler's output.
type Error struct {
	Dir    string
	Output string // at most maxOutput bytes
	Hint   string // what to do about it, or ""
}

func (e *Error) Error() string {
	text := fmt.Sprintf("building %s has failed:\n%s", e.Dir, trimRight(e.Output))
	if e.Hint != "" {
		text += "\n" + e.Hint
	}
	return text
}

// Errors of this package.
var (
	// ErrNoCompiler is returned if the compiler is not found.
	ErrNoCompiler = errors.New("no compiler")
	// ErrDeadline is returned when a compiler has taken too long.
	ErrDeadline = errors.New("the compiler has taken too long")
	// ErrFlag is returned for a tag or a flag that is not accepted.
	ErrFlag = errors.New("not an accepted build flag")
)
