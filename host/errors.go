package host

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
)

// The errors that calls are refused with. Errors that say more wrap one of
// these.
var (
	// ErrClosed: the system has terminated or is about to.
	ErrClosed = errors.New("host: the system has terminated")
	// ErrStopped: the actor has stopped; what was sent is a dead letter.
	ErrStopped = errors.New("host: the actor has stopped")
	// ErrUnknown: no actor has this ref or path.
	ErrUnknown = errors.New("host: no such actor")
	// ErrMailboxFull: the receiver's mailbox is at one of its bounds. Try again
	// later.
	ErrMailboxFull = errors.New("host: the mailbox is full")
	// ErrRestarting: the recipient waits for its restart, and its supervisor's policy is to drop messages until then.
	ErrRestarting = errors.New("host: the actor is about to be restarted")
	// ErrTooLarge: the message is larger than the receiver takes; see Limits.Message.
	ErrTooLarge = errors.New("host: the message is too large for the receiver")
	// ErrNameTaken: a sibling has this name, or had it and has not yet gone.
	ErrNameTaken = errors.New("host: the name is taken")
	// ErrBadName: names are 1 to 255 bytes of [A-Za-z0-9_.~-], but not "." or "..".
	ErrBadName = errors.New("host: not a valid name")
	// ErrBadProps: the props cannot become an actor.
	ErrBadProps = errors.New("host: invalid props")
	// ErrTooManyChildren: the parent's limit of children is reached.
	ErrTooManyChildren = errors.New("host: too many children")
	// ErrTimeout: no answer came in time.
	ErrTimeout = errors.New("host: no reply in time")
	// ErrUnhandled: returned by a native actor for a message that it does not
	// handle.
	ErrUnhandled = errors.New("host: message not handled")
	// ErrBadDirective: not a directive that can be given here.
	ErrBadDirective = errors.New("host: not a directive for a suspended actor")
	// ErrLimit: one of the actor's [Limits] is reached.
	ErrLimit = errors.New("host: a limit of the actor is reached")
	// ErrStashed: the current message is in the stash already.
	ErrStashed = errors.New("host: the message is stashed already")
	// ErrDenied: a capability is missing.
	ErrDenied = errors.New("host: denied")
	// ErrNobody: the zero Ref names no actor; no message can be sent to it.
	ErrNobody = errors.New("host: the receiver is the zero ref, which names no actor")
	// ErrNoQuestion: there is no current message, or it has no sender to answer.
	ErrNoQuestion = errors.New("host: there is no message to answer")
	// ErrNotKept: the dead letter is not kept any more, not kept whole, or was not a message, so
	// that it cannot be delivered again.
	ErrNotKept = errors.New("host: the dead letter cannot be delivered again")
	// ErrGone: the asker has given up; the cause of [Reply.Context].
	ErrGone = errors.New("host: the asker no longer waits for the answer")
	// ErrDropped: the receiver's mailbox has dropped the message, see host/mailbox.
	ErrDropped = errors.New("host: the mailbox has dropped the message")
	// ErrDuplicate: a message of the same key came before, see host/mailbox.
	ErrDuplicate = errors.New("host: duplicate: a message with the same key came before")
	// ErrUsed: the reply handle was used before.
	ErrUsed = errors.New("host: the message has been answered already")
)

// errGuessed is why a message was not sent to a ref that its sender may have guessed.
var errGuessed = fmt.Errorf("%w: actors of this tree have sent to too many refs that name no actor", ErrDenied)

// ReplyError is an error that the asked actor has sent as its answer.
type ReplyError struct{ Reason string }

func (e *ReplyError) Error() string { return "host: the actor replied with an error: " + e.Reason }

// TurnError is why an ask has no answer: the turn of its message has failed.
type TurnError struct {
	Ref     Ref // of the actor that was asked
	Failure *abi.Failure
	ID      string // of the crash report, see Event.ID
}

func (e *TurnError) Error() string {
	return "host: " + e.Ref.Path() + " has failed: " + e.Failure.Error()
}

// Unwrap is the failure.
func (e *TurnError) Unwrap() error { return e.Failure }

// badName is ErrBadName with the invalid name.
func badName(name string) error {
	return fmt.Errorf("%w: %q: use 1 to %d bytes of A-Z a-z 0-9 _ . ~ -, but not . or ..", ErrBadName, clip(name, 100), abi.MaxName)
}
