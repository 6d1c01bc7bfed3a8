package host

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// startNative makes a fresh actor.
func (c *cell) startNative(scr *scratch, cause *abi.Failure) *abi.Failure {
	return c.guarded(func() error {
		c.actor = c.props.factory()
		if c.actor == nil {
			return errors.New("the factory returned nil")
		}
		if s, ok := c.actor.(Starter); ok {
			ctx := Context{cell: c, scr: scr, cause: cause}
			defer ctx.over()
			return s.Started(&ctx)
		}
		return nil
	})
}

// nativeTurn hands a message to an actor in Go.
func (c *cell) nativeTurn(scr *scratch, e *mailbox.Envelope) {
	c.consume(e)
	c.turns++
	scr.same = 0 // it may take as long as it likes
	ctx := Context{cell: c, env: e, scr: scr}
	defer ctx.over()
	kind := e.Kind
	sender := c.sys.refOf(e.Sender)
	if kind == abi.KindTerminated {
		sender.path = cmp.Or(endedPath(e), sender.path)
	}
	m := Message{Kind: e.Kind, Sender: sender, Correlation: e.Correlation, Payload: e.Payload}
	if len(e.Headers) > 0 {
		m.Headers = e.Headers
	}
	f := c.guarded(func() error {
		err := c.actor.Receive(&ctx, m)
		if errors.Is(err, ErrUnhandled) {
			if kind == abi.KindTerminated {
				return &abi.Failure{Kind: abi.FailureDeathPact, Reason: "the end of a watched actor was not handled"}
			}
			c.unhandled(e)
			return nil
		}
		return err
	})
	if f != nil {
		if f.Kind == abi.FailureNativePanic {
			c.actor = nil // not to be called any more
		}
		c.noteCrash(e, nil)
		back := !c.dispose(e)
		if back {
			c.mbox.PushFront(e)
		}
		c.fail(scr, f)
		if back {
			return
		}
	}
	scr.cache.Free(e)
}

// guarded calls f and turns an error or a panic into a failure.
func (c *cell) guarded(f func() error) (failure *abi.Failure) {
	defer func() {
		if r := recover(); r != nil {
			stack := debug.Stack()
			if len(stack) > abi.MaxReason {
				stack = stack[:abi.MaxReason]
			}
			failure = &abi.Failure{Kind: abi.FailureNativePanic, Reason: "panic", Message: fmt.Sprint(r), GuestStack: string(stack), Turn: c.turns}
		}
	}()
	err := f()
	if err == nil {
		return nil
	}
	var known *abi.Failure
	if errors.As(err, &known) {
		return known
	}
	return &abi.Failure{Kind: abi.FailureGuestError, Reason: err.Error(), Turn: c.turns}
}

// stopNative tells the actor that its incarnation ends.
func (c *cell) stopNative(scr *scratch) {
	a := c.actor
	c.actor = nil
	if s, ok := a.(Stopper); ok {
		ctx := Context{cell: c, env: mailbox.New(), scr: scr}
		defer ctx.over()
		if f := c.guarded(func() error { s.Stopped(&ctx); return nil }); f != nil {
			c.sys.logf(c, abi.LogError, "stopping: %v", f)
		}
	}
}

// lastTurn is the stop hook of either sort of actor.
func (c *cell) lastTurn(scr *scratch) {
	if c.actor != nil {
		c.stopNative(scr)
		return
	}
	if c.props.image != nil && c.begun {
		c.stopGuest(scr)
	}
}

// unhandled publishes a message that its receiver had no use for.
func (c *cell) unhandled(e *mailbox.Envelope) {
	if c.sys.bus.quiet() {
		return
	}
	ev := c.event(EventUnhandled)
	l := letter(0, c.uid, c.path, e)
	ev.Dead = &l
	c.sys.bus.publish(ev)
}
