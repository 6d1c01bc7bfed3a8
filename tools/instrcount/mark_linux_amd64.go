package instrcount

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// mark is the signal that a child raises at a mark. The tracer swallows it.
const mark = unix.SIGUSR2

// Begin starts a window; it does nothing unless the process is [Counting].
func Begin() {
	if counting {
		raise()           // from here on the other threads stand still: none asks this one to make way
		runtime.Gosched() // what the scheduler has in mind, and what is due, happens before, not within
		raise()
	}
}

// End ends the window. It must run on the thread on which [Begin] ran; with one
// processor and nothing that waits it does.
func End() {
	if counting {
		raise()
	}
}

// raise costs some instructions within the window, the same every time.
func raise() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(syscall.Getpid()), uintptr(syscall.Gettid()), uintptr(mark))
}
