package runtime

import (
	"context"
	"errors"

	"github.com/wasmactors/wasmactors/abi"
)

// DefaultPoolBytes bounds what pooled instances may keep resident.
const DefaultPoolBytes = 256 << 20

// Engine loads modules and owns what their instances share. It is safe for
// concurrent use.
type Engine struct{}

// New starts an engine. It fails when the platform lacks something that it
// cannot do without; a cache directory that cannot be used is a warning.
func New(ctx context.Context, cfg Config) (*Engine, error) { panic("skeleton") }

// Close releases everything. Instances must not be running. It is idempotent.
func (e *Engine) Close(ctx context.Context) error { panic("skeleton") }

// Load makes an image of a module: it decodes and checks the module, meters it,
// runs its initialisation once, freezes the result and compiles it. Errors name
// what is wrong; *LoadError is the type of those that the module is to blame
// for.
func (e *Engine) Load(ctx context.Context, wasm []byte, cfg ImageConfig) (*Image, error) {
	panic("skeleton")
}

// LoadError is a module that cannot become an image.
type LoadError struct {
	Name   string // of the image
	Reason string
	Err    error // the cause, or nil; an *abi.Failure if the initialisation failed
}

func (e *LoadError) Error() string { return e.Name + ": " + e.Reason }

// Unwrap is the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// Image is a module ready to be instantiated. It is safe for concurrent use.
type Image struct{ description abi.Description }

// Info describes the image.
func (i *Image) Info() ImageInfo { panic("skeleton") }

// InboxCap and OutboxCap are the sizes of the rings in bytes.
func (i *Image) InboxCap() int { panic("skeleton") }

// OutboxCap is the size of the outbox in bytes, fixed by the guest.
func (i *Image) OutboxCap() int { panic("skeleton") }

// Batching reports whether several envelopes may ride in one Run.
func (i *Image) Batching() bool { panic("skeleton") }

// Get takes an instance in the image's state, from the pool or new. It fails
// with an *abi.Failure of kind init if the image is not frozen and its
// initialisation fails, and with ErrTooManyInstances or ErrClosed.
func (i *Image) Get() (*Instance, error) { panic("skeleton") }

// Close gives back what the image holds once its last instance is given back.
// Get fails from now on.
func (i *Image) Close() error { panic("skeleton") }

// Instance is one actor's wasm module. One goroutine at a time may use it, any
// goroutine; only Kill may be called by another meanwhile.
type Instance struct{}

// ErrTooManyInstances, ErrClosed and ErrBatchContinued: see Get and NextCommand.
var (
	ErrTooManyInstances = errors.New("too many instances")
	ErrClosed           = errors.New("closed")
	ErrBatchContinued   = errors.New("the batch went on after a turn that must end it")
)

// Image is what it was made from.
func (x *Instance) Image() *Image { panic("skeleton") }

// Put gives the instance back: it is reset, or thrown away if it cannot be. The
// caller must not use it any more, nor Kill it.
func (x *Instance) Put() { panic("skeleton") }

// Reset puts the instance back into the image's state, in place. Envelopes that
// were pushed and commands that were not read are gone.
func (x *Instance) Reset() error { panic("skeleton") }

// Push writes an envelope into the inbox behind earlier ones. False means that
// it does not fit any more; run what is pending first. An envelope that is
// refused by an empty inbox never fits (see EnvelopeFits).
func (x *Instance) Push(e *abi.Envelope) bool { panic("skeleton") }

// Pending is the number of envelopes pushed since the last Run.
func (x *Instance) Pending() int { panic("skeleton") }

// Run executes what was pushed, one turn an envelope, until all are handled, the
// guest returns early, or a turn fails. It allocates nothing unless a turn
// fails. A failure poisons the instance: Reset it before the next Run.
func (x *Instance) Run(in *Entry, out *Result) { panic("skeleton") }

// NextCommand reads the next command of the completed turns, in order, and says
// which turn of the last Run it belongs to (0 the first). ok is false at the
// end. What c refers to is valid until the next Push, Run, Reset or Put. An
// error is a violation of the ABI by that turn: what the turn has asked for so
// far must not take effect, and nothing follows. OpFail is a command like any
// other: it is the only one that counts in its turn. Ends of turns are not
// reported: the turn changes.
func (x *Instance) NextCommand(c *abi.Command) (turn int, ok bool, err error) { panic("skeleton") }

// NextTurn appends the commands of the next completed turn to dst[:0] and
// returns them; ok is false when there is no further turn. It is NextCommand for
// callers that must know a turn whole before they carry it out: with err set
// none of it may take effect. If the turn has failed by a command (OpFail), that
// command alone is returned.
func (x *Instance) NextTurn(dst []abi.Command) (turn int, cmds []abi.Command, ok bool, err error) {
	panic("skeleton")
}

// Kill ends the turn that is running, within a quantum, as FailureKilled with
// this reason. It has no effect on an instance that does not run. Any goroutine
// may call it, up to the instance's Put.
func (x *Instance) Kill(reason string) { panic("skeleton") }

// MemoryBytes is the present size of the guest's memory.
func (x *Instance) MemoryBytes() uint64 { panic("skeleton") }

// Poisoned reports whether a turn has failed since the last Reset.
func (x *Instance) Poisoned() bool { panic("skeleton") }
