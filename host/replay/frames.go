package replay

import (
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/internal/pclntab"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
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

// Lines knows the lines of a guest of standard Go, from its own table.
type Lines struct {
	table   *pclntab.Table
	numbers map[string]int // of functions by their names in the module
}

// LinesOf reads them in the memory of a guest, which must not change; nil: it is not of standard Go, or of one before 1.20.
func LinesOf(memory []byte) *Lines {
	table := pclntab.Find(memory)
	if table == nil {
		return nil
	}
	l := &Lines{table, map[string]int{}}
	table.Each(func(n int, name string) { l.numbers[inModule(name)] = n })
	return l
}

// inModule is the name of a function of Go in the module: everything but letters, digits and points is an underscore.
func inModule(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' {
			return c
		}
		return '_'
	}, name)
}

// Each calls f with the numbers and names of all functions.
func (l *Lines) Each(f func(number int, name string)) { l.table.Each(f) }

// Failed is the stack of a failure, innermost first, whose functions are known by name only; nil: it is not known.
func (l *Lines) Failed(names []string, memory []byte, globals []uint64) []Frame {
	calls := make([]sandbox.Frame, len(names))
	for k, name := range names {
		calls[k] = sandbox.Frame{Name: name, Function: -1}
		if n, ok := l.numbers[name]; ok {
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
	stack := l.table.Stack(memory, globals[0]&0xffffffff, calls[0].Function, caller)
	if len(stack) == 0 {
		return nil
	}
	for _, c := range stack {
		f := Frame{Function: c.Name(), Begin: c.PC == 0}
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

// Named are calls by their names only.
func Named(calls []sandbox.Frame) (frames []Frame) {
	for _, c := range calls {
		frames = append(frames, Frame{Function: c.Name})
	}
	return frames
}

// Culprit is the call that has panicked: the first one below the runtime's; nil: none has.
func Culprit(stack []Frame) *Frame {
	for k := range stack {
		if stack[k].Function != "runtime.gopanic" {
			continue
		}
		for k++; k < len(stack); k++ {
			if !strings.HasPrefix(stack[k].Function, "runtime.") {
				return &stack[k]
			}
		}
	}
	return nil
}

// stackOf is that of the failure that an instance has come to, with lines if they are known.
func (r *run) stackOf(names []string) []Frame {
	memory := r.x.Memory()
	l := LinesOf(memory)
	if l == nil {
		return nil
	}
	globals, err := sandbox.Globals(r.x)
	if err != nil {
		return nil
	}
	return l.Failed(names, memory, globals)
}
