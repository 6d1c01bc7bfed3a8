package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmactors/wasmactors/runtime/cache"
	"github.com/wasmactors/wasmactors/runtime/slots"
	"github.com/wasmactors/wasmactors/runtime/wasi"
)

// imageVersion is part of every key in the disk cache. It must be raised when
// the rewriter's output, the record's format or wazero changes;
// TestImageVersion notices the first.
const imageVersion = "7 wazero-1.12.0"

// Load makes an image of a module: it decodes and checks the module, meters it,
// runs its initialisation once, in an interpreter, freezes the result and
// compiles that. Errors are *LoadError if the module or its configuration is to
// blame.
func (e *Engine) Load(ctx context.Context, wasm []byte, cfg ImageConfig) (*Image, error) {
	start := time.Now()
	if e.isClosed() {
		return nil, ErrClosed
	}
	if err := cfg.complete(); err != nil {
		return nil, &LoadError{Name: cfg.Name, Reason: err.Error(), Err: err}
	}
	key := imageKey(wasm, &cfg)
	i := &Image{engine: e, cfg: cfg, key: key}
	i.refs.Store(1)
	var err error
	if len(cfg.Dirs) > 0 {
		if i.roots, err = wasi.OpenDirs(cfg.Dirs); err != nil {
			return nil, &LoadError{Name: cfg.Name, Reason: err.Error(), Err: err}
		}
	}
	// What the initialisation may have read from a directory is not part of the
	// key, so such an image is not kept; its machine code is.
	keep := len(cfg.Dirs) == 0
	var rec *record
	if keep {
		rec = e.recall(key)
	}
	cached := rec != nil
	if rec == nil {
		if rec, err = i.build(ctx, wasm); err != nil {
			i.release()
			return nil, err
		}
	}
	if err := i.finish(ctx, rec); err != nil {
		i.release()
		return nil, err
	}
	if keep && !cached {
		e.remember(key, rec)
	}
	i.info.Cached = cached
	i.info.WasmBytes = len(wasm)
	i.info.LoadTime = time.Since(start)
	if err := e.adopt(i); err != nil {
		i.release()
		return nil, err
	}
	return i, nil
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
	if c.StackLimit == 0 {
		c.StackLimit = DefaultStackLimit
	}
	if c.InitFuel == 0 {
		c.InitFuel = DefaultInitFuel
	}
	if c.InitDeadline == 0 {
		c.InitDeadline = DefaultInitDeadline
	}
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
func imageKey(wasm []byte, c *ImageConfig) cache.Key {
	config, err := json.Marshal(struct {
		Version              string
		Memory               uint64
		Table, Stack         uint32
		Env                  []string
		Dirs                 []wasi.Dir
		NoFreeze             bool
		InitFuel             uint64
		OS, Arch, GoCompiler string
	}{imageVersion, c.MemoryLimit, c.TableLimit, c.StackLimit, c.Env, c.Dirs, c.NoFreeze, c.InitFuel, goruntime.GOOS, goruntime.GOARCH, goruntime.Compiler})
	if err != nil {
		panic(err) // plain data always marshals
	}
	return cache.KeyOf(config, wasm)
}

// recall reads a record from the cache, nil if there is none that can be used.
func (e *Engine) recall(key cache.Key) *record {
	if e.cache == nil {
		return nil
	}
	raw, err := e.cache.Load(key)
	if err == nil {
		var rec *record
		if rec, err = decodeRecord(raw); err == nil {
			return rec
		}
	}
	if !errors.Is(err, cache.ErrMissing) {
		e.log.Warn("a cached image cannot be used and is built anew", "key", key.String(), "error", err)
	}
	return nil
}

func (e *Engine) remember(key cache.Key, rec *record) {
	if e.cache == nil {
		return
	}
	if err := e.cache.Store(key, rec.encode()); err != nil {
		e.log.Warn("an image cannot be kept in the cache", "key", key.String(), "error", err)
	}
}

// finish makes the image ready: it compiles the record's module and takes over
// its memory.
func (i *Image) finish(ctx context.Context, rec *record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	i.cfg.progress("compile")
	start := time.Now()
	if err := i.compile(ctx, rec); err != nil {
		return &LoadError{Name: i.cfg.Name, Reason: "the rewritten module is refused: " + err.Error(), Err: err}
	}
	i.control = rec.meta.Control
	i.description = rec.meta.Description
	i.batching = rec.meta.Batching
	i.frozen = rec.meta.NotFrozen == ""
	i.startBytes = rec.meta.MemoryBytes
	i.mutable, i.unsaved = rec.meta.Mutable, rec.meta.NotSaved
	if i.frozen {
		var err error
		if i.memory, err = i.engine.space.NewImage(rec.memory); err != nil {
			return fmt.Errorf("runtime: %s: the image's memory: %w", i.cfg.Name, err)
		}
	}
	i.info = ImageInfo{
		Name: i.cfg.Name, Hash: i.key.String(), FrozenBytes: len(rec.module), Frozen: i.frozen, NotFrozen: rec.meta.NotFrozen,
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

// compile makes wazero's runtime for the image and compiles the module. A cache
// that fails is done without.
func (i *Image) compile(ctx context.Context, rec *record) error {
	if c := i.engine.cache; c != nil && !i.engine.cfg.interpreter {
		dir, err := c.CodeDir(i.key)
		if err == nil {
			var kept wazero.CompilationCache
			if kept, err = wazero.NewCompilationCacheWithDir(dir); err == nil {
				if err = i.compileWith(ctx, rec, kept); err == nil {
					return nil
				}
			}
		}
		i.engine.log.Warn("machine code cannot be kept in the cache", "key", i.key.String(), "error", err)
		_ = c.DropCode(i.key) // whatever is wrong with it, it is not needed
	}
	return i.compileWith(ctx, rec, nil)
}

func (i *Image) compileWith(ctx context.Context, rec *record, kept wazero.CompilationCache) (err error) {
	cfg := runtimeConfig(i.engine.cfg.interpreter)
	if kept != nil {
		cfg = cfg.WithCompilationCache(kept)
	}
	r := wazero.NewRuntimeWithConfig(ctx, cfg)
	defer func() {
		if err != nil {
			closeRuntime(r, kept)
		}
	}()
	if err := link(ctx, r, rec.meta.UsesGuest, rec.meta.UsesWASI); err != nil {
		return err
	}
	ctx = experimental.WithCompilationWorkers(ctx, goruntime.GOMAXPROCS(0))
	if i.compiled, err = r.CompileModule(ctx, rec.module); err != nil {
		return err
	}
	i.runtime, i.kept = r, kept
	return nil
}

// closeRuntime closes all modules and code. The errors that wazero may return
// are those of files that guests of ours do not have.
func closeRuntime(r wazero.Runtime, kept wazero.CompilationCache) {
	_ = r.Close(context.Background())
	if kept != nil {
		_ = kept.Close(context.Background())
	}
}
