package sandbox

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/slots"
	"github.com/wasmactors/wasmactors/internal/wasi"
)

// Defaults and bounds of [ImageConfig].
const (
	DefaultMemoryLimit  = 64 << 20
	DefaultTableLimit   = 65536
	DefaultStackLimit   = 1 << 20
	DefaultTablesLimit  = 100
	DefaultEntriesLimit = 2 * DefaultTableLimit
	DefaultGlobalLimit  = 10_000
	DefaultTypeLimit    = 10_000
	DefaultFuncLimit    = 200_000
	DefaultSegmentLimit = 1_000_000
	DefaultElementLimit = 1 << 18
	DefaultCompileSteps = 700_000_000
	DefaultCompileBytes = 128 << 20
	DefaultDataLimit    = 64 << 20
	DefaultSizeLimit    = 64 << 20
	DefaultInitFuel     = 10_000_000_000
	DefaultInitDeadline = 30 * time.Second
)

// ImageConfig says how a module becomes an image. The zero value is fine.
type ImageConfig struct {
	// Name is what messages call the image, such as the module's name in the
	// bundle. It does not influence the image.
	Name string
	// MemoryLimit is the most that an instance's memory may grow to, in bytes,
	// rounded down to pages of 64 KiB. 0 means DefaultMemoryLimit.
	MemoryLimit uint64
	// TableLimit is the most entries that a table may have. 0 means
	// DefaultTableLimit.
	TableLimit uint32
	// StackLimit is the most that nested calls may take, in bytes as the meter
	// weighs them. 0 means DefaultStackLimit.
	StackLimit uint32
	// TablesLimit is the most tables that the module may have, EntriesLimit the most
	// entries that they may have and grow to together. 0 means DefaultTablesLimit;
	// DefaultEntriesLimit or TableLimit, whichever is more.
	TablesLimit  uint32
	EntriesLimit uint32
	// TypeLimit is the most types, FunctionLimit the most functions, imported ones
	// included, SegmentLimit the most segments of data and elements, and
	// ElementLimit the most elements in them. 0 means DefaultTypeLimit,
	// DefaultFuncLimit, DefaultSegmentLimit and DefaultElementLimit.
	TypeLimit, FunctionLimit, SegmentLimit, ElementLimit uint32
	// CompileSteps is the most that compiling may cost, as package estimate estimates
	// it, in steps of about a nanosecond and in addition to 1000 for each byte of the
	// module. CompileBytes is the most memory, in bytes and in addition to 200 for each
	// byte. 0 means DefaultCompileSteps and
	// DefaultCompileBytes; math.MaxUint64 turns the check off.
	CompileSteps, CompileBytes uint64
	// GlobalLimit is the most globals that the module may have. 0 means
	// DefaultGlobalLimit.
	GlobalLimit uint32
	// DataLimit is the most that the module's data segments may take, in bytes. 0
	// means DefaultDataLimit.
	DataLimit uint64
	// SizeLimit is the most that the module itself may take, in bytes. 0 means
	// DefaultSizeLimit; more than 256 MiB is never accepted.
	SizeLimit uint64
	// InstanceLimit is the most instances that may be alive, idle ones in the pool
	// included. 0 means no limit besides the engine's. It does not influence the
	// image.
	InstanceLimit int
	// Env is the guest's environment, "KEY=value".
	Env []string
	// Dirs are the directories of the host that the guest may use.
	Dirs []wasi.Dir
	// NoFreeze makes every instance run its own initialisation, so that no state
	// drawn at random there is shared between instances.
	NoFreeze bool
	// RawNaNs leaves NaNs that float arithmetic results in with the bits that the
	// processor gives them. Without it they are made canonical before a guest can see
	// their bits, so that it computes the same on every processor.
	RawNaNs bool
	// Places makes code tell where in the module it is, for debuggers: see PlacesOf. It takes more memory and does not influence what
	// guests do: states and recordings are the same.
	Places bool
	// InitFuel and InitDeadline bound the initialisation. 0 means
	// DefaultInitFuel and DefaultInitDeadline.
	InitFuel     uint64
	InitDeadline time.Duration
	// CompileTime and CompileMemory bound the process that compiles: processor time
	// without that of the initialisation, and bytes. 0 means 1 s and 10 s a MiB of
	// the module; 128 MiB, 160 bytes a byte of the module and twice MemoryLimit. They
	// do not influence the image, and count for nothing if compilation happens in
	// this process; see Config.WithCompileProgram.
	CompileTime   time.Duration
	CompileMemory uint64
	// Progress, if set, is told what Load is about to do: "decode", "initialise",
	// "compile". It is called by one goroutine at a time, and no more once Load has
	// returned.
	Progress func(stage string) `json:"-"`
}

