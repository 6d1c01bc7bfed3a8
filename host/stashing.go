package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/stash"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// stashCurrent puts a copy of the current message aside.
func (a *actor) stashCurrent(e *mailbox.Envelope) error {
	_, err := a.stashUnder("", e)
	return err
}

func (a *actor) stashUnder(name string, e *mailbox.Envelope) (*mailbox.Envelope, error) {
	if a.stash.Len() >= a.props.limits.Stash {
		a.sys.deadLetterAt("limits.stash", DeadStashFull, a.uid, a.path, e)
		return nil, ErrLimit
	}
	if err := a.hold(account.Stash, a.account.Of(account.Stash)+int64(e.Size())+box.EnvelopeBytes); err != nil {
		a.sys.deadLetterAt(errs.KeyOf(err, ""), DeadStashFull, a.uid, a.path, e)
		return nil, err
	}
	k := message.CloneEnvelope(e)
	k.Position = e.Position
	switch e.Kind {
	case abi.KindMessage:
		if message.IsBound(e) {
			k.Value, e.Value = message.BoundMark{}, nil // the turn that takes it out of the stash takes the question
		}
	case abi.KindTerminated:
		k.Value = stash.Stashed{Lasting: true, Path: pathOfEnded(e)}
	case abi.KindTimer, abi.KindAskTimeout, abi.KindReceiveTimeout:
		k.Value = stash.Stashed{Incarnation: a.incarnation()}
	case abi.KindReply, abi.KindReplyError:
		if e.Correlation != 0 {
			k.Value = stash.Stashed{Incarnation: a.incarnation()}
		}
	}
	a.stash.PutFor(name, k)
	return k, nil
}

// unstash puts everything stashed back to the front, in order.
func (a *actor) unstash() {
	if a.stash.Len() > 0 {
		a.box.PushFront(a.stash.TakeAll()...)
		a.noteStash()
	}
}

// setReceiveTimeout starts a receive timeout in place of the present one, or with 0 none.
func (a *actor) setReceiveTimeout(d time.Duration) {
	a.receive.Stop()
	a.receive = nil
	if d > 0 {
		a.receive = timers.StartReceive(a, d)
	}
}

// setTimer sets a timer, within the limit.
func (a *actor) setTimer(scr *scratch, key uint64, delay, period time.Duration, payload []byte) error {
	return a.setTimerAt(scr, key, delay, period, timers.FixedDelay, payload)
}

func (a *actor) setTimerAt(scr *scratch, key uint64, delay, period time.Duration, pace timers.Pace, payload []byte) error {
	if !a.timers.Has(key) && a.timers.Len() >= a.props.limits.Timers {
		return ErrLimit
	}
	if err := a.hold(account.Timers, a.account.Of(account.Timers)+timerBytes+2*int64(len(payload))); err != nil {
		return err
	}
	a.timers.StartAt(a, a.TurnTime(), key, delay, period, pace, payload, scr.keep())
	a.noteTimers()
	return nil
}

// forward sends a copy of an envelope on with its original sender; the receiver may then
// answer that sender if delegated says so. If there is no room for it nothing is
// copied. What the host itself has told the actor has no sender: it is forwarded with the actor as
// sender, because a message without a sender is one from outside.
func (a *actor) forward(scr *scratch, to abi.Ref, name string, current *mailbox.Envelope, delegated bool) error {
	kind, sender, senderPath, correlation := a.origin(current)
	delegated = delegated && sender == current.Sender
	if t := a.sys.here(to); t != nil && t.gate.Policy() == supervision.MeanwhileKeep && t.box.Full(current.Size()) {
		e, err := a.handedOn(current), t.box.WhyFull()
		a.sys.refuse(scr, DeadMailboxFull, err, t.uid, t.path, &e)
		return err
	}
	e := message.CloneEnvelope(current)
	e.Kind, e.Sender, e.SenderPath, e.Correlation, e.Attached = kind, sender, senderPath, correlation, withoutGrants(e.Attached)
	if name != "" {
		e.Attached = message.Below(e.Attached, name)
	}
	scr.trace.Stamp(e)
	if delegated {
		a.sys.delegate(scr, e, a.uid, to)
	}
	return a.deliver(scr, to, e)
}

// origin is as what, and in whose name, the current message is sent on. What the host has told the actor is
// no question then: the key of a timer is the correlation of nothing.
func (a *actor) origin(current *mailbox.Envelope) (kind abi.Kind, sender abi.Ref, path string, correlation uint64) {
	kind, sender, path, correlation = current.Kind, current.Sender, current.SenderPath, current.Correlation
	if kind != abi.KindReply && kind != abi.KindReplyError && kind != abi.KindMessage {
		kind = abi.KindMessage
		if sender == 0 {
			sender, path, correlation = a.uid, a.path, 0
		}
	}
	return kind, sender, path, correlation
}

// handedOn is what a letter has of a message that was to be sent on.
func (a *actor) handedOn(current *mailbox.Envelope) mailbox.Envelope {
	kind, sender, path, correlation := a.origin(current)
	return mailbox.Envelope{
		Kind: kind, Flags: current.Flags & (mark.NoInfluence | mark.Suppressed), Sender: sender, SenderPath: path,
		Correlation: correlation, Headers: current.Headers, Payload: current.Payload,
	}
}

// cancelTimer takes a timer back.
func (a *actor) cancelTimer(key uint64) {
	a.timers.Cancel(key)
	a.noteTimers()
}
