package host

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/resend"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Resend says how a [Resender] works. Zero fields mean the defaults.
type Resend struct {
	// Policy is the wait before the child is started again; default: slots of 10 ms,
	// staying at a ceiling of 10.
	Policy backoff.Policy
	// Keep bounds the unconfirmed messages; beyond it the oldest becomes a dead
	// letter. Default 1,000.
	Keep int
	// Attempts is how often the turn of a message may fail before it becomes a dead
	// letter. Default 10.
	Attempts int
	// MaxCrashes fails the resender when its child has ended more often, counted since all
	// messages that were unconfirmed at a crash were confirmed. Default: no limit.
	MaxCrashes int
	// Patience is how long one message may hold up the others after a crash without
	// being confirmed. Default 5 s.
	Patience time.Duration
}

// Resender makes props of an actor that stands before a child and sends it again
// what was possibly lost with an incarnation of it: acknowledged delivery, after a
// 2012 article on a supervisor with exponential backoff.
//
// The resender numbers the messages that it gets, holds them until they are confirmed, and
// passes them on with their senders; the child replies to those directly. The child calls [Head.Confirm] (in guests
// ctx.Confirm) with the message's number when it has done with it, in its turn or later.
// Whenever the child ends, another is started after a wait, and gets what was not confirmed:
// first the oldest alone, then the others, new ones included, one by one; when
// all of them are confirmed the count of crashes starts again. So no incarnation gets a
// message twice, the order stays, and a message is handled twice only by a child that
// does not confirm it in the turn that handles it. Only the message whose turn fails is
// blamed for it, not one that merely was not confirmed yet.
func Resender(child Props, o Resend) Props {
	if o.Policy == nil {
		o.Policy = backoff.Slotted{Slot: 10 * time.Millisecond, Ceiling: 10, Stay: true}
	}
	if o.Keep <= 0 {
		o.Keep = 1000
	}
	if o.Attempts <= 0 {
		o.Attempts = 10
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	rules := resend.Rules{Keep: o.Keep, Attempts: o.Attempts, Crashes: o.MaxCrashes, Patience: o.Patience}
	p := Native(func() Actor { return &resender{keeper: resend.New(rules), policy: o.Policy, child: child} }).WithSupervision(supervision.Stopping())
	p.typ = resenderType
	return p
}

// resenderType is the type of all resenders.
const resenderType = "resender"

// resendChild is the name of a resender's child.
const resendChild = "child"

// Timers of a resender.
const (
	resendWait     = 1 + iota // before another child
	resendPatience            // with a message alone
)

type resender struct {
	keeper *resend.Keeper
	policy backoff.Policy
	child  Props
}

// Started implements Starter.
func (r *resender) Started(ctx *Context) error { return r.keeper.Begin(resending{ctx, r}) }

// Stopped implements Stopper: what is not confirmed becomes dead letters.
func (r *resender) Stopped(ctx *Context) { r.keeper.Stop(resending{ctx, r}) }

// Receive implements Actor.
func (r *resender) Receive(ctx *Context, m Message) error {
	on, k := resending{ctx, r}, r.keeper
	switch {
	case m.Kind == abi.KindTerminated:
		return k.Ended(on)
	case m.Kind == abi.KindTimer && m.Correlation == resendWait:
		return k.Begin(on)
	case m.Kind == abi.KindTimer:
		k.Impatient(on)
	case m.Kind != abi.KindMessage:
		return ErrUnhandled
	case blames(ctx.env):
		k.Failed(on, ctx.env.Correlation)
	case k.Child() != 0 && m.Sender.UID() == k.Child():
		id, ok := header.Number(m.Headers, abi.HeaderConfirm)
		if !ok {
			return ErrUnhandled
		}
		k.Confirmed(on, id)
	case header.Has(m.Headers, abi.HeaderConfirm): // from an earlier incarnation, or from somebody else
	default:
		k.Hold(on, message.CloneEnvelope(ctx.env))
	}
	return nil
}

// resending is a resend.Actor, in a turn.
type resending struct {
	*Context
	r *resender
}

// Begin implements resend.Actor.
func (on resending) Begin() (abi.Ref, error) {
	child, err := on.Spawn(resendChild, on.r.child)
	if err != nil {
		return 0, err
	}
	return child.UID(), on.Watch(child)
}

// Send implements resend.Actor. It is sent at once: the next step depends on whether the child takes it.
func (on resending) Send(child abi.Ref, env *mailbox.Envelope, number uint64) DeadReason {
	headers, ok := header.With(env.Headers, abi.HeaderID, strconv.FormatUint(number, 10))
	if !ok {
		return DeadLimit
	}
	a := on.actor
	to := a.sys.here(child)
	if to == nil {
		return 0
	}
	e := message.CloneEnvelope(env)
	e.Flags = e.Flags&^mark.Due | mark.Resent // it is kept until it is confirmed, whether or not somebody waits
	e.SetHeaders(headers)
	a.sys.delegate(on.scr, e, a.uid, to.uid)
	reason, err := to.accept(on.scr, e, 0)
	if err != nil {
		e.Free()
	}
	if reason == DeadStopped {
		return 0
	}
	return reason
}

// Drop implements resend.Actor.
func (on resending) Drop(e *mailbox.Envelope, reason DeadReason) {
	on.actor.sys.refuse(on.scr, reason, nil, on.actor.uid, on.actor.path, e)
	e.Free()
}

// Wait implements resend.Actor.
func (on resending) Wait(crashes int) error {
	return on.After(resendWait, on.r.policy.Delay(crashes, on.actor.dice.Rand(secretFor(on.actor), on.actor.uid)), 0, nil)
}

// Alone implements resend.Actor.
func (on resending) Alone(d time.Duration) {
	if d == 0 {
		on.Cancel(resendPatience)
		return
	}
	_ = on.After(resendPatience, d, 0, nil)
}

// Confirm tells the parent, a [Resender], that the message with this number is done with.
// It may be called in any turn.
func (h Head) Confirm(id uint64) error {
	c := h.ctx
	if id == 0 {
		return nil // no resender has numbered it
	}
	e := mailbox.New()
	e.Kind, e.Sender, e.SenderPath = abi.KindMessage, c.actor.uid, c.actor.path
	e.SetPayload(nullPayload)
	e.SetHeaders(abi.AppendHeader(nil, abi.HeaderConfirm, strconv.FormatUint(id, 10)))
	c.scr.effects = append(c.scr.effects, effect{Kind: turn.Send, To: c.actor.above, Env: e})
	return nil
}

func blames(e *mailbox.Envelope) bool {
	_, ok := e.Value.(blame)
	return ok
}
