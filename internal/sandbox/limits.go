package sandbox

import (
	"errors"
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/internal/estimate"
	"github.com/wasmactors/wasmactors/internal/slots"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// LimitError is a module that needs more than it may have. It is the cause of a
// [LoadError].
type LimitError struct {
	What  string // such as "needs a memory of"
	Key   string // the limit's name in manifests, such as memory, table, globals
	Need  uint64
	Limit uint64
	Unit  string // bytes, entries, globals, steps and so on
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the module %s %s, the limit is %s", e.What, amount(e.Need, e.Unit), amount(e.Limit, e.Unit))
}

// amount writes sizes so that two that differ look different.
func amount(n uint64, unit string) string {
	switch {
	case unit != "bytes":
		return fmt.Sprintf("%d %s", n, unit)
	case n >= 10<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// checkSize refuses a module before it is decoded.
func (c *ImageConfig) checkSize(raw []byte) error {
	if uint64(len(raw)) > c.SizeLimit {
		return &LimitError{"takes", "size", uint64(len(raw)), c.SizeLimit, "bytes"}
	}
	return nil
}

// checkModule refuses a module that declares more than it may have.
func (c *ImageConfig) checkModule(m *wasm.Module) error {
	for _, mem := range m.Memories {
		if need := uint64(mem.Min) * slots.WasmPage; need > c.MemoryLimit {
			return &LimitError{"needs a memory of", "memory", need, c.MemoryLimit, "bytes"}
		}
	}
	for _, t := range m.Types {
		if n := max(len(t.Params), len(t.Results)); n > wasm.MaxParams {
			return fmt.Errorf("a function type of the module has %d parameters or results, %d are allowed", n, wasm.MaxParams)
		}
	}
	entries := uint64(0)
	for _, t := range m.Tables {
		if t.Min > c.TableLimit {
			return &LimitError{"needs a table of", "table", uint64(t.Min), uint64(c.TableLimit), "entries"}
		}
		entries += uint64(t.Min)
	}
	var data, elements uint64
	for i := range m.Data {
		data += uint64(len(m.Data[i].Bytes))
	}
	for i := range m.Elems {
		elements += uint64(len(m.Elems[i].Funcs) + len(m.Elems[i].Exprs))
	}
	for _, l := range []LimitError{
		{"has", "tables", uint64(len(m.Tables)), uint64(c.TablesLimit), "tables"},
		{"needs tables with a total of", "table-entries", entries, uint64(c.EntriesLimit), "entries"},
		{"has", "globals", uint64(len(m.Globals)), uint64(c.GlobalLimit), "globals"},
		{"has", "types", uint64(len(m.Types)), uint64(c.TypeLimit), "types"},
		{"has", "functions", uint64(len(m.Imports) + len(m.Funcs)), uint64(c.FunctionLimit), "functions"},
		{"has", "segments", uint64(len(m.Data) + len(m.Elems)), uint64(c.SegmentLimit), "segments"},
		{"has segments of", "elements", elements, uint64(c.ElementLimit), "elements"},
		{"has data of", "data", data, c.DataLimit, "bytes"},
	} {
		if l.Need > l.Limit {
			return &l
		}
	}
	return nil
}

// What compiling a module may cost for each of its bytes, in addition to the limits: twice
// what the most expensive large module took that was measured.
const (
	stepsPerByte  = 1_000
	memoryPerByte = 200
)

// compileCost is what compiling a module of this size may take.
func (c *ImageConfig) compileCost(size int) estimate.Cost {
	return estimate.Cost{Steps: saturate(c.CompileSteps, stepsPerByte*uint64(size)), Bytes: saturate(c.CompileBytes, memoryPerByte*uint64(size))}
}

func saturate(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

// checkCompile refuses a module whose compilation would take too long or too much memory.
func (c *ImageConfig) checkCompile(e *estimate.Estimate, most estimate.Cost) error {
	what := "needs at least, to be compiled,"
	if e.Func >= 0 {
		what = fmt.Sprintf("needs at least, to be compiled, for the %s (most of it in function %d, which could be split),", e.Cause, e.Func)
	}
	switch {
	case e.Bytes > most.Bytes:
		return &LimitError{what, "compile-bytes", e.Bytes, most.Bytes, "bytes"}
	case e.Steps > most.Steps, e.Over:
		return &LimitError{what, "compile-steps", e.Steps, most.Steps, "steps"}
	}
	return nil
}

// ErrInstanceLimit is what Get returns at ImageConfig.InstanceLimit.
var ErrInstanceLimit = errors.New("runtime: the limit of instances of the image is reached")

// admit counts an instance, if the image and the engine may have another.
func (i *Image) admit() error {
	if n := i.live.Add(1); i.cfg.InstanceLimit > 0 && n > int64(i.cfg.InstanceLimit) {
		i.live.Add(-1)
		return fmt.Errorf("%w: %s: the limit is %d", ErrInstanceLimit, i.cfg.Name, i.cfg.InstanceLimit)
	}
	if err := i.engine.admit(); err != nil {
		i.live.Add(-1)
		return err
	}
	return nil
}

// dismiss uncounts an instance.
func (i *Image) dismiss() {
	i.live.Add(-1)
	i.engine.live.Add(-1)
}
