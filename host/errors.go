package host

import (
	"fmt"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/look"
)

// The errors that calls are refused with. Errors that say more wrap one of
// these.
var (
	// ErrClosed: the system has terminated or is about to.
	ErrClosed = errs.ErrClosed
	// ErrStopped: the actor has stopped; what was sent is a dead letter.
	ErrStopped = errs.ErrStopped
	// ErrUnknown: no actor has this ref or path.
	ErrUnknown = errs.ErrUnknown
	// ErrMailboxFull: the receiver's mailbox is at one of its bounds. Try again
	// later.
	ErrMailboxFull = errs.ErrMailboxFull
	// ErrRestarting: the recipient waits for its restart, and its supervisor's policy is to drop messages until then.
	ErrRestarting = errs.ErrRestarting
	// ErrTooLarge: the message is larger than the receiver takes; see Limits.Message.
	ErrTooLarge = errs.ErrTooLarge
	// ErrNameTaken: a sibling has this name, or had it and has not yet gone.
	ErrNameTaken = errs.ErrNameTaken
	// ErrBadName: names are 1 to 255 bytes of [A-Za-z0-9_.~-], but not "." or "..".
	ErrBadName = errs.ErrBadName
	// ErrBadProps: the props cannot become an actor.
	ErrBadProps = errs.ErrBadProps
	// ErrTooManyChildren: the parent's limit of children is reached.
	ErrTooManyChildren = errs.ErrTooManyChildren
	// ErrTimeout: no answer came in time.
	ErrTimeout = errs.ErrTimeout
	// ErrUnhandled: returned by a native actor for a message that it does not
	// handle.
	ErrUnhandled = errs.ErrUnhandled
	// ErrBadDirective: not a directive that can be given here.
	ErrBadDirective = errs.ErrBadDirective
	// ErrLimit: one of the actor's [Limits] is reached.
	ErrLimit = errs.ErrLimit
	// ErrStashed: the current message is in the stash already.
	ErrStashed = errs.ErrStashed
	// ErrDenied: a capability is missing.
	ErrDenied = errs.ErrDenied
	// ErrNobody: the zero Ref names no actor; no message can be sent to it.
	ErrNobody = errs.ErrNobody
	// ErrNoQuestion: there is no current message, or it has no sender to answer.
	ErrNoQuestion = errs.ErrNoQuestion
	// ErrNotKept: the dead letter is not kept any more, not kept whole, or was not a message, so
	// that it cannot be delivered again.
	ErrNotKept = look.ErrNotKept
	// ErrGone: the asker has given up; the cause of [Reply.Context].
	ErrGone = errs.ErrGone
	// ErrDropped: the receiver's mailbox has dropped the message, see host/mailbox.
	ErrDropped = errs.ErrDropped
	// ErrDuplicate: a message of the same key came before, see host/mailbox.
	ErrDuplicate = errs.ErrDuplicate
	// ErrNodeLost: the actor was on another node, which is lost. Whether it has handled the message is not known.
	ErrNodeLost = errs.ErrNodeLost
	// ErrUsed: the reply handle was used before.
	ErrUsed = errs.ErrUsed
)

// errGuessed is why a message was not sent to a ref that its sender may have guessed.
var errGuessed = fmt.Errorf("%w: actors of this tree have sent to too many refs that name no actor", ErrDenied)

// TurnError is why an ask has no answer: the turn of its message has failed. The fields are Ref (of the actor that was asked),
// Failure, which it wraps, and ID (of the crash report, see Event.ID).
type TurnError = errs.TurnError
