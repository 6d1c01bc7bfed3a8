//go:build unix

package tcp

import "syscall"

// tryRead reads once from a socket that does not block. Again is true if nothing has come yet; n is 0 at the end of what the peer
// writes.
func tryRead(fd uintptr, b []byte) (n int, again bool, err error) {
	for {
		n, err = syscall.Read(int(fd), b)
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, true, nil
		default:
			return max(n, 0), false, err
		}
	}
}

// tryWrite writes once to a socket that does not block, as much as it takes.
func tryWrite(fd uintptr, b []byte) (n int, err error) {
	for {
		n, err = syscall.Write(int(fd), b)
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return max(n, 0), err
		}
	}
}

// direct is whether tryRead and tryWrite work.
const direct = true
