// Package breaker is a circuit breaker for guests: it stops asking an actor that fails, and tries it
// again after a while. A call allocates nothing if as many were under way before.
//
//	b := breaker.New(breaker.Settings{MaxFailures: 3, CallTimeout: time.Second})
//	...
//	if err := b.Ask(ctx, to, actor.Text("how much?"), answered); err != nil {
//		return ctx.ReplyError(err.Error()) // open: it was not asked
//	}
//
// A breaker is a field of an actor, and begins closed with each incarnation. docs/guide/circuit-breaker.md
// tells the rest.
package breaker

import (
	"strconv"
	"time"

	rules "github.com/wasmactors/wasmactors/abi/breaker"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Settings say when a circuit opens and for how long. Zero fields mean the defaults: 5 failures, 10 s, 1 min.
type Settings = rules.Settings

// State is where a circuit stands.
type State = rules.State

// The states.
const (
	Closed   = rules.Closed
	Open     = rules.Open
	HalfOpen = rules.HalfOpen
)

// NoTimeout as a call timeout lets an answer take as long as an ask may: 24 hours.
const NoTimeout = rules.NoTimeout

// Values of Header in a message that goes through the actor of a breaker.
const (
	Header      = rules.Header
	TellOnly    = rules.TellOnly
	Passthrough = rules.Passthrough
)

// longest is how long an ask may take.
const longest = 24 * time.Hour

// Breaker is a circuit breaker. Its methods are for its actor, within its turns.
type Breaker struct {
	circuit rules.Circuit
	ctx     *actor.Context // of the call that may make a transition
	open    OpenError
	free    *call
	key     uint64 // of the timer
	timed   bool

	isFailure                   func(msg *actor.Message) bool
	opened, closed, halfOpened  func(ctx *actor.Context)
	succeeded, failed, timedOut func(ctx *actor.Context, took time.Duration)
	refused                     func(ctx *actor.Context)
}

// call is one that is under way, or one that is over and waits to be reused.
type call struct {
	b    *Breaker
	call rules.Call
	then func(*actor.Context, *actor.Message) error
	done func(*actor.Context, *actor.Message) error
	next *call
}

// OpenError says that a call was not made. It is valid until the next one.
type OpenError struct {
	// Remaining is how long nothing will be tried; 0 while the trial call of a half-open circuit is
	// under way.
	Remaining time.Duration
}

// Error implements error.
func (e *OpenError) Error() string {
	if e.Remaining == 0 {
		return "breaker: the circuit is half-open, and its one trial call is in progress"
	}
	return "breaker: the circuit is open for another " + strconv.FormatInt(int64((e.Remaining+time.Millisecond-1)/time.Millisecond), 10) + " ms"
}

// New makes a closed breaker. Settings that are wrong panic; the text says what.
func New(s Settings) *Breaker {
	if err := s.Check(); err != nil {
		panic(err.Error())
	}
	b := &Breaker{}
	b.circuit = rules.New(s, b.changed)
	return b
}

// OnOpen makes f be called when the circuit has opened, in the same turn.
func (b *Breaker) OnOpen(f func(ctx *actor.Context)) *Breaker { b.opened = f; return b }

// OnClose makes f be called when the circuit has closed again.
func (b *Breaker) OnClose(f func(ctx *actor.Context)) *Breaker { b.closed = f; return b }

// OnHalfOpen makes f be called when one call may be tried: at the first one after the reset timeout, or
// exactly then if there is a Timer.
func (b *Breaker) OnHalfOpen(f func(ctx *actor.Context)) *Breaker { b.halfOpened = f; return b }

// OnSuccess makes f be called with the duration of each call that has succeeded.
func (b *Breaker) OnSuccess(f func(ctx *actor.Context, took time.Duration)) *Breaker {
	b.succeeded = f
	return b
}

// OnFailure makes f be called with the duration of each call that has failed; for those that took too long
// see OnTimeout.
func (b *Breaker) OnFailure(f func(ctx *actor.Context, took time.Duration)) *Breaker {
	b.failed = f
	return b
}

// OnTimeout makes f be called for each call that has taken longer than the call timeout.
func (b *Breaker) OnTimeout(f func(ctx *actor.Context, took time.Duration)) *Breaker {
	b.timedOut = f
	return b
}

// OnRefused makes f be called for each call that was not made.
func (b *Breaker) OnRefused(f func(ctx *actor.Context)) *Breaker { b.refused = f; return b }

// FailIf sets which answers are failures; the default is those with an error. An answer that does not come is
// a failure in any case.
func (b *Breaker) FailIf(f func(msg *actor.Message) bool) *Breaker { b.isFailure = f; return b }

// Timer makes the circuit half-open exactly when its time is over, by a timer with this key. The
// actor passes its messages to Receive.
func (b *Breaker) Timer(key uint64) *Breaker {
	b.key, b.timed = key, true
	return b
}

// Receive takes the message of the timer; false if msg is another one.
func (b *Breaker) Receive(ctx *actor.Context, msg *actor.Message) bool {
	if !b.timed || msg.Kind() != actor.KindTimer || msg.Correlation() != b.key {
		return false
	}
	b.State(ctx)
	return true
}

// State is where the circuit stands now.
func (b *Breaker) State(ctx *actor.Context) State {
	b.ctx = ctx
	return b.circuit.State(ctx.Now())
}

// Remaining is how long the circuit will still be open; 0 if it is not.
func (b *Breaker) Remaining(ctx *actor.Context) time.Duration { return b.circuit.Remaining(ctx.Now()) }

// Ask asks, if the circuit lets it: then is called with the answer as by Context.Ask, where the
// timeout is the call timeout. If not, the error is an *OpenError, at once, and then is never called.
func (b *Breaker) Ask(ctx *actor.Context, to actor.Ref, v actor.Encoder, then func(*actor.Context, *actor.Message) error) error {
	x, err := b.begin(ctx, then)
	if err != nil {
		return err
	}
	ctx.Ask(to, v, min(b.circuit.Settings().CallTimeout, longest), x.done)
	return nil
}

// AskPath is Ask to a path.
func (b *Breaker) AskPath(ctx *actor.Context, path string, v actor.Encoder, then func(*actor.Context, *actor.Message) error) error {
	x, err := b.begin(ctx, then)
	if err != nil {
		return err
	}
	ctx.AskPath(path, v, min(b.circuit.Settings().CallTimeout, longest), x.done)
	return nil
}

// Call calls f, if the circuit lets it; an error of f is a failure, and returned. Time stands still during a turn, so f
// cannot time out: use an ask for slow work.
func (b *Breaker) Call(ctx *actor.Context, f func() error) error {
	x, err := b.begin(ctx, nil)
	if err != nil {
		return err
	}
	err = f()
	b.end(ctx, x, err != nil, false)
	return err
}

// begin reuses a call that is over, or makes one.
func (b *Breaker) begin(ctx *actor.Context, then func(*actor.Context, *actor.Message) error) (*call, error) {
	b.ctx = ctx
	c, ok := b.circuit.Begin(ctx.Now())
	if !ok {
		b.open.Remaining = b.circuit.Remaining(ctx.Now())
		if b.refused != nil {
			b.refused(ctx)
		}
		return nil, &b.open
	}
	x := b.free
	if x == nil {
		x = &call{b: b}
		x.done = x.answered
	} else {
		b.free = x.next
	}
	x.call, x.then, x.next = c, then, nil
	return x, nil
}

// answered is called with the outcome of an ask of the breaker.
func (x *call) answered(ctx *actor.Context, msg *actor.Message) error {
	b, then := x.b, x.then
	kind := msg.Kind()
	late := kind == actor.KindAskTimeout
	failed := late || kind == actor.KindReplyError
	if !late && b.isFailure != nil {
		failed = b.isFailure(msg)
	}
	b.end(ctx, x, failed, late)
	if then == nil {
		return nil
	}
	return then(ctx, msg)
}

func (b *Breaker) end(ctx *actor.Context, x *call, failed, late bool) {
	b.ctx = ctx
	took := x.call.Took(ctx.Now())
	late = late || took > b.circuit.Settings().CallTimeout
	failed = b.circuit.End(x.call, failed, ctx.Now())
	tell := b.succeeded
	switch {
	case late:
		tell = b.timedOut
	case failed:
		tell = b.failed
	}
	x.then, x.next = nil, b.free
	b.free = x
	if tell != nil {
		tell(ctx, took)
	}
}

// changed carries out the effects of a transition.
func (b *Breaker) changed(_, to State) {
	tell := b.halfOpened
	switch to {
	case Open:
		if tell = b.opened; b.timed {
			b.ctx.After(b.key, b.circuit.Remaining(b.ctx.Now()), nil)
		}
	case Closed:
		tell = b.closed
	}
	if tell != nil {
		tell(b.ctx)
	}
}
