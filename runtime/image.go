package runtime

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/runtime/wasi"
)

// Defaults and bounds of [ImageConfig].
const (
	DefaultMemoryLimit  = 64 << 20
	DefaultTableLimit   = 65536
	DefaultStackLimit   = 1 << 20
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
	// Env is the guest's environment, "KEY=value".
	Env []string
	// Dirs are the directories of the host that the guest may use.
	Dirs []wasi.Dir
	// NoFreeze makes every instance run its own initialisation, so that no state
	// drawn at random there is shared between instances.
	NoFreeze bool
	// InitFuel and InitDeadline bound the initialisation. 0 means
	// DefaultInitFuel and DefaultInitDeadline.
	InitFuel     uint64
	InitDeadline time.Duration
	// Progress, if set, is told what Load is about to do: "decode", "initialise",
	// "compile". It is called on Load's goroutine.
	Progress func(stage string)
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
	Batching     bool     // several envelopes may ride in one entry
	LoadTime     time.Duration
	InitTime     time.Duration // running the initialisation, 0 if Cached
	CompileTime  time.Duration // compiling the frozen module, or reading its code from the cache
	InitFuel     uint64        // what the initialisation has spent
}

// Description is what the module says about itself.
func (i *Image) Description() abi.Description { return i.description }
