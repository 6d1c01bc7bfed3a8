package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/slots"
	"golang.org/x/sync/semaphore"
)

// New starts an engine. A cache directory that cannot be used costs a warning
// in the log; everything else that is missing is an error.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.clock == nil || cfg.log == nil || cfg.quantum == 0 {
		return nil, errors.New("runtime: the Config is not valid: make it with NewConfig")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	space, err := slots.New(slots.Options{Portable: cfg.portable, MaxMapped: cfg.mostMapped})
	if err != nil {
		return nil, fmt.Errorf("runtime: guest memory: %w", err)
	}
	e := &Engine{cfg: cfg, log: cfg.log, space: space, images: map[*Image]struct{}{}}
	e.time.Init(cfg.clock)
	if e.thread = cfg.thread; e.thread == nil && e.time.Real() {
		e.thread = readThread
	}
	if e.compiler, err = cfg.compiler(); err != nil {
		return nil, fmt.Errorf("runtime: the compile program: %w", err)
	}
	e.turns = semaphore.NewWeighted(int64(parallelLoads(cfg.loads)))
	e.roomBytes = compileRoom()
	e.room = semaphore.NewWeighted(e.roomBytes)
	if cfg.cacheDir != "" {
		if e.cache, err = cache.Open(cache.Options{Dir: cfg.cacheDir, MaxBytes: cfg.cacheBytes, KeyFile: cfg.cacheKey}); err != nil {
			e.log.Warn("the cache directory cannot be used; images are built at every start", "dir", cfg.cacheDir, "error", err)
			e.cache = nil
		}
	}
	return e, nil
}
