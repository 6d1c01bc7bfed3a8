package sandbox

import (
	"bytes"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"testing"
)

// residentBytes is what the process keeps in memory, 0 where that cannot be
// known.
func residentBytes() int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}

// BenchmarkFootprint reports what an idle instance keeps resident after its
// first message.
func BenchmarkFootprint(b *testing.B) {
	const many = 2000
	for _, name := range []string{"single", "echo", "go"} {
		b.Run(name, func(b *testing.B) {
			var i *Image
			if name == "go" {
				i = goBench(b, NewConfig())
			} else {
				i = load(b, newEngine(b, NewConfig()), name, ImageConfig{})
			}
			in := entry()
			for b.Loop() {
				warm := get(b, i)
				first(b, warm, in, 0)
				before := residentBytes()
				var heapBefore, heapAfter goruntime.MemStats
				goruntime.ReadMemStats(&heapBefore)
				all := make([]*Instance, many)
				for n := range all {
					all[n] = get(b, i)
					first(b, all[n], in, 0)
				}
				after := residentBytes()
				goruntime.ReadMemStats(&heapAfter)
				b.ReportMetric(float64(after-before)/many, "B/instance")
				b.ReportMetric(float64(heapAfter.HeapAlloc-heapBefore.HeapAlloc)/many, "heap-B/instance")
				for _, x := range all {
					x.Put()
				}
				warm.Put()
			}
		})
	}
}
