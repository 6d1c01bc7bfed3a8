package host

import (
	"cmp"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Operate is for operators: what an operator can do.
func (s *System) Operate() Operator { return Operator{s} }

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
func (o Operator) Restart(ref Ref) error {
	a := o.sys.here(ref.UID())
	if a == nil || a.parent == nil || !a.renew(restartedByHand, nil) {
		return ErrUnknown
	}
	return nil
}

// Crash makes an actor fail when its present turn has ended, to show what its
// supervisor does: the failure is decided about, counted and delayed as any other. No message
// is lost by it. It has an effect on an actor that runs (or sleeps, is paused, or waits for
// an instance) and none on one that has failed already or waits for its restart. kind 0 is a
// guest's error; an empty reason says that an operator wanted it. It fails with ErrUnknown,
// also for /user and /system.
func (o Operator) Crash(ref Ref, kind abi.FailureKind, reason string) error {
	a := o.sys.here(ref.UID())
	if a == nil || a.parent == nil {
		return ErrUnknown
	}
	f := &abi.Failure{Kind: cmp.Or(kind, abi.FailureGuestError), Reason: cmp.Or(printable.Clip(reason, abi.MaxReason), "simulated by an operator")}
	return o.sys.order(ref, sysmail.Msg{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: f}})
}
