package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is a clock that counts the time that the machine sleeps.
func sinceBoot() func() time.Duration {
	return func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
			panic(err) // every kernel that Go supports has it
		}
		return time.Duration(t.Nano())
	}
}
