package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/slots"
	"github.com/wasmactors/wasmactors/internal/wasi"
)

// mostDepth is how many calls Steps.Innermost counts at most.
const mostDepth = 2000

// Position is a place in a Run, as in [Cut]: what its phase has spent. Places where a Run can stop are those where fuel is
// charged: at the entries of functions, at the heads of loops, and in host functions.
type Position struct{ Phase, Fuel uint64 }

// Before reports whether p comes before q.
func (p Position) Before(q Position) bool {
	return p.Phase < q.Phase || p.Phase == q.Phase && p.Fuel < q.Fuel
}

// Steps is a Run that stops on its way. Its methods may only be called while it has stopped, one at a time.
type Steps struct {
	x      *Instance
	in     *Entry
	call   *callWith // nil: there are no checkpoints
	cut    Cut
	stop   func(*Steps)
	left   int64 // of the fuel, at the stop
	back   *Checkpoint
	ending string // why the Run is to end; empty: it is not

	addrs [mostDepth]uintptr // scratch
}

// RunSteps is Run, but stops at the first place that is not before to. There it calls stop, on the same goroutine, which says
// by Stop where it stops next. What earlier Runs have left in the rings is gone, so that the memory at a place depends on the
// place alone. Entry.Log is called within the Run, too, where NextPlace is allowed and nothing else.
func RunSteps(x *Instance, in *Entry, out *Result, to Position, stop func(*Steps)) {
	s := &Steps{x: x, in: in, stop: stop}
	own, within := x.own, in.Cut
	if x.image.frozen && x.image.callers.layout != nil && x.module != nil {
		s.call = &callWith{x.module.ExportedFunction(rewrite.ExportEnter), s.context()}
		x.own = s.call
	}
	s.cut = Cut{Stage: StageTurn, stop: s.check, within: within}
	s.Stop(to)
	x.clearRings()
	in.Cut = &s.cut
	x.Run(in, out)
	in.Cut = within
	if x.own == api.Function(s.call) && s.call != nil {
		x.own = own
	}
}

func (x *Instance) clearRings() {
	m, c := x.memory.Bytes(), &x.control
	clear(m[c.Inbox+x.inboxLen : c.Inbox+c.InboxCap])
	clear(m[c.Outbox : c.Outbox+c.OutboxCap])
}

// context is that of a call whose execution can be saved: wazero asks it for that.
func (s *Steps) context() context.Context {
	ctx := context.WithValue(context.Background(), instanceKey{}, s.x)
	return experimental.WithSnapshotter(wasi.WithHost(ctx, &s.x.context))
}

// Stop sets where the Run stops next: at the first place that is not before p.
func (s *Steps) Stop(p Position) {
	if within := s.cut.within; within != nil && within.Stage == StageTurn {
		if end := (Position{within.Phase, within.At}); end.Before(p) {
			p = end
		}
	}
	s.cut.Phase, s.cut.At = p.Phase, p.Fuel
}

// NextPlace makes the Run stop at the next place.
func (s *Steps) NextPlace() {
	x := s.x
	x.enterPhase()
	if left := int64(x.hidden(hiddenFuel)); left > 0 {
		x.granted -= uint64(left) // with opened it stays positive, as a sum
		x.setHidden(hiddenFuel, 0)
	}
	at := s.At()
	s.Stop(Position{at.Phase, at.Fuel + 1})
}

// At is where it is.
func (s *Steps) At() Position { return Position{uint64(s.x.phase), s.x.spentNow()} }

// End ends the Run with a failure of kind killed.
func (s *Steps) End(reason string) { s.ending = reason }

// check is called at each check of the meter. It returns when the place where the Run stops next lies ahead.
func (s *Steps) check(left int64) {
	x := s.x
	for at := s.At(); !at.Before(Position{s.cut.Phase, s.cut.At}); {
		if w := s.cut.within; w != nil && w.Stage == StageTurn && !at.Before(Position{w.Phase, w.At}) {
			x.cut = w
			panic(w.abort())
		}
		s.left = left
		s.stop(s)
		switch {
		case s.ending != "":
			x.endTurn(abi.FailureKilled, s.ending)
		case s.back != nil:
			s.restore()
		}
	}
}

// Frame is a call under way.
type Frame struct {
	Name     string
	Function int     // number in the module, of those that are not imported; -1: it is the host's
	Place    uintptr // where in the function; equal for equal places, else without meaning
	Offset   uint64  // of the instruction under way in the code section of the rewritten module, see PlacesOf; 0: it is not known
	Block    int     // of the innermost, see Block; -1: it is not known
}

