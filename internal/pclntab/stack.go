package pclntab

import "encoding/binary"

// Call is a call on the stack of a goroutine.
type Call struct {
	Func
	PC uint64 // where it goes on; 0: it is the innermost, and that is not known
}

// Line is the file and the line of the call under way in it; of the innermost it is where the function begins.
func (c *Call) Line() (file string, line int) {
	if c.PC == 0 {
		file, _ = c.Func.Line(c.Entry)
		return file, c.StartLine()
	}
	return c.Func.Line(c.PC - 1) // that of the call, not of what follows it
}

// mostCalls bounds the calls of a stack.
const mostCalls = 128

// Stack is the calls under way on the goroutine that runs, innermost first. sp is Go's stack pointer, global 0. innermost is
// the number of the function that runs, and caller that of the one that has called it; -1: that is not a function of Go's.
func (t *Table) Stack(mem []byte, sp uint64, innermost, caller int) (calls []Call) {
	f, ok := t.Numbered(innermost)
	if !ok {
		return nil
	}
	calls = append(calls, Call{Func: f})
	word := func(at uint64) uint64 {
		if at > uint64(len(mem)) || uint64(len(mem))-at < 8 {
			return 0
		}
		return binary.LittleEndian.Uint64(mem[at:])
	}
	// Whether its frame is there already is not known: the return address tells.
	pc := uint64(0)
	sizes := append(f.Frames(), 0)
	for strict := caller >= 0; pc == 0; strict = false {
		for _, size := range sizes {
			at := sp + uint64(size)
			g, ok := t.Func(word(at))
			if ok && size >= 0 && (!strict || g.Number() == caller) {
				pc, sp = word(at), at+8
				break
			}
		}
		if !strict {
			break
		}
	}
	for len(calls) < mostCalls {
		f, ok := t.Func(pc)
		if !ok {
			break
		}
		calls = append(calls, Call{f, pc})
		size, ok := f.Frame(pc)
		if !ok || size < 0 {
			break
		}
		sp += uint64(size)
		pc = word(sp)
		sp += 8
	}
	return calls
}
