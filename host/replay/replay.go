// Package replay repeats what a crash file has: the last turns of a guest, up to the one that has failed. It needs neither
// the bundle nor a network, services or other actors.
//
// A crash file may be forged: its module, its snapshot and its messages are a stranger's. They run as any guest does, within
// limits that the file can lower and not raise, and nothing of what a turn asks for is carried out.
package replay

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// Options say how a file is repeated.
type Options struct {
	// Module is the module to take; nil: that of the file, or the one in the engine's cache. If it is another one than has
	// failed, the same messages are given to it.
	Module []byte
	// Memory is the most that the guest's memory may have, in bytes; 0: DefaultMemory.
	Memory uint64
}

// DefaultMemory is the most that a repeated guest may have: 1 GiB.
const DefaultMemory = 1 << 30

// Of what is repeated; a file may have less.
const (
	mostOutbox       = 64 << 20
	mostInitFuel     = 10 * sandbox.DefaultInitFuel
	mostInitDeadline = 2 * sandbox.DefaultInitDeadline
	mostTable        = 16 * sandbox.DefaultTableLimit
	mostStack        = 16 * sandbox.DefaultStackLimit
	mostTimes        = 16 // of the defaults of other limits
	mostDifferences  = 20
)

// ErrModule reports that the module is not there.
var ErrModule = errors.New("the module is not in the file, nor in the cache")

// Report is what came out.
type Report struct {
	// Reproduced says that the same failure has come about after the same turns, with the same fuel.
	Reproduced bool `json:"reproduced"`
	// Turns is how many turns before the failing one were equal.
	Turns int `json:"turns"`
	// Failure is what has come about; nil: none.
	Failure *abi.Failure `json:"-"`
	// Differences are what was not equal: the first one, or those of another module up to a bound.
	Differences []Difference `json:"differences,omitempty"`
	// Stack is that of the failure, innermost first, with lines: of guests of standard Go, and after Locate of modules with DWARF.
	Stack []Frame `json:"stack,omitempty"`
	// More is how many differences are not listed.
	More int `json:"more,omitempty"`
	// Note says what the report does not show.
	Note string `json:"note,omitempty"`

	// Other is the hash of the module, if it is another one than has failed; empty: it is the same.
	Other string `json:"other,omitempty"`
	// Handled says that the other module has handled the message that the failure was about.
	Handled bool `json:"handled,omitempty"`
}

// Difference is where a turn has come out differently.
type Difference struct {
	Turn    uint64 `json:"turn"`
	Command int    `json:"command"` // of the turn, from 0; -1: it is not about one
	Byte    int    `json:"byte"`    // of the entry's commands, from 0; -1: it is not known
	What    string `json:"what"`
}

// String is the difference in a line.
func (d *Difference) String() string {
	s := fmt.Sprintf("turn %d", d.Turn)
	if d.Command >= 0 {
		s += fmt.Sprintf(", command %d", d.Command)
	}
	if d.Byte >= 0 {
		s += fmt.Sprintf(", byte %d", d.Byte)
	}
	return s + ": " + d.What
}

// Run repeats a file. It fails with an error of ctx if that ends before, with one that wraps ErrModule if the module is
// missing, and with another one if the file cannot be repeated.
func Run(ctx context.Context, engine *runtime.Engine, f *blackbox.File, o Options) (*Report, error) {
	if f.Inexact != "" {
		return nil, fmt.Errorf("it cannot be repeated: %s", f.Inexact)
	}
	r := &run{file: f, report: &Report{}}
	return r.whole(ctx, engine, o)
}

// whole repeats the file.
func (r *run) whole(ctx context.Context, engine *runtime.Engine, o Options) (*Report, error) {
	done, err := r.open(ctx, engine, o)
	if err != nil {
		return nil, err
	}
	defer done()
	stop := context.AfterFunc(ctx, func() { r.x.Kill("the replay was ended") })
	defer stop()
	r.ctx = ctx
	err = r.all()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the replay was ended: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	return r.report, nil
}

// open loads the module and gets an instance, which done gives back.
func (r *run) open(ctx context.Context, engine *runtime.Engine, o Options) (done func(), err error) {
	image, err := r.load(ctx, engine, o)
	if err != nil {
		return nil, err
	}
	x, err := sandbox.Get(image)
	if err != nil {
		_ = image.Close() // it never fails
		return nil, err
	}
	r.x = x
	return func() {
		x.Put()
		_ = image.Close()
	}, nil
}

