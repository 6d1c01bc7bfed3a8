package cache

import (
	"os/signal"
	"syscall"
)

// limitFiles makes writes beyond this many bytes of a file fail, as a full disk
// does; below zero it only says whether it could.
func limitFiles(n int64) error {
	if n < 0 {
		return nil
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(n), Max: uint64(n)})
}
