//go:build darwin || freebsd

package endpoint

import "golang.org/x/sys/unix"

// peerOf is the user at the other end of a socket, as the kernel knows it.
func peerOf(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, 0, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
