package endpoint

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// Listen is net.Listen, and replaces a Unix socket without a listener: a process that was killed
// leaves one behind.
func Listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if err == nil || network != "unix" {
		return l, err
	}
	if info, e := os.Lstat(address); e != nil || info.Mode()&os.ModeSocket == 0 {
		return nil, err
	}
	c, e := net.Dial(network, address)
	switch {
	case e == nil:
		_ = c.Close()
		return nil, err
	case !errors.Is(e, syscall.ECONNREFUSED):
		return nil, err
	}
	if e := os.Remove(address); e != nil {
		return nil, errors.Join(err, e)
	}
	return net.Listen(network, address)
}