func (r *run) load(ctx context.Context, engine *runtime.Engine, o Options) (*runtime.Image, error) {
	f := r.file
	wasm := o.Module
	switch sum := sha256.Sum256(wasm); {
	case wasm == nil:
		if wasm = f.Module; wasm != nil && sha256.Sum256(wasm) != f.Image.Module {
			return nil, errors.New("the module in the file is not the one that the file is about")
		}
	case sum != f.Image.Module:
		r.other, r.report.Other = true, fmt.Sprintf("%x", sum)
	}
	r.module = wasm
	image, err := loadImage(ctx, engine, &f.Image, wasm, o.Memory, r.places && wasm != nil)
	if err != nil || r.other || slices.Contains(image.Description().Types, f.Type) { // another module may ignore the type
		return image, err
	}
	_ = image.Close() // it never fails
	return nil, fmt.Errorf("the module has no actor type %q", printable.Line(f.Type, mostType))
}

// mostType is how much is said of the name of a type, in bytes.
const mostType = 100

// LoadImage loads the image that a file describes, within limits that the file can lower and not raise: of a module, or, if
// that is nil, from the engine's cache. memory is the most that an instance's memory may have, in bytes; 0: DefaultMemory. The
// error wraps ErrModule if the module is missing.
func LoadImage(ctx context.Context, engine *runtime.Engine, i *blackbox.Image, wasm []byte, memory uint64) (*runtime.Image, error) {
	return loadImage(ctx, engine, i, wasm, memory, false)
}

// loadImage is LoadImage; places says that the image is to tell where its code is.
func loadImage(ctx context.Context, engine *runtime.Engine, i *blackbox.Image, wasm []byte, memory uint64, places bool) (*runtime.Image, error) {
	if memory == 0 {
		memory = DefaultMemory
	}
	cfg := i.Config
	cfg.Places = places
	lower(&cfg.MemoryLimit, memory)
	lower(&cfg.TableLimit, mostTable)
	lower(&cfg.StackLimit, mostStack)
	lower(&cfg.EntriesLimit, 2*mostTable)
	lower(&cfg.TablesLimit, mostTimes*sandbox.DefaultTablesLimit)
	lower(&cfg.TypeLimit, mostTimes*sandbox.DefaultTypeLimit)
	lower(&cfg.FunctionLimit, mostTimes*sandbox.DefaultFuncLimit)
	lower(&cfg.SegmentLimit, mostTimes*sandbox.DefaultSegmentLimit)
	lower(&cfg.ElementLimit, mostTimes*sandbox.DefaultElementLimit)
	lower(&cfg.GlobalLimit, mostTimes*sandbox.DefaultGlobalLimit)
	lower(&cfg.CompileSteps, mostTimes*sandbox.DefaultCompileSteps)
	lower(&cfg.CompileBytes, mostTimes*sandbox.DefaultCompileBytes)
	lower(&cfg.DataLimit, mostTimes*sandbox.DefaultDataLimit)
	lower(&cfg.InitFuel, mostInitFuel)
	lower(&cfg.InitDeadline, mostInitDeadline)
	src := runtime.Source{Sum: i.Module, Read: func(context.Context) ([]byte, error) {
		if wasm == nil {
			return nil, fmt.Errorf("%w: SHA-256 %x", ErrModule, i.Module)
		}
		return wasm, nil
	}}
	if wasm != nil {
		src.Sum = sha256.Sum256(wasm)
	}
	return engine.LoadFrom(ctx, src, cfg)
}

// lower keeps a limit within what is allowed; 0 stays the default.
func lower[N uint32 | uint64 | time.Duration](n *N, most N) { *n = min(*n, most) }

// run is a repetition. It is a turn.Speaker.
type run struct {
	ctx    context.Context
	file   *blackbox.File
	report *Report
	x      *sandbox.Instance
	module []byte // nil: it is in the cache
	other  bool   // another module
	places bool   // the image is to tell where its code is, if the module is there
	self   abi.Ref
	key    abi.RefKey
	ahead  uint64 // number of the next child

	spawned uint64 // children of earlier incarnations

	in    sandbox.Entry
	res   sandbox.Result
	steps func(*sandbox.Entry, *sandbox.Result) // instead of Run; nil: none
	cmds  []abi.Command
}

