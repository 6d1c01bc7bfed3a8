package host

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/gostack"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

func (f actorFunc) Receive(ctx *Context, m Message) error { return f(ctx, m) }

// Start implements Behaviour.
func (n *native) Start(ctx *Context, _ *abi.Failure) *abi.Failure {
	return n.guarded(ctx, func() error {
		n.now = n.factory()
		if n.now == nil {
			return errors.New("the factory returned nil")
		}
		if s, ok := n.now.(Starter); ok {
			return s.Started(ctx)
		}
		return nil
	})
}

// Handle implements Behaviour.
func (n *native) Handle(ctx *Context, _ int) *abi.Failure {
	ctx.scr.same = 0 // it may take as long as it likes
	for e := ctx.take(ctx.ahead); e != nil; e = ctx.next() {
		if f := n.receive(ctx, e); f != nil {
			return f
		}
	}
	return nil
}

// receive is guarded for Receive, which is nearly always what is called.
func (n *native) receive(ctx *Context, e *mailbox.Envelope) (failure *abi.Failure) {
	returned := false
	defer func() {
		if !returned {
			failure = n.left(ctx, recover())
		}
	}()
	m := ctx.message(e)
	if m.Kind == abi.KindTerminated {
		m.Sender = newRef(m.Sender.UID(), cmp.Or(work.PathOfEnded(e), m.Sender.URI()))
	}
	err := n.now.Receive(ctx, m)
	returned = true
	if err != nil {
		failure = n.refused(ctx, e, err)
	}
	return n.let(ctx, failure)
}

// refused is the failure for an error of Receive, nil if the error is not a failure.
func (n *native) refused(ctx *Context, e *mailbox.Envelope, err error) *abi.Failure {
	if !errors.Is(err, ErrUnhandled) {
		return errs.FailureOf(err, ctx.actor.turns)
	}
	if e.Kind == abi.KindTerminated {
		return deathPact(ctx.actor.turns)
	}
	ctx.actor.sys.seen.Unhandled(ctx.actor, e)
	return nil
}

// Decide implements Behaviour.
func (n *native) Decide(ctx *Context, child Ref, f *abi.Failure) (d supervision.Directive, failure *abi.Failure) {
	s, ok := n.now.(Supervisor)
	if !ok {
		return 0, nil
	}
	ctx.scr.waits = true
	failure = n.guarded(ctx, func() error { d = s.Decide(ctx, child, f); return nil })
	ctx.scr.waits = false
	return d, failure
}

// CannotRewind implements Behaviour: an actor in Go goes on as it is.
func (n *native) CannotRewind() string {
	if n.now == nil {
		return "the actor has panicked"
	}
	return ""
}

// Rewind implements Behaviour.
func (n *native) Rewind(*Context) bool { return n.now != nil }

// End implements Behaviour.
func (n *native) End(ctx *Context, _ End) {
	s, ok := n.now.(Stopper)
	if ok {
		ctx.scr.waits = true
		f := n.guarded(ctx, func() error { s.Stopped(ctx); return nil })
		if ctx.scr.waits = false; f != nil {
			ctx.actor.sys.logf(ctx.actor, abi.LogError, "stopping: %v", f)
		}
	}
	n.now = nil
}

// guarded calls a method of the actor. An error or a panic is a failure; what the call
// has sent leaves now, or never.
func (n *native) guarded(ctx *Context, f func() error) (failure *abi.Failure) {
	returned := false
	defer func() {
		if !returned {
			failure = n.left(ctx, recover())
		}
	}()
	err := f()
	returned = true
	if err != nil {
		failure = errs.FailureOf(err, ctx.actor.turns)
	}
	return n.let(ctx, failure)
}

// left ends a call that has not returned: it has panicked, or (r is nil) ended its
// goroutine.
func (n *native) left(ctx *Context, r any) (failure *abi.Failure) {
	if r != nil {
		failure = &abi.Failure{Kind: abi.FailureNativePanic, Reason: "panic", Message: fmt.Sprint(r), GuestStack: gostack.Text(), Turn: ctx.actor.turns}
		n.now = nil
	}
	return n.let(ctx, failure)
}

// let sends what a call has left to send, unless the call has failed or is not recorded.
func (n *native) let(ctx *Context, failure *abi.Failure) *abi.Failure {
	a := ctx.actor
	if a.sys.looks.Load()|uint32(a.looks) != 0 {
		if failure = a.endTurn(ctx, failure); a.sealed.isHeld() {
			return nil
		}
	}
	if len(ctx.scr.effects) > 0 {
		a.leaveTurn(ctx.scr, failure != nil)
	}
	return failure
}
