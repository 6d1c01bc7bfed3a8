package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/slots"
	"github.com/wasmactors/wasmactors/internal/wasi"
)

// imageVersion is part of every key in the disk cache. It must be raised when
// the rewriter's output, the record's format or wazero changes;
// TestImageVersion notices the first.
const imageVersion = "21 wazero-1.12.0"

// Load makes an image of a module: it decodes and checks the module, meters it,
// runs its initialisation once, in an interpreter, freezes the result and
// compiles that. Errors are *LoadError if the module or its configuration is to
// blame.
func (e *Engine) Load(ctx context.Context, wasm []byte, cfg ImageConfig) (*Image, error) {
	read := func(context.Context) ([]byte, error) { return wasm, nil }
	return e.LoadFrom(ctx, Source{sha256.Sum256(wasm), read}, cfg)
}

// Source is a module that need not be read if its image is in the cache.
type Source struct {
	Sum  [sha256.Size]byte // SHA-256 of the module
	Read func(context.Context) ([]byte, error)
}

// LoadFrom is Load for a module whose hash is known. What Read returns counts:
// should it have another hash, that one is loaded.
func (e *Engine) LoadFrom(ctx context.Context, src Source, cfg ImageConfig) (*Image, error) {
	start := time.Now()
	if e.isClosed() {
		return nil, ErrClosed
	}
	if err := cfg.complete(); err != nil {
		return nil, &LoadError{Name: cfg.Name, Reason: err.Error(), Err: err}
	}
	key := imageKey(src.Sum, &cfg)
	i := &Image{engine: e, cfg: cfg, key: key}
	i.refs.Store(1)
	var err error
	if len(cfg.Dirs) > 0 {
		if i.roots, err = wasi.OpenDirs(cfg.Dirs); err != nil {
			return nil, &LoadError{Name: cfg.Name, Reason: err.Error(), Err: err}
		}
	}
	// What the initialisation may have read from a directory is not part of the
	// key, so such an image is not kept; its machine code is, by the module.
	keep := len(cfg.Dirs) == 0
	var rec *record
	if keep {
		i.open(key)
		rec = i.recall()
	}
	cached := rec != nil
	if cached {
		if err = i.finish(ctx, rec); errors.Is(err, errNoModule) {
			cached = false
		}
	}
	if !cached {
		var wasm []byte
		if wasm, err = src.Read(ctx); err == nil && sha256.Sum256(wasm) != src.Sum {
			i.release()
			return e.Load(ctx, wasm, cfg)
		}
		if err == nil {
			rec, err = i.build(ctx, wasm)
		}
		if err == nil {
			if !keep {
				i.open(cache.KeyOf(key[:], rec.module))
			}
			err = i.finish(ctx, rec)
		}
	}
	if err != nil {
		i.release()
		return nil, err
	}
	if keep && !cached {
		i.remember(rec)
	}
	i.settle(cached)
	i.info.Cached = cached
	i.info.WasmBytes = rec.meta.WasmBytes
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
	if c.EntriesLimit == 0 {
		c.EntriesLimit = max(DefaultEntriesLimit, c.TableLimit)
	}
	c.TablesLimit = cmp.Or(c.TablesLimit, DefaultTablesLimit)
	c.TypeLimit = cmp.Or(c.TypeLimit, DefaultTypeLimit)
	c.FunctionLimit = cmp.Or(c.FunctionLimit, DefaultFuncLimit)
	c.SegmentLimit = cmp.Or(c.SegmentLimit, DefaultSegmentLimit)
	c.ElementLimit = cmp.Or(c.ElementLimit, DefaultElementLimit)
	c.CompileLimit = cmp.Or(c.CompileLimit, DefaultCompileLimit)
	c.CompileMemory = cmp.Or(c.CompileMemory, DefaultCompileBytes)
	if c.StackLimit == 0 {
		c.StackLimit = DefaultStackLimit
	}
	if c.GlobalLimit == 0 {
		c.GlobalLimit = DefaultGlobalLimit
	}
	if c.DataLimit == 0 {
		c.DataLimit = DefaultDataLimit
	}
	if c.SizeLimit == 0 {
		c.SizeLimit = DefaultSizeLimit
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
	}{imageVersion, c.MemoryLimit, c.DataLimit, c.SizeLimit, c.TableLimit, c.StackLimit, c.GlobalLimit,
		[6]uint32{c.TablesLimit, c.EntriesLimit, c.TypeLimit, c.FunctionLimit, c.SegmentLimit, c.ElementLimit}, [2]uint64{c.CompileLimit, c.CompileMemory}, c.Env, c.Dirs, c.NoFreeze, c.RawNaNs, c.InitFuel, goruntime.GOOS, goruntime.GOARCH, goruntime.Compiler})
	if err != nil {
		panic(err) // plain data always marshals
	}
	return cache.KeyOf(config, sum[:])
}

// finish makes the image ready: it compiles the record's module and takes over
// its memory.
func (i *Image) finish(ctx context.Context, rec *record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	i.cfg.progress("compile")
	start := time.Now()
	if err := i.compile(ctx, rec); errors.Is(err, errNoModule) || ctx.Err() != nil {
		return err
	} else if err != nil {
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

// compileWith compiles a module that stands for the image, with wazero's cache in
// a directory; "" for none.
func (i *Image) compileWith(ctx context.Context, meta recordMeta, module []byte, dir string) error {
	kept, err := cacheIn(dir)
	if err != nil {
		return err
	}
	cfg := runtimeConfig(i.engine.cfg.interpreter)
	if kept != nil {
		cfg = cfg.WithCompilationCache(kept)
	}
	r := wazero.NewRuntimeWithConfig(ctx, cfg)
	var compiled wazero.CompiledModule
	if err = link(ctx, r, meta.UsesGuest, meta.UsesWASI); err == nil {
		compiled, err = r.CompileModule(experimental.WithCompilationWorkers(ctx, goruntime.GOMAXPROCS(0)), module)
	}
	if err != nil {
		closeRuntime(r, kept)
		return err
	}
	i.runtime, i.kept, i.compiled = r, kept, compiled
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
