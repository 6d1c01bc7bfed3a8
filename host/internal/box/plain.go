package box

import (
	"errors"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Plain is the usual mailbox as a queue.Mailbox: it stands behind one that a recorder is told of.
type Plain struct{ mailbox.Mailbox }

// Push implements queue.Mailbox.
func (b *Plain) Push(e *mailbox.Envelope) error {
	return why(b.Mailbox.Push(e))
}

// Reserve is mailbox.Mailbox.Reserve with the errors of Push.
func (b *Plain) Reserve(e *mailbox.Envelope) error { return why(b.Mailbox.Reserve(e)) }

func why(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mailbox.ErrClosed):
		return errs.ErrStopped
	}
	return errs.ErrMailboxFull
}
