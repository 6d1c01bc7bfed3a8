// Package rewrite turns a guest's module into one that can be run safely: metered, with
// clamped tables and memories, a bounded call stack, and a single entry. It also makes the
// frozen module of an image.
//
// docs/architecture/metering.md says what is charged and why.
package rewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Names that the rewriter adds. Guests may not use the import module nor names
// with the prefix.
const (
	ImportModule = "wa"
	Prefix       = "wa:"

	// ImportRefuel is func(fuel i64) i64: called with what is left of the fuel,
	// it returns the fuel to go on with, at least zero, or does not return. It is called where that is
	// below zero, and always after the memory has grown.
	ImportRefuel = "refuel"
	// ImportExceeded is func(code i32): it must not return.
	ImportExceeded = "exceeded"

	// ExportEnter is func(op, a, b i32, fuel i64) (i64, i64), the only function
	// that the host calls. See the Enter constants.
	ExportEnter = "wa:enter"

	// Hidden globals, for the host to read after a trap.
	GlobalFuel    = "wa:fuel"    // i64: left of what was granted
	GlobalQuantum = "wa:quantum" // i64: what the turn has begun with, or the code between two turns
	GlobalSpent   = "wa:spent"   // i64: of ended turns, less what refuel has granted
	GlobalCount   = "wa:count"   // i32: envelopes of this entry
	GlobalBegun   = "wa:begun"   // i32: turns begun
	GlobalEnded   = "wa:ended"   // i32: turns ended
	GlobalOut     = "wa:out"     // i32: length of the outbox when the last turn ended
	GlobalDirty   = "wa:dirty"   // i32: see the Dirty constants
	GlobalStop    = "wa:stop"    // i32: not 0: no turn of this entry is to begin but the first; the host writes it, also while the guest runs

	// GlobalBlock is there with Options.Sites: i64, what local 0 of the function was that has called refuel last, plus 1 << 32, if that is
	// a parameter of type i32. In code of standard Go that is the number of the block that comes next. The host sets it to 0.
	GlobalBlock = "wa:block"
)

// Operations of ExportEnter.
const (
	// EnterTurn runs wasmactors_turn(a) with b envelopes, the first turn with this
	// fuel, every other one with what is left. Results: turns begun << 32 | the outbox's length; GlobalSpent.
	EnterTurn = 0
	// EnterReset gives every mutable global its initial value. Frozen modules only.
	EnterReset = 1
	// EnterInitialize runs the start function and _initialize. Not in frozen modules.
	EnterInitialize = 2
	// EnterInit runs wasmactors_init. Results: the control block's address; fuel
	// left. Not in frozen modules.
	EnterInit = 3
	// EnterGlobal reads guest global Mutable[a]: its bits, low and high half; for a
	// reference 1 if it is null, else 0.
	EnterGlobal = 4
	// EnterSetGlobal sets Mutable[a], a number, to the bits that are passed as fuel.
	// Frozen modules only.
	EnterSetGlobal = 5
)

// Bits of GlobalDirty.
const (
	DirtyTable   = 1 // a table was written to or has grown
	DirtySegment = 2 // a segment was dropped
	DirtyMemory  = 4 // the memory has grown
)

// CodeStack is the argument of ImportExceeded when the call stack is too deep.
const CodeStack = 1

// Bounds and defaults of Options.
const (
	DefaultMemoryPages = 1024
	DefaultTableLimit  = 65536
	DefaultTableTotal  = 2 * DefaultTableLimit
	DefaultStackBytes  = 1 << 20
)

// Options bound what the module may use; zero fields mean the defaults.
type Options struct {
	MemoryPages uint32 // of 64 KiB
	TableLimit  uint32 // entries of a table
	TableTotal  uint32 // entries of all tables together
	StackBytes  uint32 // as the meter weighs frames
	RawNaNs     bool   // results that are NaN keep the bits that the processor gives them
	// Sites keeps which instructions of the module those of the rewritten one stand for, see Result.Sites. Then GlobalBlock is set,
	// which changes nothing that a guest can notice.
	Sites bool
}

func (o Options) withDefaults() Options {
	if o.MemoryPages == 0 {
		o.MemoryPages = DefaultMemoryPages
	}
	if o.MemoryPages > wasm.MaxPages {
		o.MemoryPages = wasm.MaxPages
	}
	if o.TableLimit == 0 {
		o.TableLimit = DefaultTableLimit
	}
	if o.TableTotal == 0 {
		o.TableTotal = max(o.TableLimit, DefaultTableTotal)
	}
	if o.StackBytes == 0 {
		o.StackBytes = DefaultStackBytes
	}
	return o
}

// Result is an instrumented module.
type Result struct {
	Module   *wasm.Module   // runs the initialisation; also works unfrozen
	Batching bool           // the guest asks for its envelopes through next
	Mutable  []wasm.ValType // the guest's mutable globals in order; see EnterGlobal
	Metered  int            // functions that are charged at their entry
	Counted  int            // functions whose depth is counted
	Steps    uint64         // the work of rewriting: bytes of types, instructions, labels, edges of the call graph and so on

	in        *instrumenter
	needsData bool
}

