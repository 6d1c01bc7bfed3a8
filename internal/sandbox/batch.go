package sandbox

import (
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// batch lets another goroutine end the batch of a running guest, between two turns. It
// writes a hidden global that the rewriter's code reads before it hands out the next envelope.
type batch struct {
	ended atomic.Bool
	mu    sync.Mutex
	word  *uint64    // the global of the present module instance; nil: by wazero's API
	of    api.Module // that instance, nil: there is none
}

// EndBatch makes the running turn the last of its entry, and gives later entries one turn
// each, until Resume is called. Any goroutine may call it, until the instance is Put. It has
// no effect in wazero's interpreter, whose globals must not be written by other goroutines.
func (x *Instance) EndBatch() {
	b := &x.batch
	if b.ended.Load() || x.image.engine.cfg.interpreter {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		return
	}
	b.set(1)
	b.ended.Store(true)
}

// Resume undoes EndBatch. Only the goroutine that runs the instance may call it, after it
// has handled the reason for EndBatch.
func (x *Instance) Resume() {
	b := &x.batch
	if !b.ended.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended.Store(false)
	b.set(0)
}

// set writes the global; the lock is held.
func (b *batch) set(v uint64) {
	if at := b.word; at != nil {
		atomic.StoreUint64(at, v)
	} else if b.of != nil {
		b.of.ExportedGlobal(rewrite.GlobalStop).(api.MutableGlobal).Set(v)
	}
}

// moved takes the global of a new module instance, or of none.
func (x *Instance) moved() {
	b := &x.batch
	b.mu.Lock()
	defer b.mu.Unlock()
	b.word, b.of = nil, x.module
	if x.block != nil {
		b.word = x.word(hiddenStop)
	}
	b.ended.Store(false)
}
