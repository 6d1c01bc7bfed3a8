package sandbox

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/direct"
	"github.com/wasmactors/wasmactors/internal/estimate"
	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/slots"
	"github.com/wasmactors/wasmactors/internal/wasi"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// initTime is the clock during the initialisation of an image, so that the
// image does not depend on when it is built: 2000-01-01. It is not 0, which Go's
// runtime does not accept as a time.
const initTime = 946_684_800_000_000_000

// build makes the record of a module: decode, instrument, initialise, freeze.
func (i *Image) build(ctx context.Context, raw []byte) (*record, error) {
	i.cfg.progress("decode")
	blame := func(err error) error { return &LoadError{Name: i.cfg.Name, Reason: err.Error(), Err: err} }
	if err := i.cfg.checkSize(raw); err != nil {
		return nil, blame(err)
	}
	m, err := wasm.Decode(raw)
	if err != nil {
		return nil, blame(fmt.Errorf("not a module that can be run: %w", err))
	}
	rec := &record{}
	meta := &rec.meta
	meta.WasmBytes = len(raw)
	if meta.UsesGuest, meta.UsesWASI, err = checkImports(m); err != nil {
		return nil, blame(err)
	}
	if err := i.cfg.checkModule(m); err != nil {
		return nil, blame(err)
	}
	// The memory limit is enforced by the allocator, which sees every refusal; so the
	// declared maximum need not be lowered.
	res, err := rewrite.Instrument(m, i.cfg.rewriting())
	if err != nil {
		return nil, blame(err)
	}
	if i.cfg.Places {
		res.Module.Customs = append(res.Module.Customs, noLines()...)
	}
	most := i.cfg.compileCost(len(raw))
	cost := estimate.Module(res.Module, 0, most)
	if err := i.cfg.checkCompile(&cost, most); err != nil {
		return nil, blame(err)
	}
	meta.Batching = res.Batching
	meta.Mutable = len(res.Mutable)
	for _, t := range res.Mutable {
		if !t.IsNumber() {
			meta.NotSaved = "a global holds " + t.String()
		}
	}
	meta.Imports, meta.Exports = importNames(m), exportNames(m)
	meta.MemoryBytes = uint64(m.Memories[0].Min) * slots.WasmPage
	rec.module = res.Module.Encode()
	custom, hasCustom := m.FindCustom(abi.Section)

	i.cfg.progress("initialise")
	trial, err := i.tryOut(ctx, rec, res)
	if err != nil {
		return nil, err
	}
	defer trial.close()
	memory := trial.x.memory.Bytes()
	meta.Control = trial.x.control
	meta.InitFuel = trial.fuel
	if meta.Description, err = describe(custom, hasCustom, memory, meta.Control); err != nil {
		return nil, blame(err)
	}
	rec.initTime = trial.took
	i.encode(rec, i.direct(res.Module, cost, most)) // unless it is frozen
	if i.cfg.NoFreeze {
		meta.NotFrozen = "freezing is turned off"
		return rec, nil
	}
	if trial.x.files != nil && trial.x.files.Open() > 0 {
		meta.NotFrozen = "the initialisation has left files open"
		return rec, nil
	}
	frozen, err := rewrite.Freeze(res, trial.state)
	if errors.Is(err, rewrite.ErrNotFreezable) {
		meta.NotFrozen = err.Error()
		return rec, nil
	}
	if err != nil {
		return nil, blame(err)
	}
	i.encode(rec, i.direct(frozen, cost, most))
	rec.memory = append([]byte(nil), memory...)
	meta.MemoryBytes = uint64(len(memory))
	return rec, nil
}

// rewriting is how the module is rewritten.
func (c *ImageConfig) rewriting() rewrite.Options {
	return rewrite.Options{MemoryPages: wasm.MaxPages, TableLimit: c.TableLimit, TableTotal: c.EntriesLimit, StackBytes: c.StackLimit, RawNaNs: c.RawNaNs, Sites: c.Places}
}

// direct makes indirect calls direct, unless places in the code are to be known, or compiling the dispatchers would take the
// module, whose own code costs cost, over most.
func (i *Image) direct(m *wasm.Module, cost estimate.Estimate, most estimate.Cost) *wasm.Module {
	if i.cfg.Places {
		return m
	}
	d := direct.Calls(m)
	if d == m {
		return m
	}
	more := estimate.Module(d, len(m.Code), estimate.Cost{Steps: most.Steps - cost.Steps, Bytes: most.Bytes})
	if more.Over {
		return m
	}
	return d
}

func (i *Image) encode(rec *record, m *wasm.Module) {
	rec.module = m.Encode()
	rec.outline = outline(m, rec.module)
	rec.meta.FrozenBytes = len(rec.module)
	rec.meta.BesideBytes = heapBytes(m)
}

// heapBytes is what an instance may take in Go's heap, its memory not included: its tables,
// as large as they may grow, its globals, and wazero's copies of its segments.
func heapBytes(m *wasm.Module) (n uint64) {
	const reference, global = 8, 32
	for _, t := range m.Tables {
		n += reference * uint64(max(t.Min, t.Max))
	}
	for i := range m.Elems {
		n += reference * uint64(len(m.Elems[i].Funcs)+len(m.Elems[i].Exprs))
	}
	return n + global*uint64(len(m.Globals))
}

// trial is an instance whose initialisation was run, so that its state can be frozen.
type trial struct {
	x       *Instance
	runtime wazero.Runtime
	state   rewrite.State
	fuel    uint64
	took    time.Duration
}