// Frames are the calls under way, innermost first, at most so many; none where they cannot be had, as in the interpreter.
func (s *Steps) Frames(most int) (frames []Frame) {
	imported := len(s.x.image.compiled.ImportedFunctions())
	s.x.eachFrame(make([]uintptr, 0, most+8), func(f api.FunctionDefinition, it experimental.StackIterator) bool {
		at := it.ProgramCounter()
		frames = append(frames, frameOf(f, imported, uintptr(at)))
		if s.x.places != nil {
			frames[len(frames)-1].Offset = it.Function().SourceOffsetForPC(at)
		}
		return len(frames) < most
	})
	if block, ok := Block(s.x); ok && len(frames) > 0 {
		frames[0].Block = int(block)
	}
	return frames
}

func frameOf(f api.FunctionDefinition, imported int, at uintptr) Frame {
	name := f.DebugName()
	if len(name) > 0 && name[0] == '.' { // the guest's module has no name
		name = name[1:]
	}
	return Frame{clip([]byte(name), maxName), max(int(f.Index())-imported, -1), at, 0, -1}
}

// Memory is the guest's memory. It must not be changed, and is valid until the Run goes on.
func (x *Instance) Memory() []byte { return x.memory.Bytes() }

// Globals are the bits of the guest's mutable globals, in order, of each the lower 64, between two Runs, after a failed one or
// while one has stopped.
func Globals(x *Instance) ([]uint64, error) {
	f := x.module.ExportedFunction(rewrite.ExportEnter)
	var globals []uint64
	for g := range x.image.mutable {
		stack := [4]uint64{rewrite.EnterGlobal, uint64(g)}
		if err := f.CallWithStack(&x.context, stack[:]); err != nil {
			return nil, fmt.Errorf("runtime: global %d: %w", g, err)
		}
		globals = append(globals, stack[0])
	}
	return globals, nil
}

// Compiled is wazero's module of an image.
func Compiled(i *Image) wazero.CompiledModule { return i.compiled }

// Checkpoint is the state of a Run at a place, for the same Run to go back to, once: then it is dropped.
type Checkpoint struct {
	At      Position
	run     experimental.Snapshot
	memory  *slots.Kept
	stack   int // bytes of the call stack
	globals []uint64
	hidden  [hiddenCount]uint64
	left    int64

	meter  [3]uint64 // opened, granted, earlier
	phase  uint32
	growth uint32
	output output
	random []byte // nil: nothing was drawn
	stream randomStream
}

// Keeper holds the memories of checkpoints: pages that one has in common with the one that it was made beside are held once.
type Keeper = slots.Keeper

// Bytes is about what it takes, without its memory: see Keeper.
func (c *Checkpoint) Bytes() int {
	return c.stack + 8*len(c.globals) + cap(c.output.staging) + checkpointBytes
}

// Drop gives back what only this checkpoint has of the memory. It must not be used any more.
func (c *Checkpoint) Drop() {
	if c.memory != nil {
		c.memory.Drop()
		c.memory = nil
	}
}

// checkpointBytes is what a checkpoint takes beside what Bytes counts.
const checkpointBytes = 4 << 10

// ErrNoCheckpoint says that a Run cannot be saved where it is: only if it is compiled, its image is frozen, no table was written
// to, and it is not a host function that charges.
var ErrNoCheckpoint = errors.New("the run cannot be saved here")

// Checkpoint saves the present state. near is one at a place that is not far, whose memory it shares; nil: none is.
func (s *Steps) Checkpoint(k *Keeper, near *Checkpoint) (*Checkpoint, error) {
	x := s.x
	if s.call == nil || x.hosted || !s.canRestore() {
		return nil, ErrNoCheckpoint
	}
	shot, ok := s.call.Function.(experimental.Snapshotter)
	if !ok {
		return nil, ErrNoCheckpoint
	}
	c := &Checkpoint{At: s.At(), left: s.left, meter: [3]uint64{x.opened, x.granted, x.earlier}, phase: x.phase, growth: x.growths}
	var err error
	if c.globals, err = Globals(x); err != nil {
		return nil, err
	}
	for g := range c.hidden {
		c.hidden[g] = x.hidden(hidden(g))
	}
	c.output = x.output.clone()
	if c.stream = x.random; c.stream.source != nil {
		if c.random, err = c.stream.source.MarshalBinary(); err != nil {
			return nil, err
		}
		c.stream.source = nil
	}
	var beside *slots.Kept
	if near != nil {
		beside = near.memory
	}
	if c.memory, err = x.memory.Keep(k, beside); err != nil {
		return nil, err
	}
	c.run, c.stack = shot.Snapshot(), x.stackBytes()
	return c, nil
}

