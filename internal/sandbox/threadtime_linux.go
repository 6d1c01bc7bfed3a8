package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// readThread is the threadTime of this platform. The call is a raw one, because it never waits.
func readThread() (ns int64, thread int, ok bool) {
	var t unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0, 0, false
	}
	return t.Nano(), unix.Gettid(), true
}
