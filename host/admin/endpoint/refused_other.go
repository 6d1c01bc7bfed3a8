//go:build !unix

package endpoint

import (
	"errors"
	"net"
)

// refused reports whether a dial has failed because there is no listener: any error except that of a
// wait that was too long.
func refused(err error) bool {
	var ne net.Error
	return !errors.As(err, &ne) || !ne.Timeout()
}
