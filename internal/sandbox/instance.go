package sandbox

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/slots"
	"github.com/wasmactors/wasmactors/internal/wasi"
)

// Instance is one actor's wasm module. One goroutine at a time may use it, any goroutine; only Kill
// may be called by another goroutine.
type Instance struct {
	image   *Image
	module  api.Module
	own     api.Function   // to call the instance by, if functions cannot be shared: see callers
	engine  unsafe.Pointer // wazero's part of the module, if they can
	entered unsafe.Pointer // the function of the last call, unless its Entry has that
	memory  *slots.Memory
	hiddenGlobals
	files   *wasi.FileTable
	control control
	context turnContext
	stack   [4]uint64

	pending  int32  // envelopes in the inbox
	room     int32  // envelopes that it may have, or isApart
	inboxLen uint32 // their bytes
	poisoned bool
	renew    bool   // the call stack has grown large: take a new one at the reset
	raw      bool   // its own initialisation has not run yet
	unseen   uint8  // Runs until one is measured however short the one before was, see pace
	initFuel uint64 // what the initialisation has spent

	kill atomic.Pointer[string]
	batch
	meter
	work work
	output
	reader
	random randomStream

	sampling *sampling
	places   *placed // nil: the image does not tell places
}

// Get takes an instance in the image's state, from the pool or new. It fails
// with ErrTooManyInstances or ErrClosed. The instance of an image that is not frozen
// must be initialised first: see [Instance.Prepare].
func Get(i *Image) (*Instance, error) {
	if i.closed.Load() {
		return nil, ErrClosed
	}
	if x := i.pool.take(); x != nil {
		i.engine.pooled.Add(-i.footprint)
		return x, nil
	}
	if err := i.admit(); err != nil {
		return nil, err
	}
	if !i.ref() {
		i.dismiss()
		return nil, ErrClosed
	}
	x := newInstance(i)
	if err := x.open(); err != nil {
		x.discard()
		return nil, err
	}
	return x, nil
}

// Copies reports whether the next instance of an image would have a copy of its memory instead of
// sharing what it does not write to: it is large, none is idle, and as many are mapped as may be.
func Copies(i *Image) bool {
	return i.engine.space.Copies(i.memory) && i.pool.empty()
}

// DropMapped throws an idle instance of another image away whose memory is mapped; false if there is none.
func DropMapped(i *Image) bool {
	return i.engine.drop(func(other *Image) bool { return other != i && other.memory != nil && other.memory.Mapped() })
}

func newInstance(i *Image) *Instance {
	x := &Instance{image: i, room: i.roomIn()}
	if i.cfg.Places {
		x.places = &placed{}
	}
	x.context.x = x
	x.startPace()
	return x
}

// noRandom is wazero's source of random bytes for instances. Nothing reads it, since package
// wasi serves the actor's stream, but without it wazero seeds a source for each instance,
// which takes 40 us.
type noRandom struct{}

func (noRandom) Read(p []byte) (int, error) { clear(p); return len(p), nil }

var moduleConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(io.Reader(noRandom{}))

// open makes the module instance and brings it to the image's state.
func (x *Instance) open() error {
	i := x.image
	memory, err := i.engine.space.NewMemory(i.memory, i.startBytes, i.cfg.MemoryLimit)
	if err != nil {
		return fmt.Errorf("runtime: %s: %w", i.cfg.Name, err)
	}
	if err := x.instantiate(i.runtime, i.compiled, memory); err != nil {
		memory.Free()
		return fmt.Errorf("runtime: %s: %w", i.cfg.Name, err)
	}
	if i.roots != nil && x.files == nil {
		x.files = wasi.NewFileTable(i.roots, 0)
	}
	x.control = i.control
	x.raw = !i.frozen
	x.untouched()
	return nil
}

func (x *Instance) instantiate(r wazero.Runtime, m wazero.CompiledModule, memory *slots.Memory) error {
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return guestMemory{x} }))
	x.memory = memory
	module, err := r.InstantiateModule(ctx, m, moduleConfig)
	if err != nil {
		return err
	}
	x.module, x.hiddenGlobals = module, hiddenGlobals{}
	if x.places != nil {
		x.places.block = nil
	}
	if m == x.image.compiled {
		x.image.callers.join(x)
	} else { // the trial run of Load
		x.own = module.ExportedFunction(rewrite.ExportEnter)
	}
	x.moved()
	return nil
}

// closeModule closes the module instance and frees its memory.
func (x *Instance) closeModule() {
	if x.module != nil {
		module := x.module
		x.module, x.own, x.engine, x.hiddenGlobals = nil, nil, nil, hiddenGlobals{}
		x.moved()
		_ = module.Close(context.Background()) // our modules hold no files of wazero's
		x.memory.Free()
	}
}