// tryOut runs the initialisation in wazero's interpreter, since code that runs
// once is not worth compiling (a Go guest: 60 ms to prepare and 8 ms to run,
// against 480 ms to compile). The interpreter allows fewer nested calls than compiled
// code; if it runs out of them, the initialisation is compiled after all.
func (i *Image) tryOut(ctx context.Context, rec *record, res *rewrite.Result) (*trial, error) {
	t, err := i.tryWith(ctx, rec, res, true)
	var f *abi.Failure
	if errors.As(err, &f) && f.Kind == abi.FailureStackOverflow && f.Reason == "stack overflow" {
		t, err = i.tryWith(ctx, rec, res, false)
	}
	return t, err
}

func (i *Image) tryWith(ctx context.Context, rec *record, res *rewrite.Result, interpreter bool) (_ *trial, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig(interpreter))
	x := newInstance(i)
	t := &trial{x: x, runtime: r}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	refuse := func(err error) error {
		return &LoadError{Name: i.cfg.Name, Reason: "the rewritten module is refused: " + err.Error(), Err: err}
	}
	if err := link(ctx, r, rec.meta.UsesGuest, rec.meta.UsesWASI); err != nil {
		return nil, refuse(err)
	}
	compiled, err := r.CompileModule(ctx, rec.module)
	if err != nil {
		return nil, refuse(err)
	}
	memory, err := i.engine.space.NewMemory(nil, rec.meta.MemoryBytes, i.cfg.MemoryLimit)
	if err != nil {
		return nil, fmt.Errorf("runtime: %s: %w", i.cfg.Name, err)
	}
	if err := x.instantiate(r, compiled, memory); err != nil {
		memory.Free()
		return nil, refuse(err) // such as a data segment outside of the memory
	}
	if i.roots != nil {
		x.files = wasi.NewFileTable(i.roots, 0)
	}
	start := time.Now()
	in := Entry{Deadline: i.cfg.InitDeadline, TurnFuel: i.cfg.InitFuel, Yield: interrupt{ctx}}
	i.watch.pause(true)
	c, failure := x.initialise(&in)
	i.watch.pause(false)
	if failure != nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, &LoadError{Name: i.cfg.Name, Reason: "the initialisation failed: " + failure.Error(), Err: failure}
	}
	t.took = time.Since(start)
	t.fuel = x.initFuel
	x.control = c
	t.state = rewrite.State{Pages: uint32(x.memory.Size() / slots.WasmPage), Dirty: uint32(x.hidden(hiddenDirty))}
	for g := range res.Mutable {
		if err := x.call(rewrite.EnterGlobal, uint32(g), 0, 0); err != nil {
			return nil, fmt.Errorf("runtime: %s: global %d: %w", i.cfg.Name, g, err)
		}
		t.state.Globals = append(t.state.Globals, rewrite.Value{Lo: x.stack[0], Hi: x.stack[1]})
	}
	return t, nil
}

// interrupt ends an initialisation when the context of the load ends.
type interrupt struct{ ctx context.Context }

// Yield implements Yielder.
func (i interrupt) Yield() bool {
	goruntime.Gosched()
	return i.ctx.Err() == nil
}

func (t *trial) close() {
	t.x.closeModule()
	if t.x.files != nil {
		t.x.files.Reset()
	}
	closeRuntime(t.runtime, nil)
}

// initialise runs the module's start function, _initialize and wasmactors_init,
// and returns its control block.
func (x *Instance) initialise(in *Entry) (control, *abi.Failure) {
	in.Now = initTime
	x.initFuel = 0
	x.kill.Store(nil)
	if f := x.enterInit(in, rewrite.EnterInitialize); f != nil {
		return control{}, f
	}
	if f := x.enterInit(in, rewrite.EnterInit); f != nil {
		return control{}, f
	}
	c, err := readControl(x.memory.Bytes(), uint32(x.stack[0]))
	if err != nil {
		return c, &abi.Failure{Kind: abi.FailureABIViolation, Reason: err.Error()}
	}
	return c, nil
}

// enterInit runs one step of the initialisation.
func (x *Instance) enterInit(in *Entry, op uint32) (f *abi.Failure) {
	x.begin(in)
	if err := x.call(op, 0, 0, uint64(x.first)); err != nil {
		f = x.explain(err)
		f.Fuel = x.spentNow()
	} else {
		x.initFuel += x.spentNow()
	}
	x.staging = x.staging[:0] // commands of an initialisation are dropped: there is no actor yet
	if in.stacked != 0 {
		x.dropStack()
	}
	x.finishLines()
	x.end()
	return f
}

// Prepare runs the initialisation of an instance whose image is not frozen, if it has not
// run: after Get and after every Reset, before the first Push. It runs like a turn, under the
// limits of in (and those of the image for initialisations), can be killed, yields, and
// draws its random bytes from in.Seed. Its clock stands at the same time as that of frozen
// images. The failure is one of kind init.
func (x *Instance) Prepare(in *Entry) *abi.Failure {
	if !x.raw {
		return nil
	}
	i := x.image
	own := *in
	own.TurnFuel, own.Deadline = i.cfg.InitFuel, i.cfg.InitDeadline
	if in.TurnFuel != 0 {
		own.TurnFuel = min(own.TurnFuel, in.TurnFuel)
	}
	if in.Deadline > 0 {
		own.Deadline = min(own.Deadline, in.Deadline)
	}
	x.poisoned = true // until this has succeeded
	c, f := x.initialise(&own)
	if f == nil && (c.InboxCap != i.control.InboxCap || c.OutboxCap != i.control.OutboxCap) {
		f = &abi.Failure{Kind: abi.FailureABIViolation, Reason: "the rings have another size than when the module was loaded"}
	}
	if f != nil {
		f.Turn = in.FirstTurn
		f.Reason = f.Kind.String() + ": " + f.Reason
		f.Kind = abi.FailureInit
		return f
	}
	x.control, x.raw, x.poisoned = c, false, false
	return nil
}
