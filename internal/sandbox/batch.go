package sandbox

import (
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/internal/rewrite"
)

// batch lets another goroutine end the batch of a guest that runs, between two turns. What
// it writes is a word that the guest's code reads when it asks for the next envelope, but
// cannot name.
type batch struct {
	ended atomic.Bool
	mu    sync.Mutex
	word  api.MutableGlobal // of the present module instance, looked up when first needed
}

// EndBatch has the turn that runs be the last of its entry, and the entries after it have
// one turn each, until Resume is called. Any goroutine may call it, up to the instance's
// Put. It has no effect in wazero's interpreter, whose globals are not to be written from
// outside.
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

// Resume takes EndBatch back. It is for the goroutine that runs the instance; what has
// called for the end must have been dealt with.
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

// moved forgets the word of an earlier module instance.
func (b *batch) moved() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.word = nil
	b.ended.Store(false)
}
