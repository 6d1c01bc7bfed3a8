package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/slots"
	"github.com/wasmactors/wasmactors/internal/wasi"
)

// imageVersion is part of every key in the disk cache. It must be raised when
// the rewriter's output, the record's format or wazero changes;
// TestImageVersion notices the first.
const imageVersion = "31 wazero-1.12.0"

// Load makes an image of a module: it decodes and checks the module, meters it,
// runs its initialisation once, in an interpreter, freezes the result and
// compiles that. An error that the module or its configuration has caused is a *LoadError.
func (e *Engine) Load(ctx context.Context, wasm []byte, cfg ImageConfig) (*Image, error) {
	read := func(context.Context) ([]byte, error) { return wasm, nil }
	return e.LoadFrom(ctx, Source{sha256.Sum256(wasm), read}, cfg)
}

// Source is a module that need not be read if its image is in the cache.
type Source struct {
	Sum  [sha256.Size]byte // SHA-256 of the module
	Read func(context.Context) ([]byte, error)
}

// LoadFrom is Load for a module whose hash is known. If Read returns a module of another
// hash, that module is loaded.
//
// It returns as soon as ctx ends. A process that compiles is killed then. Work in this
// process goes on in the background until it ends by itself, and Close waits for it.
func (e *Engine) LoadFrom(ctx context.Context, src Source, cfg ImageConfig) (*Image, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !e.beginLoad() {
		return nil, ErrClosed
	}
	l := &loading{engine: e, ctx: ctx, done: make(chan struct{})}
	if told := cfg.Progress; told != nil {
		cfg.Progress = func(stage string) { l.unlessLeft(func() { told(stage) }) }
	}
	go func() {
		defer e.loads.Done()
		l.run(src, cfg)
	}()
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	return l.result()
}

// loading is a call of LoadFrom, and the goroutine that works for it.
type loading struct {
	engine *Engine
	ctx    context.Context
	done   chan struct{}

	mu    sync.Mutex
	left  bool // LoadFrom has returned
	image *Image
	err   error
}

func (l *loading) run(src Source, cfg ImageConfig) {
	image, err := l.engine.loadFrom(l.ctx, src, cfg)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left && image != nil {
		_ = image.Close() // it never fails
	}
	l.image, l.err = image, err
	close(l.done)
}

// unlessLeft calls f, unless LoadFrom has returned.
func (l *loading) unlessLeft(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.left {
		f()
	}
}

func (l *loading) result() (*Image, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		return l.image, l.err
	default:
		l.left = true
		return nil, l.ctx.Err()
	}
}

func (e *Engine) loadFrom(ctx context.Context, src Source, cfg ImageConfig) (*Image, error) {
	start := time.Now()
	if err := cfg.complete(); err != nil {
		return nil, &LoadError{Name: cfg.Name, Reason: err.Error(), Err: err}
	}
	if err := e.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer e.turns.Release(1)
	i, err := e.loadNow(ctx, src, cfg)
	if err != nil {
		return nil, err
	}
	i.info.LoadTime = time.Since(start)
	if err := e.register(i); err != nil {
		i.release()
		return nil, err
	}
	return i, nil
}

func (e *Engine) loadNow(ctx context.Context, src Source, cfg ImageConfig) (_ *Image, err error) {
	key := imageKey(src.Sum, &cfg)
	i := &Image{engine: e, cfg: cfg, key: key, sum: src.Sum}
	i.refs.Store(1)
	defer func() {
		if err != nil {
			i.release()
		}
	}()
	if err := i.openDirs(); err != nil {
		return nil, err
	}
	// The files that the initialisation may have read are not part of the key, so an
	// image with directories is not cached; its machine code is.
	keep := len(cfg.Dirs) == 0
	var rec *record
	if keep {
		i.open(key)
		rec = i.cachedRecord()
	}
	cached := rec != nil
	if cached {
		if err := i.finish(ctx, rec, nil); errors.Is(err, errNoModule) {
			cached = false
		} else if err != nil {
			return nil, err
		}
	}
	if !cached {
		wasm, err := src.Read(ctx)
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(wasm); sum != src.Sum {
			i.release()
			read := func(context.Context) ([]byte, error) { return wasm, nil }
			return e.loadNow(ctx, Source{sum, read}, cfg)
		}
		var code []byte
		if rec, code, err = i.make(ctx, wasm, keep); err != nil {
			return nil, err
		}
		if !keep {
			i.open(cache.KeyOf(key[:], rec.module))
		}
		if err := i.finish(ctx, rec, code); err != nil {
			return nil, err
		}
		if keep {
			i.storeRecord(rec)
		}
	}
	i.noteUse(cached)
	i.info.Cached = cached
	i.info.WasmBytes = rec.meta.WasmBytes
	return i, nil
}

