//go:build unix

package admin

import "syscall"

// smallBuffer lets a connection take little before its reader reads.
func smallBuffer(c syscall.RawConn) (err error) {
	cerr := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	if cerr != nil {
		return cerr
	}
	return err
}
