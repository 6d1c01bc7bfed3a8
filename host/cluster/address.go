package cluster

import (
	"fmt"
	"net"
	"strconv"
)

// HostPort splits the address of a node that keeps the directory: a host, and a port from 1 to 65534, since the port after it is used, too. The
// error says what is wrong with it.
func HostPort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil || len(address) > 256 {
		return "", 0, fmt.Errorf("the address %.256q is not host:port", address)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65534 || host == "" {
		return "", 0, fmt.Errorf("the address %q is not a host and a port from 1 to 65534", address)
	}
	return host, port, nil
}
