//go:build unix

package admin

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// spent is the time that the process has computed for, and the objects that it has made.
func spent(t testing.TB) (cpu time.Duration, objects uint64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), m.Mallocs
}

// Who is connected and asks for nothing, and who follows what does not happen, costs
// nothing: no timer wakes anybody, nothing is made.
func TestIdleConnectionsCostNothing(t *testing.T) {
	s := serveSite(t, nil)
	for range 50 {
		s.raw("GET /healthz HTTP/1.1\r\nHost: " + s.server.Addr().String() + "\r\n\r\n")
	}
	for range 10 {
		s.stream("/v1/events?follow", "")
	}
	get[About](s, "/v1/server")
	least, fewest := time.Hour, uint64(1<<60)
	for range 5 { // the collector, and other processes, may be in the way of one
		runtime.GC()
		time.Sleep(50 * time.Millisecond)
		cpu, objects := spent(t)
		time.Sleep(300 * time.Millisecond)
		then, more := spent(t)
		least, fewest = min(least, then-cpu), min(fewest, more-objects)
	}
	if least > 15*time.Millisecond || fewest > 200 {
		t.Errorf("in 300 ms: %s of computing, %d objects", least, fewest)
	}
}
