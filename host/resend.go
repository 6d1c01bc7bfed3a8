package host

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
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
	p := Native(func() Actor { return &resender{o: o, props: child} }).WithSupervision(supervision.Stopping())
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
	o     Resend
	props Props

	child       Ref // zero while it waits
	unconfirmed []tracked
	unsent      int    // how many of the last unconfirmed ones this child was not sent yet
	last        uint64 // number given
	mark        uint64 // to be confirmed before the count of crashes starts again
	alone       bool   // messages go one by one
	crashes     int
}

// tracked is a message that is not confirmed.
type tracked struct {
	id       uint64
	env      *mailbox.Envelope
	attempts int
}

// Started implements Starter.
func (r *resender) Started(ctx *Context) error { return r.begin(ctx) }

// begin starts a child.
func (r *resender) begin(ctx *Context) error {
	child, err := ctx.Spawn(resendChild, r.props)
	if err != nil {
		return err
	}
	r.child, r.unsent = child, len(r.unconfirmed)
	if err := ctx.Watch(child); err != nil {
		return err
	}
	r.pump(ctx)
	return nil
}

// Stopped implements Stopper: what is not confirmed becomes dead letters.
func (r *resender) Stopped(ctx *Context) {
	for len(r.unconfirmed) > 0 {
		r.drop(ctx, 0, DeadStopped)
	}
}

// Receive implements Actor.
func (r *resender) Receive(ctx *Context, m Message) error {
	switch {
	case m.Kind == abi.KindTerminated:
		return r.ended(ctx)
	case m.Kind == abi.KindTimer && m.Correlation == resendWait:
		return r.begin(ctx)
	case m.Kind == abi.KindTimer:
		r.alone = false
	case m.Kind != abi.KindMessage:
		return ErrUnhandled
	case blames(ctx.env):
		r.crashed(ctx, ctx.env.Correlation)
		return nil
	case !r.child.IsZero() && m.Sender.UID() == r.child.UID():
		id, ok := header.Number(m.Headers, abi.HeaderConfirm)
		if !ok {
			return ErrUnhandled
		}
		r.confirmed(ctx, id)
	case header.Has(m.Headers, abi.HeaderConfirm):
		return nil // from an earlier incarnation, or from somebody else
	default:
		r.hold(ctx)
	}
	r.pump(ctx)
	return nil
}

// hold numbers the current message.
func (r *resender) hold(ctx *Context) {
	if len(r.unconfirmed) >= r.o.Keep {
		r.drop(ctx, 0, DeadEvicted)
	}
	r.last++
	r.unconfirmed = append(r.unconfirmed, tracked{id: r.last, env: message.CloneEnvelope(ctx.env)})
	r.unsent++
}

// pump sends what is due: everything, or one message alone.
func (r *resender) pump(ctx *Context) {
	for !r.child.IsZero() && r.unsent > 0 && !(r.alone && r.unsent < len(r.unconfirmed)) {
		at := len(r.unconfirmed) - r.unsent
		reason := r.send(ctx, &r.unconfirmed[at])
		if reason == DeadMailboxFull {
			return // at the next confirmation
		}
		if reason != 0 {
			r.drop(ctx, at, reason)
			continue
		}
		r.unsent--
		if r.alone {
			_ = ctx.After(resendPatience, r.o.Patience, 0, nil)
		}
	}
}

// send gives a copy to the child, which may answer it. It is sent at once: the next step depends
// on whether the child takes it.
func (r *resender) send(ctx *Context, t *tracked) DeadReason {
	headers, ok := header.With(t.env.Headers, abi.HeaderID, strconv.FormatUint(t.id, 10))
	if !ok {
		return DeadLimit
	}
	a := ctx.actor
	to := a.sys.here(r.child.UID())
	if to == nil {
		return 0 // it has just ended
	}
	e := message.CloneEnvelope(t.env)
	e.Flags = e.Flags&^mark.Due | mark.Resent // it is kept until it is confirmed, whether or not somebody waits
	e.SetHeaders(headers)
	a.sys.delegate(ctx.scr, e, a.uid, to.uid)
	reason, err := to.accept(ctx.scr, e)
	if err != nil {
		e.Free()
	}
	if reason == DeadStopped {
		reason = 0
	}
	return reason
}

// find is the index of the message with a number.
func (r *resender) find(id uint64) (at int, ok bool) {
	return slices.BinarySearchFunc(r.unconfirmed, id, func(t tracked, id uint64) int { return cmp.Compare(t.id, id) })
}

// confirmed forgets a message.
func (r *resender) confirmed(ctx *Context, id uint64) {
	at, ok := r.find(id)
	if !ok {
		return
	}
	r.unconfirmed[at].env.Free()
	r.remove(at)
	ctx.Cancel(resendPatience)
	if len(r.unconfirmed) == 0 || r.unconfirmed[0].id > r.mark {
		r.crashes, r.alone = 0, false // everything unconfirmed at the last crash is confirmed
	}
}

func (r *resender) remove(at int) {
	if at >= len(r.unconfirmed)-r.unsent {
		r.unsent--
	}
	r.unconfirmed = slices.Delete(r.unconfirmed, at, at+1)
}

// drop makes a dead letter of a message.
func (r *resender) drop(ctx *Context, at int, reason DeadReason) {
	e := r.unconfirmed[at].env
	r.remove(at)
	ctx.actor.sys.refuse(ctx.scr, reason, nil, ctx.actor.uid, ctx.actor.path, e)
	e.Free()
}

var errTooManyCrashes = errors.New("the child has ended too often without confirming its messages")

// crashed counts a failed turn of a message.
func (r *resender) crashed(ctx *Context, id uint64) {
	at, ok := r.find(id)
	if !ok {
		return
	}
	if r.unconfirmed[at].attempts++; r.unconfirmed[at].attempts >= r.o.Attempts {
		r.drop(ctx, at, DeadCrashed)
	}
}

// ended counts the end of a child and waits.
func (r *resender) ended(ctx *Context) error {
	r.child = Ref{}
	r.crashes++
	if r.o.MaxCrashes > 0 && r.crashes > r.o.MaxCrashes {
		return errTooManyCrashes
	}
	r.mark, r.alone, r.unsent = r.last, true, len(r.unconfirmed)
	ctx.Cancel(resendPatience)
	return ctx.After(resendWait, r.o.Policy.Delay(r.crashes-1, ctx.actor.random()), 0, nil)
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
	c.scr.effects = append(c.scr.effects, effect{Kind: turn.Send, To: c.actor.parentUID(), Env: e})
	return nil
}

func blames(e *mailbox.Envelope) bool {
	_, ok := e.Value.(blame)
	return ok
}
