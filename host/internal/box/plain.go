package box

import (
	"errors"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Plain is the usual mailbox as a queue.Mailbox: it stands behind one that a recorder is told of.
type Plain struct{ *mailbox.Mailbox }

// NewPlain is a usual mailbox that is no actor's own.
func NewPlain(l mailbox.Limits) Plain {
	m := &mailbox.Mailbox{}
	m.Init(l)
	return Plain{m}
}

// Push implements queue.Mailbox.
func (b Plain) Push(e *mailbox.Envelope) error { return why(b.Mailbox.Push(e)) }

func why(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mailbox.ErrClosed):
		return errs.ErrStopped
	}
	return errs.ErrMailboxFull
}