// make makes the record of a module, and its machine code; code is nil if it has not been
// compiled.
func (i *Image) make(ctx context.Context, wasm []byte, compile bool) (rec *record, code []byte, err error) {
	limits := i.cfg.compileLimits(len(wasm))
	// Checked first, so that no process is started in vain.
	if err := i.cfg.checkSize(wasm); err != nil {
		return nil, nil, i.blame(err)
	}
	err = i.engine.within(ctx, limits.Memory, func() error {
		if i.engine.compiler == nil {
			rec, err = i.build(ctx, wasm)
			return err
		}
		p, err := i.engine.compiler.run(ctx, i, job{build: true, compile: compile && !i.engine.cfg.interpreter, module: wasm, limits: limits})
		if err == nil {
			rec, code = p.rec, p.code
		}
		return err
	})
	return rec, code, err
}

// openDirs opens the directories that the guest may use.
func (i *Image) openDirs() (err error) {
	if len(i.cfg.Dirs) == 0 {
		return nil
	}
	if i.roots, err = wasi.OpenDirs(i.cfg.Dirs); err != nil {
		return i.blame(err)
	}
	return nil
}

// refused is a rewritten module that wazero refuses.
func (i *Image) refused(err error) error {
	return &LoadError{Name: i.cfg.Name, Reason: "the rewritten module is refused: " + err.Error(), Err: err}
}

// complete fills in the defaults and checks the rest.
func (c *ImageConfig) complete() error {
	if c.MemoryLimit == 0 {
		c.MemoryLimit = DefaultMemoryLimit
	}
	c.MemoryLimit = min(c.MemoryLimit, slots.MaxMemory) / slots.WasmPage * slots.WasmPage
	if c.MemoryLimit == 0 {
		return errors.New("the memory limit is less than a page of 64 KiB")
	}
	if c.TableLimit == 0 {
		c.TableLimit = DefaultTableLimit
	}
	if c.EntriesLimit == 0 {
		c.EntriesLimit = max(DefaultEntriesLimit, c.TableLimit)
	}
	c.TablesLimit = cmp.Or(c.TablesLimit, DefaultTablesLimit)
	c.TypeLimit = cmp.Or(c.TypeLimit, DefaultTypeLimit)
	c.FunctionLimit = cmp.Or(c.FunctionLimit, DefaultFuncLimit)
	c.SegmentLimit = cmp.Or(c.SegmentLimit, DefaultSegmentLimit)
	c.ElementLimit = cmp.Or(c.ElementLimit, DefaultElementLimit)
	c.CompileSteps = cmp.Or(c.CompileSteps, DefaultCompileSteps)
	c.CompileBytes = cmp.Or(c.CompileBytes, DefaultCompileBytes)
	c.StackLimit = cmp.Or(c.StackLimit, DefaultStackLimit)
	c.GlobalLimit = cmp.Or(c.GlobalLimit, DefaultGlobalLimit)
	c.DataLimit = cmp.Or(c.DataLimit, DefaultDataLimit)
	c.SizeLimit = cmp.Or(c.SizeLimit, DefaultSizeLimit)
	c.InitFuel = cmp.Or(c.InitFuel, DefaultInitFuel)
	c.InitDeadline = cmp.Or(c.InitDeadline, DefaultInitDeadline)
	for _, kv := range c.Env {
		if i := strings.IndexByte(kv, '='); i <= 0 || strings.IndexByte(kv, 0) >= 0 {
			return fmt.Errorf("the environment entry %q is not KEY=value", kv)
		}
	}
	return nil
}

func (c *ImageConfig) progress(stage string) {
	if c.Progress != nil {
		c.Progress(stage)
	}
}

