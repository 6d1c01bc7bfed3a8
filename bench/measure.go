package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// interleave measures a and b alternately, so that a slow moment of the machine hits
// both, and returns their medians.
// Each call returns one sample. Neither pays for collecting the garbage of the
// other.
func (l *lab) interleave(a, b func() (float64, error)) (float64, float64, error) {
	var as, bs []float64
	for round := range l.rounds {
		if round > 0 && l.over() {
			break
		}
		runtime.GC()
		x, err := a()
		if err != nil {
			return 0, 0, err
		}
		runtime.GC()
		y, err := b()
		if err != nil {
			return 0, 0, err
		}
		as, bs = append(as, x), append(bs, y)
	}
	return median(as), median(bs), nil
}

// repeat measures f alone and returns the median.
func (l *lab) repeat(f func() (float64, error)) (float64, error) {
	var xs []float64
	for round := range l.rounds {
		if round > 0 && l.over() {
			break
		}
		x, err := f()
		if err != nil {
			return 0, err
		}
		xs = append(xs, x)
	}
	return median(xs), nil
}

// perOp times n operations and returns nanoseconds each.
func perOp(n int, f func(n int) error) (float64, error) {
	start := time.Now()
	if err := f(n); err != nil {
		return 0, err
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n), nil
}

// resident returns the process's resident set in bytes after a collection, without what Go
// keeps of the memory that it has freed: loading a guest leaves some 60 MB of that behind, which
// go back to the system at any time later, so that actors seemed to take less than nothing.
// Only Linux tells; elsewhere it falls back to what Go holds.
func resident() (float64, error) {
	runtime.GC() // what finalizers keep
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.Sys - m.HeapReleased), nil
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kib) * 1024, err
		}
	}
	return 0, fmt.Errorf("no Pss in smaps_rollup")
}
