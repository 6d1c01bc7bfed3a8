package endpoint

import "golang.org/x/sys/unix"

// peerOf is the user at the other end of a socket, as the kernel knows it.
func peerOf(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
