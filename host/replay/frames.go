package replay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/internal/dwarfline"
	"github.com/wasmactors/wasmactors/internal/pclntab"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// Frame is a call under way. Its texts are the guest's.
type Frame struct {
	Function string `json:"function"`
	// Arguments are those of the call, with their types; empty: they are not known.
	Arguments string `json:"arguments,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	// Begin says that the line is that where the function begins: where in it is not known.
	Begin bool `json:"begin,omitempty"`
}

// mostText bounds a text of a frame as it is shown, in bytes.
const mostText = 500

// String is the frame in a line that a terminal may show.
func (f *Frame) String() string {
	s := printable.Line(f.Function, mostText) + f.Arguments
	if f.File == "" {
		return s
	}
	at := fmt.Sprintf("%s:%d", printable.Line(f.File, mostText), f.Line)
	if f.Begin {
		at += " (begins)"
	}
	return fmt.Sprintf("%-40s  %s", at, s)
}

// Lines knows the lines of a guest: of standard Go from its own table, of others from DWARF.
type Lines struct {
	table   *pclntab.Table // nil: it is not of standard Go
	numbers map[string]int // of functions by their names in the module

	dwarf *dwarfline.Table
	sites interface{ Of(offset uint64) uint64 } // nil: the image does not tell places
}

// LinesOf reads them in the memory of a guest, which must not change, or in its module; nil: it is not of standard Go 1.20 or later, and its
// module, which may be nil, has no DWARF or the image of x no places.
func LinesOf(x *sandbox.Instance, memory, module []byte) *Lines {
	if table := pclntab.Find(memory); table != nil {
		l := &Lines{table: table, numbers: map[string]int{}}
		table.Each(func(n int, name string) { l.numbers[inModule(name)] = n })
		return l
	}
	if !hasDWARF(module) || !sandbox.ConfigOf(x.Image()).Places {
		return nil
	}
	table, err := sandbox.LinesOf(context.Background(), module)
	if err != nil {
		return nil // it is shown without lines
	}
	sites, err := sandbox.PlacesOf(x.Image(), module)
	if err != nil {
		return nil
	}
	return &Lines{dwarf: table, sites: sites}
}

// hasDWARF reports whether a module may have lines.
func hasDWARF(module []byte) bool { return bytes.Contains(module, []byte(".debug_line")) }

// FromGo reports whether the guest is of standard Go.
func (l *Lines) FromGo() bool { return l != nil && l.table != nil }

// inModule is the name of a function of Go in the module: everything but letters, digits and points is an underscore.
func inModule(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' {
			return c
		}
		return '_'
	}, name)
}

// Each calls f with the numbers and names of all functions, of a guest of standard Go.
func (l *Lines) Each(f func(number int, name string)) {
	if l.table != nil {
		l.table.Each(f)
	}
}

// FailedCalls are the calls under way when the guest has failed, innermost first. They are known until it runs again.
func FailedCalls(x *sandbox.Instance, f *abi.Failure) []sandbox.Frame {
	offsets := sandbox.FailedAt(x)
	calls := make([]sandbox.Frame, len(f.Stack))
	for k, name := range f.Stack {
		calls[k] = sandbox.Frame{Name: name, Function: -1, Block: -1}
		if k < len(offsets) {
			calls[k].Offset = offsets[k]
		}
	}
	if block, ok := sandbox.Block(x); ok && endsAtCharge(f) && len(calls) > 0 {
		calls[0].Block = int(block)
	}
	return calls
}

// endsAtCharge reports whether a turn has ended where it was charged, unless that was in a host function.
func endsAtCharge(f *abi.Failure) bool {
	return f.Kind == abi.FailureFuel || f.Kind == abi.FailureDeadline || f.Kind == abi.FailureKilled
}

// Failed is the stack of a failure with those calls, innermost first; nil: it is not known.
func (l *Lines) Failed(calls []sandbox.Frame, memory []byte, globals []uint64) []Frame {
	for k := range calls {
		if n, ok := l.numbers[calls[k].Name]; ok {
			calls[k].Function = n
		}
	}
	return l.Stack(calls, memory, globals)
}

// onOtherStack is the function that switches to the stack of the system: the calls below it are on another stack than those
// above.
const onOtherStack = "runtime.systemstack"

// Stack is the stack of the goroutine that runs, innermost first; nil: it is not known. calls are those of the module.
func (l *Lines) Stack(calls []sandbox.Frame, memory []byte, globals []uint64) (frames []Frame) {
	if l.table == nil {
		return l.placed(calls)
	}
	if len(globals) == 0 {
		return nil
	}
	for len(calls) > 0 && calls[0].Function < 0 { // of the host, or injected
		frames = append(frames, Frame{Function: calls[0].Name})
		calls = calls[1:]
	}
	if len(calls) == 0 {
		return nil
	}
	caller := -1
	if len(calls) > 1 && calls[1].Function >= 0 && !strings.HasPrefix(calls[1].Name, "wasm_pc_f_loop") {
		if _, ok := l.table.Numbered(calls[1].Function); ok {
			caller = calls[1].Function
		}
	}
	stack := l.table.Stack(memory, globals[0]&0xffffffff, calls[0].Function, caller, calls[0].Block)
	if len(stack) == 0 {
		return nil
	}
	for _, c := range stack {
		f := Frame{Function: c.Name(), Begin: c.PC == 0 && c.At == 0}
		f.File, f.Line = c.Line()
		frames = append(frames, f)
		if f.Function != onOtherStack {
			continue
		}
		for k := range calls {
			if calls[k].Name == onOtherStack {
				return append(frames, Named(calls[k+1:])...)
			}
		}
		break
	}
	return frames
}

// placed are calls with the lines that DWARF has for them, and what was put in line there.
func (l *Lines) placed(calls []sandbox.Frame) (frames []Frame) {
	for _, c := range calls {
		places := l.dwarf.At(l.sites.Of(c.Offset))
		if c.Offset == 0 || len(places) == 0 {
			frames = append(frames, Frame{Function: c.Name})
			continue
		}
		for _, p := range places {
			frames = append(frames, Frame{Function: cmp.Or(p.Function, c.Name), File: p.File, Line: p.Line})
		}
	}
	return frames
}

// Named are calls by their names only.
func Named(calls []sandbox.Frame) (frames []Frame) {
	for _, c := range calls {
		frames = append(frames, Frame{Function: c.Name})
	}
	return frames
}

// Culprit is the call that has failed: in Go the one that has panicked, the first one below the runtime's, and otherwise the innermost one whose
// line is known; nil: none is.
func Culprit(stack []Frame) *Frame {
	from := 0
	for k := range stack {
		if stack[k].Function == "runtime.gopanic" {
			from = k + 1
			break
		}
	}
	for k := from; k < len(stack); k++ {
		if f := &stack[k]; !strings.HasPrefix(f.Function, "runtime.") && (f.File != "" || from > 0) {
			return f
		}
	}
	return nil
}

// stackOf is that of the failure that an instance has come to, with lines if they are known.
func (r *run) stackOf(f *abi.Failure) []Frame {
	memory := r.x.Memory()
	l := LinesOf(r.x, memory, r.module)
	if l == nil {
		return nil
	}
	globals, err := sandbox.Globals(r.x)
	if err != nil {
		return nil
	}
	return l.Failed(FailedCalls(r.x, f), memory, globals)
}

// Locate gives a report of a failure lines that take longer to find than to repeat it: of a module with DWARF, and of a turn of standard Go
// that has ended without a panic. For that it repeats the file once more, in code that is compiled for it. Where that cannot be done, the
// report stays as it is: if the module is only in the cache, or ctx ends before.
func Locate(ctx context.Context, engine *runtime.Engine, f *blackbox.File, o Options, report *Report) {
	failed := report.Failure
	if failed == nil || !report.Reproduced && report.Other == "" {
		return
	}
	again := &run{file: f, report: &Report{}, places: true}
	module := o.Module
	if module == nil {
		module = f.Module
	}
	if begins := len(report.Stack) > 0 && report.Stack[0].Begin && endsAtCharge(failed); module == nil || !begins && !hasDWARF(module) {
		return
	}
	if r, err := again.whole(ctx, engine, o); err == nil && r.Failure != nil && r.Failure.Kind == failed.Kind && r.Failure.Fuel == failed.Fuel && len(r.Stack) > 0 {
		report.Stack = r.Stack
	}
}