// ImageInfo describes an image.
type ImageInfo struct {
	Name         string
	Hash         string   // of module, configuration and versions, in hexadecimal
	WasmBytes    int      // size of the module as given
	FrozenBytes  int      // size of the rewritten module without the memory's contents
	Frozen       bool     // false: every instance runs its own initialisation
	NotFrozen    string   // why not, "" if frozen
	MemoryBytes  uint64   // size of a fresh instance's memory
	MemoryLimit  uint64   // what it may grow to
	NonZeroPages int      // pages of 4 KiB that are not all zero
	Mapped       bool     // copy-on-write mapping (true) or copied pages
	Imports      []string // "module.name", sorted
	Exports      []string // names, sorted, without the runtime's own
	Cached       bool     // the frozen image came from the disk cache
	InboxCap     int      // bytes
	OutboxCap    int      // bytes
	Batching     bool     // one entry may have several envelopes
	LoadTime     time.Duration
	InitTime     time.Duration // running the initialisation, 0 if Cached
	CompileTime  time.Duration // compiling the frozen module, or reading its code from the cache
	InitFuel     uint64        // what the initialisation has spent
}

// Image is a module ready to be instantiated. It is safe for concurrent use.
type Image struct {
	engine      *Engine
	cfg         ImageConfig
	key         cache.Key
	sum         [sha256.Size]byte // of the module
	entry       *cache.Entry      // nil: not cached
	info        ImageInfo
	description abi.Description
	control     control
	batching    bool
	large       bool // it gets messages that are larger than the inbox
	frozen      bool
	startBytes  uint64       // size of a fresh memory
	heapBytes   uint64       // of an instance, beyond its memory: see the function
	mutable     int          // globals that a guest can change
	unsaved     string       // why instances have no snapshots
	memory      *slots.Image // what a fresh memory holds, if frozen
	roots       *wasi.Roots  // nil: no directories

	runtime   wazero.Runtime
	codeCache wazero.CompilationCache // nil: machine code is not cached
	compiled  wazero.CompiledModule

	watch *watch // in a process that compiles

	identityOnce sync.Once
	identity     identity // see identify

	callers callers
	pool    pool
	slowest slowest
	doubt   doubt
	strictness
	footprint int64 // estimated resident bytes of a pooled instance
	closed    atomic.Bool
	live      atomic.Int64 // instances
	refs      atomic.Int64 // one while it is open, one for each instance
	uses      atomic.Int64 // see Use
}

// Name is what messages call the image.
func (i *Image) Name() string { return i.cfg.Name }

// Description is what the module says about itself.
func (i *Image) Description() abi.Description { return i.description }

// Info describes the image.
func (i *Image) Info() ImageInfo { return i.info }

// InboxCap is the size of the inbox in bytes, fixed by the guest.
func InboxCap(i *Image) int { return int(i.control.InboxCap) }

// OutboxCap is the size of the outbox in bytes, fixed by the guest. A turn may
// write more by flushing; see Entry.OutboxLimit.
func OutboxCap(i *Image) int { return int(i.control.OutboxCap) }

// MemoryLimit is the most that an instance's memory may grow to, in bytes.
func MemoryLimit(i *Image) uint64 { return i.cfg.MemoryLimit }

// Large reports whether a Run may have an envelope that is larger than the inbox.
func Large(i *Image) bool { return i.large }

// Batching reports whether one Run may have several envelopes.
func Batching(i *Image) bool { return i.batching }

// Frozen reports whether instances start from a frozen image (true), or each
// runs its own initialisation.
func (i *Image) Frozen() bool { return i.frozen }

// Close gives back what the image holds, as soon as its last instance is put
// back. Get fails from now on. It is idempotent.
func (i *Image) Close() error {
	if i.closed.Swap(true) {
		return nil
	}
	for _, x := range i.pool.drain() {
		i.engine.pooled.Add(-i.footprint)
		x.discard()
	}
	i.engine.forget(i)
	i.unref()
	return nil
}

// ref takes a reference, unless the image has been released.
func (i *Image) ref() bool {
	for {
		n := i.refs.Load()
		if n == 0 {
			return false
		}
		if i.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (i *Image) unref() {
	if i.refs.Add(-1) == 0 {
		i.release()
	}
}

// release gives everything back; nothing uses the image any more.
func (i *Image) release() {
	if i.runtime != nil {
		closeRuntime(i.runtime, i.codeCache)
		i.runtime = nil
	}
	if i.memory != nil {
		i.memory.Close()
		i.memory = nil
	}
	if i.entry != nil {
		_ = i.entry.Close() // a file that was only written to
		i.entry = nil
	}
	if i.roots != nil {
		_ = i.roots.Close() // directories that were only read through
		i.roots = nil
	}
}

// closeRuntime closes all modules and code. The errors that wazero may return concern open
// files, which our guests do not have in wazero.
func closeRuntime(r wazero.Runtime, kept wazero.CompilationCache) {
	_ = r.Close(context.Background())
	if kept != nil {
		_ = kept.Close(context.Background())
	}
}