// discard ends the instance for good.
func (x *Instance) discard() {
	x.closeModule()
	if x.files != nil {
		x.files.Reset()
	}
	x.image.dismiss()
	x.image.unref()
}

// Image is what it was made from.
func (x *Instance) Image() *Image { return x.image }

// call enters the guest. The results are in x.stack.
func (x *Instance) call(op, a, b uint32, fuel uint64) error {
	x.stack = [4]uint64{uint64(op), uint64(a), uint64(b), fuel}
	if x.own != nil {
		return x.own.CallWithStack(&x.context, x.stack[:])
	}
	s := &x.image.callers
	if in := x.in; in != nil && in.last.from == s && in.last.entry == in && !in.last.lent { // as take and giveBack have it, for nearly all
		c := in.last.it
		in.last.lent = true
		s.aim(c, x)
		err := c.enter.CallWithStack(&x.context, x.stack[:])
		if s.stackLen(c) > maxKeptStack || in.last.it != c || in.last.entry != in {
			s.giveBack(x, c)
		} else {
			in.last.lent = false
		}
		return err
	}
	c := s.take(x)
	err := c.enter.CallWithStack(&x.context, x.stack[:])
	s.giveBack(x, c)
	return err
}

// Put gives the instance back: it is reset and pooled, or thrown away if the pool is full.
// The caller must not use it any more, nor Kill it.
func (x *Instance) Put() {
	i := x.image
	x.Resume()
	if i.closed.Load() || !i.frozen || i.engine.pooled.Load()+i.footprint > i.engine.cfg.poolBytes {
		x.discard()
		return
	}
	if err := x.Reset(); err != nil {
		x.discard()
		return
	}
	x.output.shrink()
	i.engine.pooled.Add(i.footprint)
	i.pool.giveBack(x)
	if i.closed.Load() { // Close may have drained the pool before
		for _, x := range i.pool.drain() {
			i.engine.pooled.Add(-i.footprint)
			x.discard()
		}
	}
}

// Reset puts the instance back into the image's state. Envelopes that were
// pushed and commands that were not read are gone. It costs what the guest has
// changed; only an instance that has changed a table or dropped a segment, or
// whose image is not frozen, is made again. After an error the instance can only
// be Put.
func (x *Instance) Reset() error {
	x.pending, x.inboxLen, x.poisoned = 0, 0, true // until this has succeeded
	x.reader = reader{}
	x.output.reset()
	x.room = x.image.roomIn()
	if x.files != nil {
		x.files.Reset()
	}
	if !x.resettable() {
		x.closeModule()
		if err := x.open(); err != nil {
			return err
		}
	} else if err := x.restore(); err != nil {
		return err
	}
	x.renew, x.poisoned = false, false
	return nil
}

// resettable reports whether restore is enough for a reset.
func (x *Instance) resettable() bool {
	return x.image.frozen && x.module != nil && uint32(x.hidden(hiddenDirty))&(rewrite.DirtyTable|rewrite.DirtySegment) == 0
}

// restore gives memory and globals their contents in the image.
func (x *Instance) restore() error {
	stale, err := x.memory.Reset()
	if err != nil {
		return err
	}
	if x.memory.Discarded() >= manyTouches || x.grown > 0 {
		x.untouched()
	}
	if stale && !x.memory.Rebase(x.module.Memory().Grow) {
		// The memory has reached the maximum that the module declares, so wazero
		// cannot be told of the smaller one.
		x.closeModule()
		return x.open()
	}
	if x.renew && x.own != nil {
		x.own = x.module.ExportedFunction(rewrite.ExportEnter)
	}
	return x.call(rewrite.EnterReset, 0, 0, 0)
}

// Kill ends the running turn within a quantum, as FailureKilled with this reason. It has no
// effect on an instance that does not run, see Entry.Killable. Any goroutine may call it until the instance is
// Put; after that it may belong to another actor.
func (x *Instance) Kill(reason string) { x.kill.Store(&reason) }

// ForgetKill undoes Kill, if no turn runs. Only the goroutine that runs the instance may call it. Who
// then looks whether the next turn is to run, and runs it with Entry.Killable, misses no kill in between.
func (x *Instance) ForgetKill() {
	if x.kill.Load() != nil {
		x.kill.Store(nil)
	}
}

// MemoryBytes is the present size of the guest's memory.
func (x *Instance) MemoryBytes() uint64 { return x.memory.Size() }

// Poisoned reports whether a turn has failed since the last Reset.
func (x *Instance) Poisoned() bool { return x.poisoned }
