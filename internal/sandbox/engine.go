package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sync/semaphore"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/slots"
)

// DefaultPoolBytes bounds what the instances in the pools of an engine may keep
// resident, estimated.
const DefaultPoolBytes = 256 << 20

// Engine loads modules and owns what their instances share: the address space
// of their memories, the disk cache, the pools' budget. It is safe for
// concurrent use.
type Engine struct {
	cfg    Config
	time   clock.Nanos
	thread threadTime // nil: the clock is not the machine's
	log    *slog.Logger
	space  *slots.Space
	cache  *cache.Cache // nil: none

	compiler *program            // nil: modules are compiled in this process
	turns    *semaphore.Weighted // loads at a time
	room     *semaphore.Weighted // bytes that compilations may take together
	loads    sync.WaitGroup

	roomBytes int64

	live   atomic.Int64 // instances
	pooled atomic.Int64 // bytes that pooled instances keep, estimated

	profiler atomic.Pointer[Profiler]

	mu     sync.Mutex
	images map[*Image]struct{}
	closed bool
}

// Close closes every image and releases everything. Instances that were not put
// back keep what they need until they are. It is idempotent.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	images := make([]*Image, 0, len(e.images))
	for i := range e.images {
		images = append(images, i)
	}
	e.mu.Unlock()
	e.loads.Wait()
	var err error
	for _, i := range images {
		err = errors.Join(err, i.Close())
	}
	return errors.Join(err, e.space.Close())
}

// Instances is the number of instances alive, pooled ones included.
func (e *Engine) Instances() int { return int(e.live.Load()) }

// runtimeConfig is wazero's configuration for guests. The features are pinned:
// the rewriter knows these and no others.
func runtimeConfig(interpreter bool) wazero.RuntimeConfig {
	if interpreter {
		return wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithDebugInfoEnabled(false)
	}
	return wazero.NewRuntimeConfig().WithCoreFeatures(features).WithDebugInfoEnabled(false)
}

// register adds a finished image.
func (e *Engine) register(i *Image) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.images[i] = struct{}{}
	return nil
}

// beginLoad counts a load that Close waits for, unless the engine is closed.
func (e *Engine) beginLoad() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.loads.Add(1)
	}
	return !e.closed
}

func (e *Engine) forget(i *Image) {
	e.mu.Lock()
	delete(e.images, i)
	e.mu.Unlock()
}

// admit counts an instance, unless there are too many. To make room it throws idle ones of
// other images away.
func (e *Engine) admit() error {
	for e.live.Add(1) > int64(e.cfg.maxInstances) {
		e.live.Add(-1)
		if !e.reclaim() {
			return ErrTooManyInstances
		}
	}
	return nil
}

// reclaim throws a pooled instance away; false if there is none.
func (e *Engine) reclaim() bool { return e.drop(func(*Image) bool { return true }) }

// drop throws a pooled instance of an image away that will do; false if there is none.
func (e *Engine) drop(fits func(*Image) bool) bool {
	e.mu.Lock()
	var found *Instance
	for i := range e.images { // in any order: nothing that can be seen depends on it
		if !fits(i) {
			continue
		}
		if found = i.pool.take(); found != nil {
			e.pooled.Add(-i.footprint)
			break
		}
	}
	e.mu.Unlock()
	if found == nil {
		return false
	}
	found.discard()
	return true
}
