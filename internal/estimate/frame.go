package estimate

import (
	"math"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// registers is how many values wazero can keep in registers of one kind.
const registers = 12

// Unknown is a frame that was not estimated, because the module is too expensive.
const Unknown = math.MaxUint64

// Frames bounds the size of the stack frame of each of the module's own functions, in bytes, in
// addition to the fixed part: spilled values, each in a separate slot, and what calls pass on the
// stack. It stops when the estimate of all functions exceeds most.
func Frames(m *wasm.Module, most Cost) []uint64 {
	s := newSim(m, most)
	frames := make([]uint64, len(m.Code))
	for i := range m.Code {
		if frames[i] = Unknown; s.over {
			continue
		}
		s.function(i)
		s.begin += s.total
		if s.over {
			continue
		}
		width := uint64(8)
		if s.vector {
			width = 16
		}
		frames[i] = width*s.slots() + 8*uint64(s.passed)
	}
	return frames
}

// slots is how many values of the function may be spilled: those that are alive
// across a call, and those that are alive somewhere where there are more than
// registers.
func (s *sim) slots() uint64 {
	n := len(s.values)
	alive := make([]int32, n+2) // first the changes, then how many, then how often too many
	for i := range s.values {
		v := &s.values[i]
		if v.loop >= 0 {
			l := &s.loops[v.loop]
			v.until = max(v.until, l.values)
			v.spilled = v.spilled || l.calls > v.calls
		}
		if !v.fixed && v.until > int32(i) {
			alive[i]++
			alive[v.until]--
		}
	}
	now, crowded := int32(0), int32(0)
	for i := range alive {
		now += alive[i]
		if now > registers {
			crowded++
		}
		alive[i] = crowded
	}
	slots := uint64(0)
	for i := range s.values {
		v := &s.values[i]
		switch {
		case v.fixed || v.until <= int32(i):
		case v.spilled, alive[v.until] > alive[i], i > 0 && alive[i] > alive[i-1]:
			slots++
		}
	}
	return slots
}
