package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"os"
	goruntime "runtime"
	"strconv"
	"sync"
)

// parallelLoads is the number of modules to load at a time; n is Config.WithParallelLoads'.
func parallelLoads(n int) int {
	if n <= 0 {
		n = goruntime.GOMAXPROCS(0)
	}
	return n
}

// unknownMemory is assumed where the machine does not tell how much memory it has.
const unknownMemory = 4 << 30

// compileRoom is the memory that all compilations of an engine may take together, in
// bytes: half of what the machine, or the control group, has.
func compileRoom() int64 { return cmp.Or(MachineMemory(), unknownMemory) / 2 }

// MachineMemory is what the machine, or the control group, has in bytes; 0 if that is
// not known.
func MachineMemory() int64 { return machineMemory() }

var machineMemory = sync.OnceValue(func() int64 {
	has := int64(0)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if f := bytes.Fields(text); len(f) > 1 { // MemTotal: n kB
			if n, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil && n > 0 {
				has = n << 10
			}
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 {
			has = min(cmp.Or(has, n), n)
		}
	}
	return has
})

// within does work as soon as there is room for the memory that it takes. Work that would
// take more than there is at all runs when nothing else does.
func (e *Engine) within(ctx context.Context, bytes uint64, work func() error) error {
	n := int64(min(bytes, uint64(e.roomBytes)))
	if err := e.room.Acquire(ctx, n); err != nil {
		return err
	}
	defer e.room.Release(n)
	return work()
}
