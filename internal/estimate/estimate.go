// Package estimate estimates what wazero's compiler will need for a module, before it is run: a
// small module can make it work for minutes and take gigabytes.
//
// The estimate walks the code once as the compiler's front end does, with blocks, values and
// joins but without instructions, and counts what its passes do more than once for each of them.
// It ends as soon as a bound is exceeded, so that it never takes long itself.
// docs/architecture/images.md says how it was calibrated.
package estimate

import "github.com/wasmactors/wasmactors/internal/wasm"

// Cost is what compiling takes.
type Cost struct {
	Steps uint64 // of about a nanosecond each
	Bytes uint64 // at the worst moment
}

// Cause is what makes a function expensive.
type Cause int

// The causes.
const (
	Code     Cause = iota // instructions
	Blocks                // blocks that follow each other
	Joins                 // locals that are looked up and differ where paths join
	Branches              // values that branches, blocks and calls pass
	Live                  // values that stay alive across blocks
	Reloads               // globals that are read again after calls
	Bounds                // addresses whose bounds are remembered
	Locals                // locals that are declared
	Globals               // globals that each function declares
	Imports               // imports that calls of them search
	causes
)

var causeNames = [causes]string{
	"instructions", "blocks in one function", "locals that differ where paths join", "values that branches, blocks and calls pass", "values that stay alive across blocks",
	"mutable globals that are read again after calls", "memory accesses through different addresses", "locals", "globals that each function declares", "calls of imported functions",
}

func (c Cause) String() string { return causeNames[c] }

// Estimate is what a module takes.
type Estimate struct {
	Cost
	Func  int   // the most expensive function, counting imported ones; -1 if there is none
	Worst Cost  // what it takes
	Cause Cause // the cause of most of its steps
	Over  bool  // the walk has ended early: a bound was exceeded
}

// Module estimates the functions of m from the one of index first, not counting imported ones. It
// stops when the cost exceeds most.
func Module(m *wasm.Module, first int, most Cost) Estimate {
	s := newSim(m, most)
	e := Estimate{Func: -1}
	e.Steps = stepsModule + uint64(len(m.Types)+len(m.Imports)+len(m.Elems)+len(m.Exports))*stepsEntry
	for i := range m.Types {
		e.Steps += uint64(len(m.Types[i].Params)+len(m.Types[i].Results)) * stepsTypeValue
	}
	var largest uint64
	for i := first; i < len(m.Code) && !e.Over; i++ {
		s.begin = e.Steps
		s.function(i)
		steps := uint64(0)
		cause := Code
		for c, n := range s.steps {
			steps += n
			if n > s.steps[cause] {
				cause = Cause(c)
			}
		}
		e.Steps += steps
		e.Bytes += s.output
		largest = max(largest, s.bytes)
		if steps > e.Worst.Steps || s.over && s.bytes >= most.Bytes {
			e.Func, e.Worst, e.Cause = s.imported+i, Cost{steps, s.bytes}, cause
		}
		e.Over = s.over || e.Steps > most.Steps || e.Bytes+largest > most.Bytes
	}
	e.Bytes += largest
	return e
}
