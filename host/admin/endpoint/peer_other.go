//go:build !linux && !darwin && !freebsd

package endpoint

import "net"

// peer is unknown: the folder and the mode of the socket are the guard.
func peer(net.Conn) (uid int, known bool) { return 0, false }
