package bundle

import (
	"os/signal"
	"strconv"
	"syscall"
)

// limitFiles makes writes beyond this many bytes of a file fail, as a full disk
// does; "" is no limit.
func limitFiles(bytes string) error {
	if bytes == "" {
		return nil
	}
	n, err := strconv.ParseUint(bytes, 10, 64)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}
