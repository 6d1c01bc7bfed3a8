//go:build !unix

package tcp

import "errors"

func tryRead(uintptr, []byte) (int, bool, error) { return 0, false, errors.ErrUnsupported }

func tryWrite(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

// direct is whether tryRead and tryWrite work.
const direct = false
