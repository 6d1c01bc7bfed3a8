// Package runtime turns WebAssembly modules into images that actors are made from.
//
// An [Engine] loads modules. An [Image] is a module that has been checked, metered,
// initialised once and frozen; [host.Guest] makes actors of it:
//
//	engine, err := runtime.New(ctx, runtime.NewConfig())
//	image, err := engine.Load(ctx, wasm, runtime.ImageConfig{Name: "bank"})
//	teller := host.Guest(image, "teller")
//
// Guests are hostile: a bad module is a [LoadError], and a guest's mistake or attack is a [Failure] of its actor, never a
// failure of the host. docs/architecture/images.md states the guarantees.
//
// What works behind it (rewriting, memory, instances) is in internal/sandbox and the
// packages that CONTRIBUTING maps.
//
// [host.Guest]: https://pkg.go.dev/github.com/wasmactors/wasmactors/host#Guest
package runtime

import (
	"context"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wasi"
)

type (
	// Engine loads modules and owns what their instances share. It is safe for
	// concurrent use.
	//
	// It has:
	//
	//	Close(ctx context.Context) error // Close closes every image and releases everything.
	//	Instances() int // Instances is the number of instances alive, pooled ones included.
	//	Load(ctx context.Context, wasm []byte, cfg ImageConfig) (*Image, error) // Load makes an image of a module: it decodes and checks the module, meters it, runs its initialisation once, in an interpreter, freezes the result and compiles that.
	//	LoadFrom(ctx context.Context, src Source, cfg ImageConfig) (*Image, error) // LoadFrom is Load for a module whose hash is known.
	//	Profile(p *Profiler) bool // Profile sets the profiler of an engine's guests, nil for none; false if there is one already.
	Engine = sandbox.Engine
	// Config says how an Engine works. It is immutable; begin with NewConfig.
	//
	// It has:
	//
	//	WithCacheBytes(n int64) Config // WithCacheBytes bounds what the frozen images in the cache directory may take; the ones that were not used for longest are evicted.
	//	WithCacheDir(dir string) Config // WithCacheDir keeps compiled code and frozen images in dir, which is created when missing; "" means no disk cache.
	//	WithCacheKeyFile(file string) Config // WithCacheKeyFile names the file with the key that the cache is authenticated with, which is made when missing; "" means wasmactors/cache.key in the user's configuration folder.
	//	WithClock(cl clock.Clock) Config // WithClock sets the clock by which deadlines of turns are measured.
	//	WithCompileInProcess() Config // WithCompileInProcess compiles in this process even if it has called CompileMain.
	//	WithCompileProgram(path string) Config // WithCompileProgram names the program whose processes decode, rewrite, initialise and compile modules, with the limits ImageConfig.CompileTime and CompileMemory.
	//	WithInterpreter(on bool) Config // WithInterpreter runs guests in wazero's interpreter, for platforms without a compiler and for tests.
	//	WithLog(l *slog.Logger) Config // WithLog sets where the engine's own warnings go (a cache that cannot be written).
	//	WithMaxInstances(n int) Config // WithMaxInstances bounds the instances alive at a time, idle ones in the pools included.
	//	WithMostMapped(n int) Config // WithMostMapped bounds the instances whose memory is mapped from their image, idle ones in the pools included; beyond it memories are copies.
	//	WithParallelLoads(n int) Config // WithParallelLoads bounds how many modules are loaded at a time; all that are compiled together take at most half of the machine's memory, but one is always compiled.
	//	WithPoolBytes(n int64) Config // WithPoolBytes bounds the estimated resident memory of idle instances, which are kept so that the next actors get one at once; 0 keeps none.
	//	WithPortableMemory(on bool) Config // WithPortableMemory keeps guest memories in Go's heap, as platforms without memfd must.
	//	WithQuantum(fuel uint64) Config // WithQuantum bounds the fuel that a turn spends between two checks.
	Config = sandbox.Config
	// Image is a module ready to be instantiated. It is safe for concurrent use.
	//
	// It has:
	//
	//	Close() error // Close gives back what the image holds, as soon as its last instance is put back.
	//	Description() abi.Description // Description is what the module says about itself.
	//	Engine() *Engine // Engine is what has loaded the image.
	//	Frozen() bool // Frozen reports whether instances start from a frozen image (true), or each runs its own initialisation.
	//	Info() ImageInfo // Info describes the image.
	//	Name() string // Name is what messages call the image.
	//	Retire() // Retire closes the image as soon as no actor runs it, which may be at once.
	Image = sandbox.Image
	// ImageConfig says how a module becomes an image. The zero value is fine.
	//
	// It has:
	//
	//	Name string // Name is what messages call the image, such as the module's name in the bundle.
	//	MemoryLimit uint64 // MemoryLimit is the most that an instance's memory may grow to, in bytes, rounded down to pages of 64 KiB. 0 means DefaultMemoryLimit.
	//	TableLimit uint32 // TableLimit is the most entries that a table may have.
	//	StackLimit uint32 // StackLimit is the most that nested calls may take, in bytes as the meter weighs them.
	//	TablesLimit uint32 // TablesLimit is the most tables that the module may have, EntriesLimit the most entries that they may have and grow to together.
	//	EntriesLimit uint32
	//	TypeLimit uint32 // TypeLimit is the most types, FunctionLimit the most functions, imported ones included, SegmentLimit the most segments of data and elements, and ElementLimit the most elements in them.
	//	FunctionLimit uint32 // TypeLimit is the most types, FunctionLimit the most functions, imported ones included, SegmentLimit the most segments of data and elements, and ElementLimit the most elements in them.
	//	SegmentLimit uint32 // TypeLimit is the most types, FunctionLimit the most functions, imported ones included, SegmentLimit the most segments of data and elements, and ElementLimit the most elements in them.
	//	ElementLimit uint32 // TypeLimit is the most types, FunctionLimit the most functions, imported ones included, SegmentLimit the most segments of data and elements, and ElementLimit the most elements in them.
	//	CompileSteps uint64 // CompileSteps is the most that compiling may cost, as package estimate estimates it, in steps of about a nanosecond and in addition to 1000 for each byte of the module.
	//	CompileBytes uint64 // CompileSteps is the most that compiling may cost, as package estimate estimates it, in steps of about a nanosecond and in addition to 1000 for each byte of the module.
	//	GlobalLimit uint32 // GlobalLimit is the most globals that the module may have.
	//	DataLimit uint64 // DataLimit is the most that the module's data segments may take, in bytes.
	//	SizeLimit uint64 // SizeLimit is the most that the module itself may take, in bytes.
	//	InstanceLimit int // InstanceLimit is the most instances that may be alive, idle ones in the pool included.
	//	Env []string // Env is the guest's environment, "KEY=value".
	//	Dirs []wasi.Dir // Dirs are the directories of the host that the guest may use.
	//	NoFreeze bool // NoFreeze makes every instance run its own initialisation, so that no state drawn at random there is shared between instances.
	//	RawNaNs bool // RawNaNs leaves NaNs that float arithmetic results in with the bits that the processor gives them.
	//	Places bool // Places makes code tell where in the module it is, for debuggers: see PlacesOf.
	//	InitFuel uint64 // InitFuel and InitDeadline bound the initialisation.
	//	InitDeadline time.Duration
	//	CompileTime time.Duration // CompileTime and CompileMemory bound the process that compiles: processor time without that of the initialisation, and bytes.
	//	CompileMemory uint64
	//	Progress func(stage string) // Progress, if set, is told what Load is about to do: "decode", "initialise", "compile".
	ImageConfig = sandbox.ImageConfig
	// ImageInfo describes an image.
	//
	// It has:
	//
	//	Name string
	//	Hash string // of module, configuration and versions, in hexadecimal
	//	WasmBytes int // size of the module as given
	//	FrozenBytes int // size of the rewritten module without the memory's contents
	//	Frozen bool // false: every instance runs its own initialisation
	//	NotFrozen string // why not, "" if frozen
	//	MemoryBytes uint64 // size of a fresh instance's memory
	//	MemoryLimit uint64 // what it may grow to
	//	NonZeroPages int // pages of 4 KiB that are not all zero
	//	Mapped bool // copy-on-write mapping (true) or copied pages
	//	Imports []string // "module.name", sorted
	//	Exports []string // names, sorted, without the runtime's own
	//	Cached bool // the frozen image came from the disk cache
	//	InboxCap int // bytes
	//	OutboxCap int // bytes
	//	Batching bool // one entry may have several envelopes
	//	LoadTime time.Duration
	//	InitTime time.Duration // running the initialisation, 0 if Cached
	//	CompileTime time.Duration // compiling the frozen module, or reading its code from the cache
	//	InitFuel uint64 // what the initialisation has spent
	ImageInfo = sandbox.ImageInfo
	// Source is a module that need not be read if its image is in the cache.
	//
	// It has:
	//
	//	Sum [sha256.Size]byte // SHA-256 of the module
	//	Read func(context.Context) ([]byte, error)
	Source = sandbox.Source
	// Dir is a directory of the host that a guest may use.
	//
	// It has:
	//
	//	Host string // its path on the host
	//	Guest string // its path as the guest sees it, such as /data
	//	ReadOnly bool // nothing under it can be created, written or removed
	//	MaxBytes uint64 // What the directory may hold; 0 means no bound.
	//	MaxFiles uint64 // directories and links included
	Dir = wasi.Dir
	// LoadError is a module that cannot become an image.
	//
	// It has:
	//
	//	Name string // of the image
	//	Reason string
	//	Err error // the cause, or nil; an *abi.Failure if the initialisation failed
	LoadError = sandbox.LoadError
	// LimitError is a module that needs more than it may have; it is the cause of a
	// LoadError.
	//
	// It has:
	//
	//	What string // such as "needs a memory of"
	//	Key string // the limit's name in manifests, such as memory, table, globals
	//	Need uint64
	//	Limit uint64
	//	Unit string // bytes, entries, globals, steps and so on
	LimitError = sandbox.LimitError
	// CompileError reports that compiling a module did not finish, because of its limits or because the process crashed. It
	// is the cause of a LoadError.
	//
	// It has:
	//
	//	What string // such as "takes more than 2s of processor time to compile"
	//	Key string // the limit's name in manifests: compile-time, compile-memory; "" if the process has crashed
	//	Output string // what the process has said, at most 4 KiB
	CompileError = sandbox.CompileError
	// Failure is how a guest's turn has ended.
	//
	// It has:
	//
	//	Kind FailureKind
	//	Reason string // short and stable: "integer divide by zero", "exit code 3"
	//	Message string // the panic's text, at most MaxReason bytes; may be empty
	//	Stack []string // wasm frames, innermost first, at most MaxFrames
	//	Turn uint64 // number of the turn in the actor's life
	//	Fuel uint64 // what the turn had spent
	//	GuestStack string // the trace that the guest's language printed, at most MaxReason bytes
	Failure = abi.Failure
)

