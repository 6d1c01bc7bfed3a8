package instrcount

import (
	"path"
	"runtime"
	"slices"
	"strings"
)

// Place is a function of the program. Inlined functions belong to their callers.
type Place struct {
	Package  string // its import path; empty: the guest, whose code has no names
	File     string // without folders
	Function string // without the package
}

// Stack is a chain of calls, the outermost first.
type Stack []Place

// Stacks are the calls that were under way whenever one of the functions was called, that call included, in their order.
// What was called before the window began is known from the first return to it on. Names are as in [Function]; a function
// that was inlined has no calls. Calls through the guest are calls of the guest. Only for children of the same program,
// see [Self].
func (w *Window) Stacks(functions ...string) []Stack {
	var stacks []Stack
	var calls []uint64 // instructions that have called, and are not returned to yet
	for i, pc := range w.path {
		if i == 0 {
			continue
		}
		from := w.path[i-1]
		switch {
		case w.calls(from, pc):
			calls = append(calls, from)
			if name := nameAt(pc); !w.guest(pc) && slices.Contains(functions, name) {
				stacks = append(stacks, w.stack(append(calls, pc)))
			}
		case w.function(pc) != w.function(from): // it returns, perhaps over several
			for len(calls) > 0 && w.function(calls[len(calls)-1]) != w.function(pc) {
				calls = calls[:len(calls)-1]
			}
			if len(calls) > 0 {
				calls = calls[:len(calls)-1]
			}
		}
	}
	return stacks
}

// stack is that of instructions which called one after the other.
func (w *Window) stack(calls []uint64) Stack {
	var s Stack
	for _, pc := range calls {
		s = append(s, w.placeAt(pc))
	}
	return s
}

// longest is the size of the longest x86 instruction, in bytes.
const longest = 15

// calls reports whether the step from one instruction to the next is a call of a function.
func (w *Window) calls(from, to uint64) bool {
	if to >= from && to <= from+longest { // it follows
		return false
	}
	if w.guest(to) {
		return !w.guest(from)
	}
	return entry(to) == to
}

// function identifies the function of an instruction; all of the guest are one.
func (w *Window) function(pc uint64) uint64 {
	if w.guest(pc) {
		return 0
	}
	return entry(pc)
}

// entry is the first instruction of the function that an instruction belongs to.
func entry(pc uint64) uint64 {
	f := runtime.FuncForPC(uintptr(pc))
	if f == nil {
		return 0
	}
	return uint64(f.Entry())
}

// nameAt is the function of an instruction.
func nameAt(pc uint64) string {
	f := runtime.FuncForPC(uintptr(entry(pc)))
	if f == nil {
		return ""
	}
	return f.Name()
}

// placeAt is the function of an instruction, which is not the one that was inlined there.
func (w *Window) placeAt(pc uint64) Place {
	if w.guest(pc) {
		return Place{Function: "guest"}
	}
	first := uintptr(entry(pc))
	f := runtime.FuncForPC(first)
	if f == nil {
		return Place{Function: "unknown"}
	}
	file, _ := f.FileLine(first)
	return placeOf(f.Name(), file)
}

// placeOf splits the name that the linker gives to a function.
func placeOf(name, file string) Place {
	types := strings.IndexByte(name, '[') // of a generic function: they may contain paths
	if types < 0 {
		types = len(name)
	}
	dot := strings.LastIndexByte(name[:types], '/') + 1
	dot += max(0, strings.IndexByte(name[dot:], '.'))
	return Place{Package: name[:dot], File: path.Base(file), Function: strings.TrimPrefix(name[dot:], ".")}
}
