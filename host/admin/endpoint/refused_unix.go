//go:build unix

package endpoint

import (
	"errors"
	"syscall"
)

// refused reports whether a dial has failed because there is no listener.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
