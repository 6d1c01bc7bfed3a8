//go:build unix

package sandbox

import (
	"syscall"
	"time"
)

// cpuTime is what the process has computed so far: unlike the wall clock it does not
// grow with what else the machine does.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
