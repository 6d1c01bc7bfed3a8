//go:build unix

package endpoint

import "syscall"

// Descriptors is how many files and sockets the process may have open; 0: not known.
func Descriptors() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur)
}