// canRestore reports whether what a checkpoint does not have is as it was at the begin of the Run.
func (s *Steps) canRestore() bool {
	return s.x.resettable() && (s.x.files == nil || s.x.files.Open() == 0)
}

// Back makes the Run go back to a checkpoint of its own that was not used, instead of going on, and stop at the first place
// that is not before p, which must be behind the checkpoint. False: it cannot.
func (s *Steps) Back(c *Checkpoint, p Position) bool {
	if c.run == nil || c.memory == nil || !s.canRestore() || !c.At.Before(p) {
		return false
	}
	s.back = c
	s.Stop(p)
	return true
}

// restore goes back to a checkpoint: it does not return.
func (s *Steps) restore() {
	x, c := s.x, s.back
	run := c.run
	s.back, c.run = nil, nil
	err := s.rewind(c)
	c.Drop()
	if err != nil {
		panic(&abort{kind: abi.FailureHost, reason: "the run cannot go back: " + err.Error()})
	}
	left := x.grant(c.left)
	x.setHidden(hiddenFuel, uint64(left))
	x.base = left
	run.Restore([]uint64{uint64(left)})
}

func (s *Steps) rewind(c *Checkpoint) error {
	x, in := s.x, s.x.in
	x.in = nil // the memory grows, but not for the guest
	defer func() { x.in = in }()
	if err := x.returnMemory(c.memory); err != nil {
		return err
	}
	limit := x.image.cfg.MemoryLimit
	if in.MemoryLimit != 0 {
		limit = min(limit, in.MemoryLimit)
	}
	x.memory.SetLimit(limit)
	x.memory.ClearRefused()
	f := x.module.ExportedFunction(rewrite.ExportEnter)
	for g, v := range c.globals {
		stack := [4]uint64{rewrite.EnterSetGlobal, uint64(g), 0, v}
		if err := f.CallWithStack(&x.context, stack[:]); err != nil {
			return fmt.Errorf("global %d: %w", g, err)
		}
	}
	for g, v := range c.hidden {
		if hidden(g) != hiddenStop {
			x.setHidden(hidden(g), v)
		}
	}
	x.opened, x.granted, x.earlier = c.meter[0], c.meter[1], c.meter[2]
	x.phase, x.growths, x.hosted = c.phase, c.growth, false
	limitOut := x.output.limit
	x.output.unstage()
	x.output = c.output
	x.output.limit = limitOut
	source := x.random.source
	x.random = c.stream
	if x.random.source = source; c.random != nil {
		return source.UnmarshalBinary(c.random)
	}
	x.random.live = false
	return nil
}

// returnMemory gives the memory the size and the contents of a state.
func (x *Instance) returnMemory(to *slots.Kept) error {
	if x.memory.Size() == to.Size() {
		return x.memory.Return(to)
	}
	stale, err := x.memory.Reset()
	if err != nil {
		return err
	}
	m := x.module.Memory()
	if stale && !x.memory.Rebase(m.Grow) {
		return errors.New("its memory has reached its maximum")
	}
	x.memory.SetLimit(max(to.Size(), x.image.cfg.MemoryLimit))
	if now := x.memory.Size(); to.Size() > now {
		if _, ok := m.Grow(uint32((to.Size() - now) / slots.WasmPage)); !ok {
			return errors.New("its memory does not grow")
		}
	}
	return x.memory.Return(to)
}

// clone is a copy that shares nothing.
func (o *output) clone() output {
	c := *o
	c.staging, c.stdout, c.stderr = bytes.Clone(o.staging), bytes.Clone(o.stdout), bytes.Clone(o.stderr)
	c.diagnostics.trace, c.diagnostics.last = slices.Clone(o.diagnostics.trace), slices.Clone(o.diagnostics.last)
	return c
}

// Innermost is the innermost call, the place in it, and how many calls are under way; -1 if that is not known.
func (s *Steps) Innermost() (function int, place uintptr, depth int) {
	imported := len(s.x.image.compiled.ImportedFunctions())
	function = -1
	s.x.eachFrame(s.addrs[:0], func(f api.FunctionDefinition, it experimental.StackIterator) bool {
		if depth++; depth == 1 {
			function, place = int(f.Index())-imported, uintptr(it.ProgramCounter())
		}
		return true
	})
	return function, place, depth
}

// Written is what the turns of the present Run have flushed, and the ring that the rest is in.
func Written(x *Instance) (flushed, ring []byte) {
	c := &x.control
	return x.staging, x.memory.Bytes()[c.Outbox : c.Outbox+c.OutboxCap]
}
