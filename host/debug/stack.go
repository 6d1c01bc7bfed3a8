package debug

import (
	"strings"

	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// stack is the calls under way at the present place, innermost first.
func (d *Debugger) stack(most int) (frames []Frame) {
	var calls []sandbox.Frame
	switch v := d.endView(); {
	case v != nil && v.outcome.Failure == nil:
		return nil
	case v != nil:
		for _, name := range v.outcome.Failure.Stack {
			calls = append(calls, sandbox.Frame{Name: name, Function: d.numberOf(name)})
		}
	case d.run == nil || d.run.steps == nil:
		return nil
	default:
		calls = d.run.steps.Frames(mostFrames)
	}
	if frames = d.goStack(calls); len(frames) == 0 {
		frames = named(calls)
	}
	return frames[:min(most, len(frames))]
}

func named(calls []sandbox.Frame) (frames []Frame) {
	for _, c := range calls {
		frames = append(frames, Frame{Function: c.Name})
	}
	return frames
}

// onOtherStack is the function that switches to the stack of the system: the calls below it are on another stack than those
// above.
const onOtherStack = "runtime.systemstack"

// goStack is the stack of the goroutine that runs; nil: the guest is not of standard Go.
func (d *Debugger) goStack(calls []sandbox.Frame) (frames []Frame) {
	if d.table == nil {
		return nil
	}
	globals, err := d.globals()
	if err != nil || len(globals) == 0 {
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
	if len(calls) > 1 {
		if _, ok := d.table.Numbered(calls[1].Function); ok && !strings.HasPrefix(calls[1].Name, "wasm_pc_f_loop") {
			caller = calls[1].Function
		}
	}
	stack := d.table.Stack(d.memory(), globals[0]&0xffffffff, calls[0].Function, caller)
	if len(stack) == 0 {
		return nil
	}
	for _, c := range stack {
		f := Frame{Function: c.Name(), Begin: c.PC == 0}
		f.File, f.Line = c.Line()
		frames = append(frames, f)
		if f.Function == onOtherStack {
			for k := range calls {
				if calls[k].Name == onOtherStack {
					return append(frames, named(calls[k+1:])...)
				}
			}
			break
		}
	}
	return frames
}

// numberOf is the number of a function of standard Go by its name in the module, where everything but letters, digits and
// points is an underscore; -1: there is none.
func (d *Debugger) numberOf(name string) int {
	if d.table == nil {
		return -1
	}
	if d.numbers == nil {
		d.numbers = map[string]int{}
		plain := func(c rune) rune {
			if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' {
				return c
			}
			return '_'
		}
		d.table.Each(func(n int, full string) { d.numbers[strings.Map(plain, full)] = n })
	}
	if n, ok := d.numbers[name]; ok {
		return n
	}
	return -1
}

// trace is what a guest of Go has written of its goroutines when it failed.
func (d *Debugger) trace() string {
	if v := d.endView(); v != nil && v.outcome.Failure != nil {
		return v.outcome.Failure.GuestStack
	}
	return ""
}
