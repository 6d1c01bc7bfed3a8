package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/spawning"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// CrashedMessage says what becomes of a message whose turn fails. The zero value is
// [DropCrashed].
type CrashedMessage = spawning.Crashed

// DropCrashed forgets the message; the crash report has it. It is what Akka does.
func DropCrashed() CrashedMessage { return CrashedMessage{} }

// DeadLetterCrashed makes the message a dead letter.
func DeadLetterCrashed() CrashedMessage { return spawning.Letter() }

// MaxRedeliveries bounds RedeliverCrashed.
const MaxRedeliveries = message.MaxRedeliveries

// RedeliverCrashed delivers the message again, before all that came after it, up to n times (1
// to MaxRedeliveries); a message that has failed n+1 times becomes a dead letter.
func RedeliverCrashed(n int) CrashedMessage { return spawning.Redeliver(n) }

// dispose decides what happens to the message of a failed turn. False means that it goes back to
// the front of the mailbox; otherwise a waiting asker gets the failure.
func (a *actor) dispose(scr *scratch, e *mailbox.Envelope, f *abi.Failure) (done bool) {
	if !mark.IsMail(e) || a.ctx.stashed {
		return true
	}
	m := a.rules.Load().crashed
	at := message.AttemptsOf(e)
	again := at.N < spawning.TimesOf(m)
	if p := a.sys.repeats.Load().of(a); p.oldRules(a) {
		again = p.older.Redelivers(&p.ahead, again)
	}
	if again {
		at.N++
		e.Value = at
		e.Flags |= mark.Again
		return false
	}
	if e.Flags&mark.Resent != 0 {
		a.tellResender(scr, e)
		return true
	}
	if spawning.IsLetter(m) {
		a.sys.deadLetter(DeadCrashed, a.uid, a.path, e)
	}
	if mark.AwaitsReply(e) {
		a.sys.unanswered(scr, e, a.uid, a.sys.turnError(a, f))
	}
	return true
}
