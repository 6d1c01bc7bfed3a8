//go:build unix

package sandbox

import (
	"os"
	"syscall"
	"time"
)

// processorTime is the processor time that the process has used, of all processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(syscall.TimevalToNsec(u.Utime) + syscall.TimevalToNsec(u.Stime))
}

// processorTimeSpent reports whether the kernel has ended a process for its processor time.
func processorTimeSpent(state *os.ProcessState, l compileLimits) bool {
	s, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !s.Signaled() {
		return false
	}
	return s.Signal() == syscall.SIGXCPU || s.Signal() == syscall.SIGKILL && state.UserTime()+state.SystemTime() > l.Time+l.Init
}
