//go:build linux || darwin || freebsd

package endpoint

import "net"

// peer is the user at the other end of a connection.
func peer(c net.Conn) (uid int, known bool) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, false
	}
	if cerr := raw.Control(func(fd uintptr) { uid, err = peerOf(int(fd)) }); cerr != nil || err != nil {
		return 0, false
	}
	return uid, true
}
