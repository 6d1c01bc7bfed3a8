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
	word  api.MutableGlobal // of the present module instance, looked up when first needed
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
	if x.module == nil {
		return
	}
	if b.word == nil {
		b.word = x.module.ExportedGlobal(rewrite.GlobalStop).(api.MutableGlobal)
	}
	b.word.Set(1)
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
	if b.word != nil {
		b.word.Set(0)
	}
}

// moved forgets the global of an earlier module instance.
func (b *batch) moved() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.word = nil
	b.ended.Store(false)
}
