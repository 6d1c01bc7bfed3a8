//go:build unix

package gateway

import "syscall"

// descriptors is how many the process may have; 0: not known.
func descriptors() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur)
}