// Self implements turn.Speaker.
func (r *run) Self() abi.Ref { return r.self }

// Persists implements turn.Speaker: whether the actor kept events is known from how it failed.
func (r *run) Persists() bool {
	return r.file.Failure.Kind != abi.FailureABIViolation || !strings.HasPrefix(r.file.Failure.Reason, "persist: ")
}

// NextChild implements turn.Speaker.
func (r *run) NextChild() abi.Ref {
	ref := abi.ChildRef(r.key, r.self.Node(), r.ahead)
	r.ahead++
	return ref
}

// begin brings the actor to its state before the first entry.
func (r *run) begin() error {
	f := r.file
	begin, _ := f.Begin()
	var start abi.Start
	err := errors.New("it has no start")
	begin.Mail(func(e *abi.Envelope) bool {
		err = abi.DecodeStart(&start, e.Payload)
		return false
	})
	if err != nil {
		return fmt.Errorf("the start of the actor cannot be read: %w", err)
	}
	r.self, r.key, r.ahead, r.spawned = start.Self, start.RefKey, f.Spawned, start.Spawned
	r.in = sandbox.Entry{TurnFuel: f.Fuel, MemoryLimit: f.Memory, OutboxLimit: f.Outbox, Seed: f.Seed, Killable: true}
	lower(&r.in.OutboxLimit, mostOutbox)
	switch {
	case f.FromStart || r.other:
		in := r.in
		in.Seed, in.Now = f.Prepare, begin.Now
		if failure := r.x.Prepare(&in); failure != nil {
			return fmt.Errorf("the initialisation of the module fails: %w", failure)
		}
	default:
		s, err := sandbox.DecodeSnapshot(r.x.Image(), f.Base, f.Memory)
		if err != nil {
			return err
		}
		if err := r.x.Restore(s); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) all() error {
	if err := r.begin(); err != nil {
		return err
	}
	f := r.file
	goesOn := true
	if r.other && !f.FromStart {
		begin, _ := f.Begin()
		r.ahead = r.spawned
		r.report.Note = fmt.Sprintf("the snapshot of turn %d is of the module that has failed: the other one was started, and got what the actor was sent since that turn", f.Exact)
		goesOn = r.entry(&begin, false)
	}
	f.Entries(func(e *blackbox.Entry) bool {
		goesOn = goesOn && r.entry(e, false)
		return goesOn
	})
	if failing, ok := f.Failing(); ok && goesOn {
		r.entry(&failing, true)
	}
	return nil
}

// entry repeats an entry, and compares it; false: there is no use in going on.
func (r *run) entry(e *blackbox.Entry, last bool) bool {
	in := &r.in
	in.Now, in.FirstTurn, in.Most, in.Cut = e.Now, e.First, 0, nil
	switch {
	case !last:
		in.Most = e.Done
		if e.Done == 0 {
			return true
		}
	case !r.other:
		if e.Ended {
			in.Most = e.Done + 1
		}
		if !r.file.Judged || e.Cut != nil && e.Cut.Stage != sandbox.StageWork {
			in.Cut = e.Cut
		}
	}
	fits := true
	e.Mail(func(env *abi.Envelope) bool {
		fits = r.x.Push(env)
		return fits
	})
	if !fits {
		r.differs(e.First, -1, -1, "a message does not fit the guest's inbox")
		return false
	}
	if r.steps != nil {
		r.steps(in, &r.res)
	} else {
		r.x.Run(in, &r.res)
	}
	done, f := r.read(e, last)
	if r.ctx.Err() != nil {
		return false
	}
	outbox := r.x.Outbox(done)
	r.report.Failure = f
	if r.other {
		return r.compareOther(e, last, done, f, outbox)
	}
	return r.compare(e, last, done, f, outbox)
}

// read is what the host does with the commands of turns, as far as it does not depend on other actors.
func (r *run) read(e *blackbox.Entry, last bool) (done int, f *abi.Failure) {
	spawned := r.ahead
	for done < r.res.Turns {
		at, cmds, ok, err := r.x.NextTurn(r.cmds)
		r.cmds = cmds
		if err != nil {
			if !errors.As(err, &f) {
				f = &abi.Failure{Kind: abi.FailureABIViolation, Reason: err.Error()}
			}
			break
		}
		if !ok {
			break
		}
		if _, f = turn.Examine(cmds, at, &r.res, r); f != nil {
			break
		}
		spawned = r.ahead
		done++
		if last && r.file.Judged && !r.other && done > e.Done { // what the host has found too costly depends on other actors
			failure := r.file.Failure
			if r.res.Turns == 1 {
				failure.Fuel = r.res.Fuel
			}
			return done, &failure
		}
	}
	r.ahead = spawned
	if f == nil {
		return done, r.res.Failure
	}
	if f.Turn = e.First + uint64(done); r.res.Turns == 1 {
		f.Fuel = r.res.Fuel
	}
	return done, f
}

func (r *run) differs(turn uint64, command, at int, why string, args ...any) {
	if len(r.report.Differences) == mostDifferences {
		r.report.More++
		return
	}
	r.report.Differences = append(r.report.Differences, Difference{turn, command, at, fmt.Sprintf(why, args...)})
}

// outbox compares what was written; false: it differs.
func (r *run) outbox(e *blackbox.Entry, outbox []byte) bool {
	at, differs := e.Differs(outbox)
	if !differs {
		return true
	}
	if at < 0 {
		r.differs(e.First, -1, -1, "its commands, %d bytes, are not those of before, of which there is only a hash", len(outbox))
		return false
	}
	t, command := place(outbox, at, sandbox.Batching(r.x.Image()))
	r.differs(e.First+uint64(t), command, at, "its commands are others than before")
	return false
}

// place is the turn and the command that a byte of an outbox is in.
func place(outbox []byte, at int, marked bool) (turn, command int) {
	for from := 0; from < len(outbox); command++ {
		var c abi.Command
		n, err := abi.DecodeCommand(&c, outbox[from:])
		if err != nil || from+n > at {
			break
		}
		if from += n; c.Op == abi.OpEnd && marked {
			turn, command = turn+1, -1
		}
	}
	return turn, command
}

func (r *run) compare(e *blackbox.Entry, last bool, done int, f *abi.Failure, outbox []byte) bool {
	want := e.Done
	if last && r.file.Judged {
		want++
	}
	number := e.First + uint64(min(done, want))
	switch {
	case done < want:
		r.differs(number, -1, -1, "it has failed: %v; before it ended well", f)
		return false
	case !r.outbox(e, outbox):
		return false
	case !last && (f != nil || done != want):
		r.differs(number, -1, -1, "%d turns of its entry end well, then %v; before it were %d", done, f, want)
		return false
	case !last && !e.Failed && r.res.Fuel != e.Fuel:
		r.differs(number, -1, -1, "its entry has spent %d units of fuel, before it were %d", r.res.Fuel, e.Fuel)
		return false
	case !last:
		r.report.Turns += done
		return true
	}
	old := &r.file.Failure
	switch {
	case f == nil:
		r.differs(e.First+uint64(e.Done), -1, -1, "it ends well, before it has failed: %v", old)
	case done != want:
		r.differs(number, -1, -1, "%d turns of its entry end well, before it were %d", done, want)
	case f.Kind != old.Kind || f.Reason != old.Reason || f.Message != old.Message:
		r.differs(number, -1, -1, "it has failed otherwise: %v; before: %v", f, old)
	case f.Fuel != old.Fuel:
		r.differs(number, -1, -1, "the failing turn has spent %d units of fuel, before it were %d", f.Fuel, old.Fuel)
	default:
		r.report.Turns += e.Done
		r.report.Reproduced = true
		r.report.Stack = r.stackOf(f)
		if r.file.Judged {
			r.report.Note = "what its commands cost depends on other actors: they are the same, and the host has refused them"
		}
	}
	return false
}

// compareOther is compare for another module, whose commands may differ.
func (r *run) compareOther(e *blackbox.Entry, last bool, done int, f *abi.Failure, outbox []byte) bool {
	want := e.Done
	if last && f == nil {
		r.report.Handled = true
		r.report.Turns += done
		return false
	}
	if done < want || !last && f != nil {
		r.differs(e.First+uint64(done), -1, -1, "it fails: %v", f)
		return false
	}
	if last {
		r.report.Stack = r.stackOf(f)
		r.differs(e.First+uint64(done), -1, -1, "it fails: %v", f)
		return false
	}
	if r.outbox(e, outbox) {
		r.report.Turns += done
	}
	return true
}
