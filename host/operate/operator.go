// Package operate is what an operator can do to the actors of a system: host.Operator is its Operator.
package operate

import (
	"cmp"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/supervision"
)

// Operator is what somebody who runs a system can do to its actors, beside what programs do with them: hold them
// back, restart them, renew their code, make them fail, decide for their supervisor, and deliver dead letters again. All
// methods may be called concurrently; each is carried out by the actor or its supervisor, after the turn that runs.
//
// P are props, M is a module: types of package host.
type Operator[P, M any] struct{ of Engine[P, M] }

// Of is an Operator of a system.
func Of[P, M any](e Engine[P, M]) Operator[P, M] { return Operator[P, M]{e} }

// restartedByHand is the cause of the incarnation that Restart begins, unless the previous one
// has failed.
var restartedByHand = &abi.Failure{Kind: abi.FailureKilled, Reason: "restarted by an operator"}

// Restart makes an actor's supervisor begin another incarnation of it, at once, of it alone, and
// with its children stopped or kept as the strategy says. It counts in no window and for no
// backoff, as OTP's restart_child does not. A delay under way is over; an actor that waits for
// a decision gets this one; one that is about to stop, or to be restarted in order with its
// group, stays as it is. A turn that goes on for longer than Config.WithStopGrace is killed.
// What is sent to the actor after Restart has returned waits for the next incarnation, also where it is
// restarted in order and its turn comes later. Orders that come before the supervisor has acted are one, and of
// many that wait for an actor that is busy neighbours may be carried out as one, even if it has crashed or wanted to
// stop in between: n orders are 1 to n restarts in Info.Restarts and Info.Incarnation, and the last one begins behind
// the last order. The supervisor acts when its own turn is over,
// and until then the actor handles nothing: a supervisor in Go must not wait for it within its turn. It
// fails with ErrUnknown, also for /user and /system.
func (o Operator[P, M]) Restart(ref ref.Ref) error {
	return o.of.Restart(ref.UID(), restartedByHand)
}

// Crash makes an actor fail when its present turn has ended, to show what its
// supervisor does: the failure is decided about, counted and delayed as any other. No message
// is lost by it. It has an effect on an actor that runs (or sleeps, is paused, or waits for
// an instance) and none on one that has failed already or waits for its restart. kind 0 is a
// guest's error; an empty reason says that an operator wanted it. It fails with ErrUnknown,
// also for /user and /system.
func (o Operator[P, M]) Crash(ref ref.Ref, kind abi.FailureKind, reason string) error {
	if !o.of.Child(ref.UID()) {
		return errs.ErrUnknown
	}
	f := &abi.Failure{Kind: cmp.Or(kind, abi.FailureGuestError), Reason: cmp.Or(printable.Clip(reason, abi.MaxReason), "simulated by an operator")}
	return o.of.Order(ref.UID(), sysmail.Msg{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: f}})
}

// Kill makes an actor fail when it has handled what is in its mailbox now; its
// supervisor decides.
func (o Operator[P, M]) Kill(ref ref.Ref) error { return o.of.Control(ref.UID(), mark.Kill) }

// Pause holds back the messages of an actor until Unpause; with subtree also those of all actors below it. The running turn
// ends first. Messages wait in the mailbox, up to its limit, and so do timers, answers and termination notices. System
// messages are still handled: a paused actor can be stopped, can fail, decides on its children's failures, and can be
// restarted, with its start and end turns. A restart leaves it paused. A child that is spawned below a paused subtree is
// paused, too. Pausing an actor twice is the same as once. It fails with ErrUnknown.
func (o Operator[P, M]) Pause(ref ref.Ref, subtree bool) error {
	return o.of.Order(ref.UID(), sysmail.Msg{Kind: sysmail.Pause, Kin: sysmail.Kin{How: sysmail.If(subtree, sysmail.Below)}})
}

// Unpause lets an actor handle messages again, with subtree also all below it, for any earlier Pause.
func (o Operator[P, M]) Unpause(ref ref.Ref, subtree bool) error {
	return o.of.Order(ref.UID(), sysmail.Msg{Kind: sysmail.Unpause, Kin: sysmail.Kin{How: sysmail.If(subtree, sysmail.Below)}})
}

// Renew restarts a guest at once with other props, in any state: in a delay, suspended after a failure, asleep. Its ref, its
// path, its mailbox, its stash and its watches stay, and its failures are counted anew. A running turn ends first, or is
// killed after Config.WithStopGrace.
//
// Of p it takes the arguments, the capabilities, the grants, the limits and the children. Children named
// by the old props stay as well and restart, each with its new props; those that p lacks stop,
// and those that are new start. Children that the actor has spawned itself stop, unless its
// supervisor keeps children. What an actor is made with stays as it is: its module and type,
// mailbox (Limits.Mailbox and MailboxBytes), Limits.Held and Tree, supervision, lifetime.
//
// The error is ErrUnknown if the actor has ended, and wraps ErrBadProps if p is for another
// module or type, or cannot be used at all.
func (o Operator[P, M]) Renew(ref ref.Ref, p P) error { return o.of.Renew(ref.UID(), &p) }

// RenewModule restarts all actors of a module at once, as [Operator.Renew] does with the
// props that they have: with the image that the module has now, see host.Module.Replace. It
// returns the actors that it has told, sorted by path; those below them restart, or stop, with
// them. The actors in but, and those below them, are left alone. The child of a host.Resender ends instead, so
// that it is started anew and gets what it has not confirmed.
func (o Operator[P, M]) RenewModule(m M, but ...ref.Ref) (told []ref.Ref) {
	return o.of.RenewModule(m, but)
}

// Decide is an operator's decision about an actor that its supervisor has left suspended
// (see supervision.Suspend): Resume, Restart or Stop. It has no effect on any other.
func (o Operator[P, M]) Decide(ref ref.Ref, d supervision.Directive) error {
	if d != supervision.Resume && d != supervision.Restart && d != supervision.Stop {
		return errs.ErrBadDirective
	}
	return o.of.OrderAbove(ref.UID(), sysmail.Msg{Kind: sysmail.Decide, Kin: sysmail.Kin{Ref: ref.UID(), Directive: d}})
}

// ResetBackoff makes the supervisor of an actor count its failures from the beginning
// again, under the reset policy "manual" or any other.
func (o Operator[P, M]) ResetBackoff(ref ref.Ref) error {
	return o.of.OrderAbove(ref.UID(), sysmail.Msg{Kind: sysmail.ResetBackoff, Kin: sysmail.Kin{Ref: ref.UID()}})
}
