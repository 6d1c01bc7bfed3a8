package sandbox

import "golang.org/x/sys/unix"

// readThread is the threadTime of this platform.
func readThread() (ns int64, thread int, ok bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0, 0, false
	}
	return t.Nano(), unix.Gettid(), true
}