// ErrNotFreezable is wrapped by errors of Freeze, whose texts say which state a module cannot
// declare.
var ErrNotFreezable = errors.New("the state after initialisation cannot be frozen")

// Refusal is a module that breaks a rule of the host's.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return e.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Instrument rewrites m, which it does not change. The same input gives the same
// output. The error is a *Refusal or a *wasm.Error.
func Instrument(m *wasm.Module, o Options) (*Result, error) {
	o = o.withDefaults()
	in := &instrumenter{src: m, opt: o}
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := in.analyse(); err != nil {
		return nil, err
	}
	in.layout()
	if err := in.bodies(); err != nil {
		return nil, err
	}
	in.finish()
	res := &Result{Module: in.out, Batching: in.next >= 0, in: in, needsData: in.usesData, Steps: in.steps}
	for _, g := range m.Globals {
		if g.Mutable {
			res.Mutable = append(res.Mutable, g.Type)
		}
	}
	for i := range in.funcs {
		if !in.funcs[i].leaf {
			res.Metered++
		}
		if in.funcs[i].counted {
			res.Counted++
		}
	}
	return res, nil
}

// check refuses a module with anything that guests may not have; the error names it.
func (in *instrumenter) check() error {
	m := in.src
	in.next = -1
	for i := range m.Imports {
		imp := &m.Imports[i]
		if imp.Kind != wasm.KindFunc {
			return refuse("the module imports the %s %q.%q; guests may import functions only", imp.Kind, imp.Module, imp.Name)
		}
		if imp.Module == ImportModule {
			return refuse("the import module %q is reserved for the host", ImportModule)
		}
		if imp.Module == "wasmactors" && imp.Name == "next" {
			if in.next >= 0 {
				return refuse("wasmactors.next is imported twice")
			}
			if !in.hasType(imp.Func, []wasm.ValType{wasm.I32}, []wasm.ValType{wasm.I32}) {
				return refuse("wasmactors.next must be (param i32) (result i32)")
			}
			in.next = i
		}
	}
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, Prefix) {
			return refuse("the export %q: names that begin with %q are reserved for the host", e.Name, Prefix)
		}
	}
	var err error
	in.turn, err = in.entry("wasmactors_turn", true, []wasm.ValType{wasm.I32}, []wasm.ValType{wasm.I32})
	if err != nil {
		return err
	}
	if in.init, err = in.entry("wasmactors_init", true, nil, []wasm.ValType{wasm.I32}); err != nil {
		return err
	}
	if in.initialize, err = in.entry("_initialize", false, nil, nil); err != nil {
		return err
	}
	if m.Start != nil && !in.hasType(m.FuncTypeIndex(*m.Start), nil, nil) {
		return refuse("the start function has parameters or results")
	}
	if e := m.FindExport("memory"); e == nil || e.Kind != wasm.KindMemory {
		return refuse(`the module does not export its memory as "memory"`)
	}
	if mem := m.Memories[0]; mem.Min > in.opt.MemoryPages {
		return refuse("the module needs a memory of %d KiB at least, the limit is %d KiB", uint64(mem.Min)*64, uint64(in.opt.MemoryPages)*64)
	}
	total := uint64(0)
	for _, t := range m.Tables {
		if t.Min > in.opt.TableLimit {
			return refuse("the module needs a table of %d entries at least, the limit is %d", t.Min, in.opt.TableLimit)
		}
		if total += uint64(t.Min); total > uint64(in.opt.TableTotal) {
			return refuse("the module needs tables of %d entries together at least, the limit is %d", total, in.opt.TableTotal)
		}
	}
	return nil
}

// entry finds an exported function and checks its type; -1 if it may be missing.
func (in *instrumenter) entry(name string, required bool, params, results []wasm.ValType) (int, error) {
	e := in.src.FindExport(name)
	if e == nil || e.Kind != wasm.KindFunc {
		if !required {
			return -1, nil
		}
		return -1, refuse("the module does not export the function %q: it is not a wasmactors guest, or was not built as a reactor (-buildmode=c-shared)", name)
	}
	if int(e.Index) < in.src.NumImported(wasm.KindFunc) {
		return -1, refuse("the export %q is an imported function", name)
	}
	if !in.hasType(in.src.FuncTypeIndex(e.Index), params, results) {
		return -1, refuse("the export %q has the wrong type: params %v and results %v are expected", name, params, results)
	}
	return int(e.Index), nil
}

func (in *instrumenter) hasType(typ uint32, params, results []wasm.ValType) bool {
	t := in.src.Types[typ]
	return string(toBytes(t.Params)) == string(toBytes(params)) && string(toBytes(t.Results)) == string(toBytes(results))
}

func toBytes(ts []wasm.ValType) []byte {
	b := make([]byte, len(ts))
	for i, t := range ts {
		b[i] = byte(t)
	}
	return b
}
