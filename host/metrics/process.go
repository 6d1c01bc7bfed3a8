package metrics

import (
	"runtime"

	"github.com/wasmactors/wasmactors/host/metrics/exposition"
)

// processFamilies are figures of the process, under the names that all Go programs use. An
// application with a registry of its own has them already.
func processFamilies() []exposition.Family {
	c := &collector{}
	c.add(goRoutines, float64(runtime.NumGoroutine()))
	if v, ok := cpuSeconds(); ok {
		c.add(processCPU, v)
	}
	if v, ok := residentBytes(); ok {
		c.add(processMemory, v)
	}
	if v, ok := anonymousBytes(); ok {
		c.add(processAnonymous, v)
	}
	if open, most, ok := descriptors(); ok {
		c.add(processFDs, open)
		c.add(processMaxFDs, most)
	}
	return c.families
}
