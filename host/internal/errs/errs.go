// Package errs has the errors of calls to a system, which package host names and describes, for the parts below it.
package errs

import (
	"errors"
	"fmt"
)

// The errors that calls are refused with.
var (
	ErrClosed          = errors.New("host: the system has terminated")
	ErrStopped         = errors.New("host: the actor has stopped")
	ErrUnknown         = errors.New("host: no such actor")
	ErrMailboxFull     = errors.New("host: the mailbox is full")
	ErrRestarting      = errors.New("host: the actor is about to be restarted")
	ErrTooLarge        = errors.New("host: the message is too large for the receiver")
	ErrNameTaken       = errors.New("host: the name is taken")
	ErrBadName         = errors.New("host: not a valid name")
	ErrBadProps        = errors.New("host: invalid props")
	ErrTooManyChildren = errors.New("host: too many children")
	ErrTimeout         = errors.New("host: no reply in time")
	ErrUnhandled       = errors.New("host: message not handled")
	ErrBadDirective    = errors.New("host: not a directive for a suspended actor")
	ErrLimit           = errors.New("host: a limit of the actor is reached")
	ErrStashed         = errors.New("host: the message is stashed already")
	ErrDenied          = errors.New("host: denied")
	ErrNobody          = errors.New("host: the receiver is the zero ref, which names no actor")
	ErrNoQuestion      = errors.New("host: there is no message to answer")
	ErrGone            = errors.New("host: the asker no longer waits for the answer")
	ErrDropped         = errors.New("host: the mailbox has dropped the message")
	ErrDuplicate       = errors.New("host: duplicate: a message with the same key came before")
	ErrNodeLost        = errors.New("host: the node of the actor is lost")
	ErrUsed            = errors.New("host: the message has been answered already")
	ErrEnded           = fmt.Errorf("%w before it has answered", ErrStopped)
)
