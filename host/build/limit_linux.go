package build

import "golang.org/x/sys/unix"

// limit bounds the memory of a process, and of those that it starts from now on.
func limit(pid int) {
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: MaxProcessBytes, Max: MaxProcessBytes}, nil)
	_ = unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
}
