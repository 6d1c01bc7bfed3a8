// Package throttle is an actor that forwards messages to another one, at most N per interval. The rest wait in its mailbox.
// [Meter] is the rule alone, for actors that throttle themselves.
//
// The rule is in abi/throttle, which guests share; see docs/guide/throttler.md.
package throttle

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/throttle"
	"github.com/wasmactors/wasmactors/host"
)

// Rate is how many may start in each interval.
type Rate = rules.Rate

// Meter counts vouchers, by the time that the caller passes in: that of Context.Now. It is for one goroutine at
// a time.
type Meter = rules.Meter

// NewMeter makes a meter of a rate.
func NewMeter(r Rate) (Meter, error) { return rules.NewMeter(r), r.Check() }

// Header is the header of orders to a throttler. They are accepted from Go code that has the
// system, and from the throttler's parent.
const Header = "wasmactors.throttle"

// Orders, as values of Header.
const (
	orderRate   = "rate"   // [n, nanoseconds]
	orderTarget = "target" // the number of the ref
	orderPause  = "pause"  // null
	orderResume = "resume" // null
	orderState  = "state"  // null; the answer is a State
)

// Config configures a throttler. It is immutable; each With method returns a changed copy.
type Config struct {
	target host.Ref
	rate   Rate
	limits host.MailboxLimits
}

// New configures a throttler before a target. Messages are passed on in order, with their senders;
// answers go straight to them. Only starts count, not how long the target takes.
func New(target host.Ref, r Rate) Config { return Config{target: target, rate: r} }

// WithQueue bounds what waits, in messages and in bytes, below the limits of the actor's mailbox. What
// does not fit is refused as by any full mailbox.
func (c Config) WithQueue(messages int, bytes int64) Config {
	c.limits = host.MailboxLimits{Messages: messages, Bytes: bytes}
	return c
}

// Props makes the props of the actor. Its mailbox is the queue: do not give it another one.
func (c Config) Props() host.Props {
	return host.Native(func() host.Actor { return &throttler{} }).WithMailbox(func(l host.MailboxLimits) host.Mailbox {
		if c.limits.Messages > 0 {
			l.Messages = min(l.Messages, c.limits.Messages)
		}
		if c.limits.Bytes > 0 {
			l.Bytes = min(l.Bytes, c.limits.Bytes)
		}
		return &gate{limits: l, state: state{target: c.target, meter: rules.NewMeter(c.rate)}}
	})
}

// State is what a throttler is doing.
type State struct {
	_       struct{} `cbor:",toarray"`
	N       int
	Per     time.Duration
	Paused  bool
	Waiting int     // messages
	Target  abi.Ref // the number of the target's ref
}

// SetRate changes the rate. It holds at once, also for the interval that is under way, and for all
// incarnations, as do the other orders.
func SetRate(sys *host.System, throttler host.Ref, r Rate) error {
	if err := r.Check(); err != nil {
		return err
	}
	return sys.Tell(throttler, order(orderRate, []int64{int64(r.N), int64(r.Per)}))
}

// SetTarget changes the target: all that has not been passed on goes to the new one.
func SetTarget(sys *host.System, throttler, target host.Ref) error {
	if target.IsZero() {
		return errNoTarget
	}
	return sys.Tell(throttler, order(orderTarget, uint64(target.UID())))
}

// Pause stops all starts until Resume; messages that come wait.
func Pause(sys *host.System, throttler host.Ref) error {
	return sys.Tell(throttler, order(orderPause, nil))
}

// Resume ends a Pause.
func Resume(sys *host.System, throttler host.Ref) error {
	return sys.Tell(throttler, order(orderResume, nil))
}

// StateOf asks a throttler what it is doing.
func StateOf(ctx context.Context, sys *host.System, throttler host.Ref) (State, error) {
	return host.AskAs[State](ctx, sys, throttler, order(orderState, nil))
}

func order(what string, v any) host.Headed {
	return host.Headed{Value: v, Headers: map[string]string{Header: what}}
}

// tick is the key of the throttler's timer.
const tick = 1

var errNoTarget = errors.New("throttle: the throttler has no target")

// throttler is the actor: an incarnation. What orders have changed, and the vouchers that are used, are
// with the mailbox, which outlives it.
type throttler struct {
	*gate
	armed bool // the timer is set
}

// Started implements host.Starter.
func (t *throttler) Started(ctx *host.Context) (err error) {
	var ok bool
	if t.gate, ok = ctx.Head().Mailbox().(*gate); !ok {
		return errors.New("throttle: the throttler has a mailbox of another kind")
	}
	if t.target.IsZero() {
		return errNoTarget
	}
	if err := t.meter.Rate().Check(); err != nil {
		return err
	}
	t.setGate(ctx)
	return nil
}

// Receive implements host.Actor.
func (t *throttler) Receive(ctx *host.Context, m host.Message) error {
	order, ordered := abi.FindHeader(m.Headers, Header)
	switch {
	case m.Kind == abi.KindTimer:
		t.armed = false
	case m.Kind != abi.KindMessage:
		return host.ErrUnhandled
	case ordered && !m.Sender.IsZero() && m.Sender.Path() != "/temp" && m.Sender.UID() != ctx.Parent().UID():
		return ctx.ReplyError("throttle: only the parent, and callers outside the system, may give orders")
	case ordered:
		if err := t.carryOut(ctx, string(order), m); err != nil {
			return ctx.ReplyError(err.Error())
		}
	default:
		t.meter.Take(ctx.Now())
		if err := ctx.Head().Pass(t.target); err != nil {
			return err
		}
	}
	t.setGate(ctx)
	return nil
}

// setGate shuts or opens the gate, and sets the timer for when it opens.
func (t *throttler) setGate(ctx *host.Context) {
	wait := t.meter.Wait(ctx.Now())
	t.set(t.paused || wait > 0)
	if wait > 0 && !t.paused && !t.armed {
		t.armed = ctx.After(tick, wait, 0, nil) == nil
	}
}

func (t *throttler) carryOut(ctx *host.Context, order string, m host.Message) error {
	switch order {
	case orderPause:
		t.paused = true
	case orderResume:
		t.paused = false
	case orderRate:
		var v [2]int64
		if err := m.Decode(&v); err != nil {
			return err
		}
		r := Rate{N: int(v[0]), Per: time.Duration(v[1])}
		if err := r.Check(); err != nil {
			return err
		}
		t.meter.SetRate(r)
		t.armed = false // for another time than the timer is set to
	case orderTarget:
		var uid uint64
		if err := m.Decode(&uid); err != nil {
			return err
		}
		by := m.Sender // the parent, who may be a guest that guesses
		if by.Path() == "/temp" {
			by = host.Ref{}
		}
		target, err := ctx.System().RefOf(abi.Ref(uid), by)
		switch {
		case err != nil:
			return errNoTarget
		case target.UID() == ctx.Self().UID():
			return errors.New("throttle: a throttler cannot be its own target")
		}
		t.target = target
	case orderState:
		r := t.meter.Rate()
		return ctx.Reply(State{N: r.N, Per: r.Per, Paused: t.paused, Waiting: t.waiting(), Target: t.target.UID()})
	default:
		return errors.New("throttle: there is no order " + strconv.Quote(order))
	}
	return nil
}