// imageKey covers everything that the frozen image depends on.
func imageKey(sum [sha256.Size]byte, c *ImageConfig) cache.Key {
	config, err := json.Marshal(struct {
		Version              string
		Memory               uint64
		Data, Size           uint64
		Table, Stack, Global uint32
		Counts               [6]uint32 // tables, their entries, types, functions, segments, elements
		Compile              [2]uint64 // steps, bytes
		Env                  []string
		Dirs                 []wasi.Dir
		NoFreeze, RawNaNs    bool
		InitFuel             uint64
		OS, Arch, GoCompiler string
		Places               bool `json:",omitempty"`
	}{imageVersion, c.MemoryLimit, c.DataLimit, c.SizeLimit, c.TableLimit, c.StackLimit, c.GlobalLimit,
		[6]uint32{c.TablesLimit, c.EntriesLimit, c.TypeLimit, c.FunctionLimit, c.SegmentLimit, c.ElementLimit}, [2]uint64{c.CompileSteps, c.CompileBytes}, c.Env, c.Dirs, c.NoFreeze, c.RawNaNs, c.InitFuel, goruntime.GOOS, goruntime.GOARCH, goruntime.Compiler, c.Places})
	if err != nil {
		panic(err) // plain data always marshals
	}
	return cache.KeyOf(config, sum[:])
}

// finish makes the image ready: it compiles the record's module, unless its machine
// code is there, and takes over its memory.
func (i *Image) finish(ctx context.Context, rec *record, code []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if code == nil {
		i.cfg.progress("compile")
	}
	start := time.Now()
	err := i.compile(ctx, rec, code)
	var load *LoadError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errNoModule), errors.Is(err, errProcess), errors.As(err, &load):
		return err
	default:
		return i.refused(err)
	}
	i.control = rec.meta.Control
	i.description = rec.meta.Description
	i.batching = rec.meta.Batching
	i.large = slices.Contains(i.description.Needs, abi.FeatureLarge)
	i.frozen = rec.meta.NotFrozen == ""
	i.startBytes, i.heapBytes = rec.meta.MemoryBytes, rec.meta.BesideBytes
	i.mutable, i.unsaved = rec.meta.Mutable, rec.meta.NotSaved
	if i.frozen {
		var err error
		if i.memory, err = i.engine.space.NewImage(rec.memory); err != nil {
			return fmt.Errorf("runtime: %s: the image's memory: %w", i.cfg.Name, err)
		}
	}
	i.info = ImageInfo{
		Name: i.cfg.Name, Hash: i.key.String(), FrozenBytes: rec.meta.FrozenBytes, Frozen: i.frozen, NotFrozen: rec.meta.NotFrozen,
		MemoryBytes: i.startBytes, MemoryLimit: i.cfg.MemoryLimit, Imports: rec.meta.Imports, Exports: rec.meta.Exports,
		InboxCap: int(i.control.InboxCap), OutboxCap: int(i.control.OutboxCap), Batching: i.batching,
		InitTime: rec.initTime, InitFuel: rec.meta.InitFuel, CompileTime: time.Since(start),
	}
	i.footprint = pooledBase
	if i.memory != nil {
		i.info.NonZeroPages = i.memory.NonZero() / 4096
		i.info.Mapped = i.memory.Mapped()
		i.footprint += int64(min(i.memory.NonZero(), pooledPages))
	}
	return nil
}

// compileWith compiles a module that stands for the image, with the store for its
// machine code, which may be nil.
func (i *Image) compileWith(ctx context.Context, meta recordMeta, module []byte, store *codeStore) error {
	cfg := runtimeConfig(i.engine.cfg.interpreter).WithDebugInfoEnabled(i.cfg.Places)
	var kept wazero.CompilationCache
	if store != nil {
		var err error
		if kept, err = compilationCache(store); err != nil {
			return err
		}
		cfg = cfg.WithCompilationCache(kept)
	}
	r := wazero.NewRuntimeWithConfig(ctx, cfg)
	var compiled wazero.CompiledModule
	err := link(ctx, r, meta.UsesGuest, meta.UsesWASI)
	if err == nil {
		compiled, err = r.CompileModule(experimental.WithCompilationWorkers(ctx, goruntime.GOMAXPROCS(0)), module)
	}
	if err != nil {
		closeRuntime(r, kept)
		return err
	}
	i.runtime, i.codeCache, i.compiled = r, kept, compiled
	return nil
}
