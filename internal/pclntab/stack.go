package pclntab

import "encoding/binary"

// Call is a call on the stack of a goroutine.
type Call struct {
	Func
	PC uint64 // where it goes on; 0: it is the innermost
	At uint64 // of the innermost: where it is; 0: that is not known
}

// Line is the file and the line of the call under way in it; of the innermost, where that is not known, it is where the function
// begins.
func (c *Call) Line() (file string, line int) {
	if c.At != 0 {
		return c.Func.Line(c.At)
	}
	if c.PC == 0 {
		file, _ = c.Func.Line(c.Entry)
		return file, c.StartLine()
	}
	return c.Func.Line(c.PC - 1) // that of the call, not of what follows it
}

// mostCalls bounds the calls of a stack.
const mostCalls = 128

// Stack is the calls under way on the goroutine that runs, innermost first. sp is Go's stack pointer, global 0. innermost is
// the number of the function that runs, and caller that of the one that has called it; -1: that is not a function of Go's. block is that
// which comes next in the innermost; -1: it is not known.
func (t *Table) Stack(mem []byte, sp uint64, innermost, caller, block int) (calls []Call) {
	f, ok := t.Numbered(innermost)
	if !ok {
		return nil
	}
	calls = append(calls, Call{Func: f})
	if block >= 0 && block < 1<<blockBits {
		if _, line := f.Line(f.Entry + uint64(block)); line > 0 {
			calls[0].At = f.Entry + uint64(block)
		}
	}
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
		calls = append(calls, Call{Func: f, PC: pc})
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
