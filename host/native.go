package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Actor is an actor in Go. Its methods are never called at the same time.
//
// An error is a failure: it goes to the supervisor. ErrUnhandled is not; it says
// that the message was not for this actor. A panic is a failure, too.
type Actor interface {
	Receive(ctx *Context, m Message) error
}

// Starter is an actor that wants to know when it begins; an error fails the start.
type Starter interface{ Started(ctx *Context) error }

// Stopper is an actor that wants to know when it ends. It is called at a stop and,
// if the actor did not panic, before a restart.
type Stopper interface{ Stopped(ctx *Context) }

// Func makes a function an actor without state.
func Func(f func(ctx *Context, m Message) error) Props {
	return Native(func() Actor { return actorFunc(f) })
}

type actorFunc func(ctx *Context, m Message) error

func (f actorFunc) Receive(ctx *Context, m Message) error { return f(ctx, m) }

// Context is what an actor in Go can do during a call of its methods. It must
// not be used outside them, nor by other goroutines. What it does takes effect at
// once; only guests' turns are atomic.
type Context struct {
	cell *cell
	env  *mailbox.Envelope
	scr  *scratch // of the worker that makes the call; nil when it is over

	cause *abi.Failure // of the restart, within Started
}

// over ends the call: what keeps the context all the same gets no worker.
func (c *Context) over() { c.scr = nil }

// Self is the actor itself.
func (c *Context) Self() Ref { return c.cell.ref() }

// Parent is its supervisor.
func (c *Context) Parent() Ref { return c.cell.parent.ref() }

// System is where it lives.
func (c *Context) System() *System { return c.cell.sys }

// Incarnation is 0 at first and one more after every restart.
func (c *Context) Incarnation() uint64 { return c.cell.incarnation }

// Cause is why the incarnation before this one has ended, within Started; else, and
// at first, nil. It is not to be changed.
func (c *Context) Cause() *abi.Failure { return c.cause }

// Children are the actor's children in the order in which they were started, those
// that are about to stop included.
func (c *Context) Children() []Ref {
	kids := c.cell.kids()
	refs := make([]Ref, len(kids))
	for i, k := range kids {
		refs[i] = k.ref()
	}
	return refs
}

// Args decodes what Props.WithArgs was given.
func (c *Context) Args(v any) error { return decoder.Unmarshal(c.cell.args, v) }

// Now is the system's clock.
func (c *Context) Now() time.Time { return c.cell.sys.cfg.clock.Now() }

// Tell sends a message in the actor's name.
func (c *Context) Tell(to Ref, v any) error { return c.send(to.uid, v, abi.KindMessage, 0) }

// Ask sends a message whose answer comes as a Message of KindReply, KindReplyError
// or KindAskTimeout with this correlation, which must not be 0.
func (c *Context) Ask(to Ref, v any, correlation uint64, timeout time.Duration) error {
	if err := c.cell.addAsk(correlation, timeout); err != nil {
		return err
	}
	return c.send(to.uid, v, abi.KindMessage, correlation)
}

// Reply answers the current message.
func (c *Context) Reply(v any) error {
	return c.send(c.env.Sender, v, abi.KindReply, c.env.Correlation)
}

// ReplyError answers the current message with an error.
func (c *Context) ReplyError(reason string) error {
	return c.send(c.env.Sender, reason, abi.KindReplyError, c.env.Correlation)
}

// Forward sends the current message on, in the name of its sender.
func (c *Context) Forward(to Ref) error {
	return c.cell.forward(c.scr, to.uid, c.env)
}

func (c *Context) send(to abi.Ref, v any, kind abi.Kind, correlation uint64) error {
	e, err := envelope(v)
	if err != nil {
		return err
	}
	e.Kind, e.Sender, e.Correlation = kind, c.cell.uid, correlation
	return c.cell.sys.deliver(c.scr, to, e)
}

// ResetBackoff makes the supervisor count this actor's failures from the beginning.
func (c *Context) ResetBackoff() { c.cell.resetBackoff(c.scr) }

// Spawn makes a child; an empty name lets the host choose.
func (c *Context) Spawn(name string, p Props) (Ref, error) {
	child, err := c.cell.spawn(c.scr, name, p, c.cell.nextHostRef())
	if err != nil {
		return Ref{}, err
	}
	return child.ref(), nil
}

// Stop stops an actor.
//
// An actor that stops itself ends by its own wish, see [Props.WithLifetime].
func (c *Context) Stop(ref Ref) {
	if ref.uid == c.cell.uid {
		c.cell.post(c.scr, sysMsg{kind: sysQuit, reason: "stopped"})
		return
	}
	if t := c.cell.sys.table.get(ref.uid); t != nil {
		t.stop(c.scr)
	}
}

// Watch makes the end of an actor known through a Message of KindTerminated
// whose Sender it is. An actor that has ended already counts.
func (c *Context) Watch(ref Ref) error { return c.cell.watch(c.scr, ref.uid, ref.path) }

// Unwatch takes a watch back, also when the message is in the mailbox already.
func (c *Context) Unwatch(ref Ref) { c.cell.unwatch(c.scr, ref.uid) }

// After sends the actor a Message of KindTimer with this correlation later, and
// then every period if that is not 0. The same key replaces.
func (c *Context) After(key uint64, delay, period time.Duration, v any) error {
	payload, err := Encode(v)
	if err != nil {
		return err
	}
	return c.cell.setTimer(key, delay, period, payload)
}

// Cancel takes a timer back.
func (c *Context) Cancel(key uint64) { c.cell.cancelTimer(key) }

// SetReceiveTimeout asks for a Message of KindReceiveTimeout whenever nothing
// was received for d; 0 turns it off.
func (c *Context) SetReceiveTimeout(d time.Duration) { c.cell.setReceiveTimeout(d) }

// Stash keeps the current message aside until Unstash. It fails with ErrStashed the
// second time in a turn, and with ErrLimit if the stash is full; the message is a dead
// letter then.
func (c *Context) Stash() error { return c.cell.stashCurrent(c.env) }

// Unstash puts everything stashed back to the front of the mailbox, in order.
func (c *Context) Unstash() { c.cell.unstash() }