// Defaults and bounds of [ImageConfig] and [Config].
const (
	DefaultMemoryLimit  = sandbox.DefaultMemoryLimit
	DefaultTableLimit   = sandbox.DefaultTableLimit
	DefaultStackLimit   = sandbox.DefaultStackLimit
	DefaultGlobalLimit  = sandbox.DefaultGlobalLimit
	DefaultDataLimit    = sandbox.DefaultDataLimit
	DefaultSizeLimit    = sandbox.DefaultSizeLimit
	DefaultInitFuel     = sandbox.DefaultInitFuel
	DefaultInitDeadline = sandbox.DefaultInitDeadline
	DefaultMaxInstances = sandbox.DefaultMaxInstances
	DefaultCacheBytes   = sandbox.DefaultCacheBytes
)

// Errors of this package.
var (
	// ErrTooManyInstances: the engine has as many instances as Config.WithMaxInstances
	// allows.
	ErrTooManyInstances = sandbox.ErrTooManyInstances
	// ErrInstanceLimit: the image has as many as ImageConfig.InstanceLimit allows.
	ErrInstanceLimit = sandbox.ErrInstanceLimit
	// ErrClosed: the engine or the image is closed.
	ErrClosed = sandbox.ErrClosed
)

// CompileMain makes the program able to decode, rewrite, initialise and compile
// modules in processes of its own, which have limits on time and memory and can be
// interrupted. Call it first thing in main:
//
//	func main() {
//		runtime.CompileMain()
//		...
//
// In such a process it does the work and does not return. Otherwise it returns at
// once, and engines that are made later compile in processes, unless their Config
// says otherwise ([Config.WithCompileInProcess], [Config.WithCompileProgram]). A
// program that does not call it compiles in its own process.
func CompileMain() { sandbox.CompileMain() }

// NewConfig is the configuration that production wants: compiler, copy-on-write
// memory where the platform has it, no disk cache.
func NewConfig() Config { return sandbox.NewConfig() }

// New starts an engine; Close ends it. A cache directory that cannot be used costs a
// warning in the log; everything else that is missing is an error.
func New(ctx context.Context, cfg Config) (*Engine, error) { return sandbox.New(ctx, cfg) }
