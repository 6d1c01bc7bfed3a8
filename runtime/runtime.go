// Package runtime turns WebAssembly modules into images that actors are made from.
//
// An [Engine] loads modules. An [Image] is a module that has been checked, metered,
// initialised once and frozen; [host.Guest] makes actors of it:
//
//	engine, err := runtime.New(ctx, runtime.NewConfig())
//	image, err := engine.Load(ctx, wasm, runtime.ImageConfig{Name: "bank"})
//	teller := host.Guest(image, "teller")
//
// Guests are hostile until checked: whatever a module contains ends as a [LoadError],
// and whatever a guest does ends as a [Failure] of its actor, never as a failure of
// the host. docs/architecture/images.md states the guarantees.
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
	Engine = sandbox.Engine
	// Config says how an Engine works. It is immutable; begin with NewConfig.
	Config = sandbox.Config
	// Image is a module ready to be instantiated. It is safe for concurrent use.
	Image = sandbox.Image
	// ImageConfig says how a module becomes an image. The zero value is fine.
	ImageConfig = sandbox.ImageConfig
	// ImageInfo describes an image.
	ImageInfo = sandbox.ImageInfo
	// Source is a module that need not be read if its image is in the cache.
	Source = sandbox.Source
	// Dir is a directory of the host that a guest may use.
	Dir = wasi.Dir
	// LoadError is a module that cannot become an image.
	LoadError = sandbox.LoadError
	// LimitError is a module that needs more than it may have; it is the cause of a
	// LoadError.
	LimitError = sandbox.LimitError
	// CompileError is a module whose compilation has not come to its end, by its
	// limits or by a crash of its process; it is the cause of a LoadError.
	CompileError = sandbox.CompileError
	// Failure is how a guest's turn has ended.
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
