package sandbox

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/internal/slots"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// LimitError is a module that needs more than it may have. It is the cause of a
// [LoadError].
type LimitError struct {
	What  string // such as "needs a memory of"
	Key   string // the limit's name in manifests: memory, table, globals, data, size
	Need  uint64
	Limit uint64
	Unit  string // bytes, entries, globals
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
	for _, t := range m.Tables {
		if t.Min > c.TableLimit {
			return &LimitError{"needs a table of", "table", uint64(t.Min), uint64(c.TableLimit), "entries"}
		}
	}
	if n := len(m.Globals); uint64(n) > uint64(c.GlobalLimit) {
		return &LimitError{"has", "globals", uint64(n), uint64(c.GlobalLimit), "globals"}
	}
	var data uint64
	for i := range m.Data {
		data += uint64(len(m.Data[i].Bytes))
	}
	if data > c.DataLimit {
		return &LimitError{"has data of", "data", data, c.DataLimit, "bytes"}
	}
	return nil
}

// ErrInstanceLimit is what Get answers at ImageConfig.InstanceLimit.
var ErrInstanceLimit = errors.New("runtime: the image has as many instances as it may")

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

// dismiss ends the count of an instance.
func (i *Image) dismiss() {
	i.live.Add(-1)
	i.engine.live.Add(-1)
}
