package network

import (
	"errors"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// codes are the errors that are the same on another node. Those that wrap another one of them come before it.
var codes = [...]error{
	1: errs.ErrEnded, 2: errs.ErrStopped, 3: errs.ErrUnknown, 4: errs.ErrMailboxFull, 5: errs.ErrRestarting, 6: errs.ErrTooLarge,
	7: errs.ErrTimeout, 8: errs.ErrDenied, 9: errs.ErrDropped, 10: errs.ErrDuplicate, 11: errs.ErrLimit, signal.NodeLost: errs.ErrNodeLost,
}

// CodeOf is the code of an error that is no failed turn, 0 if it has none.
func CodeOf(err error) signal.Code {
	for code := 1; code < len(codes); code++ {
		if errors.Is(err, codes[code]) {
			return signal.Code(code)
		}
	}
	return 0
}

// ErrorOf is an error of another node.
func ErrorOf(code signal.Code, text string) error {
	if code == 0 || int(code) >= len(codes) {
		return errors.New(text)
	}
	return errs.Far(codes[code], text)
}
