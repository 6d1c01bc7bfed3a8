package host

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/gostack"
	"github.com/wasmactors/wasmactors/supervision"
)

// behaved wraps a behaviour from outside, see [Behave]. It gives it what every actor in Go
// has: a panic is a failure, and what a turn sends leaves when the turn ends, or not at
// all if it fails.
type behaved struct {
	inner    Behaviour
	panicked bool

	unrecorded *abi.Failure // of the turn that Next has ended
}

// guarded calls a method of the behaviour.
func (b *behaved) guarded(ctx *Context, f func() *abi.Failure) (failure *abi.Failure) {
	a := ctx.actor
	defer func() {
		if r := recover(); r != nil {
			b.panicked = true
			failure = &abi.Failure{Kind: abi.FailureNativePanic, Reason: "panic", Message: fmt.Sprint(r), GuestStack: gostack.Text(), Turn: a.turns}
		}
		if failure == nil {
			failure = b.unrecorded
		}
		told := b.unrecorded != nil
		b.unrecorded = nil
		if !told && (ctx.env != nil || len(ctx.scr.effects) > 0 || failure != nil) {
			if failure = a.endTurn(ctx, failure); a.sealed.isHeld() {
				return
			}
		}
		if len(ctx.scr.effects) > 0 {
			a.leaveTurn(ctx.scr, failure != nil)
		}
	}()
	return f()
}

// Start implements Behaviour.
func (b *behaved) Start(ctx *Context, cause *abi.Failure) *abi.Failure {
	b.panicked = false
	return b.guarded(ctx, func() *abi.Failure { return b.inner.Start(ctx, cause) })
}

// Handle implements Behaviour.
func (b *behaved) Handle(ctx *Context, n int) *abi.Failure {
	ctx.scr.same = 0 // it may take as long as it likes
	return b.guarded(ctx, func() *abi.Failure { return b.inner.Handle(ctx, n) })
}

// Decide implements Behaviour.
func (b *behaved) Decide(ctx *Context, child Ref, f *abi.Failure) (d supervision.Directive, failure *abi.Failure) {
	ctx.scr.waits = true
	failure = b.guarded(ctx, func() (failure *abi.Failure) {
		d, failure = b.inner.Decide(ctx, child, f)
		return failure
	})
	ctx.scr.waits = false
	return d, failure
}

// CannotRewind implements Behaviour.
func (b *behaved) CannotRewind() string {
	if b.panicked {
		return "the actor has panicked"
	}
	return b.inner.CannotRewind()
}

// Rewind implements Behaviour.
func (b *behaved) Rewind(ctx *Context) (ok bool) {
	ctx.scr.waits = true
	f := b.guarded(ctx, func() *abi.Failure { ok = b.inner.Rewind(ctx); return nil })
	ctx.scr.waits = false
	return ok && f == nil
}

// End implements Behaviour.
func (b *behaved) End(ctx *Context, end End) {
	ctx.scr.waits = true
	f := b.guarded(ctx, func() *abi.Failure { b.inner.End(ctx, end); return nil })
	if ctx.scr.waits = false; f != nil {
		ctx.actor.sys.logf(ctx.actor, abi.LogError, "stopping: %v", f)
	}
}

// Behave makes props of an actor with a behaviour of one's own. Make is called once for
// an actor, not for each incarnation; typ is what [Node] and events call its type.
func Behave(typ string, make func() Behaviour) Props {
	p := Props{typ: typ, strategy: supervision.Default()}
	if make != nil {
		p.make = func(*actor) Behaviour { return &behaved{inner: make()} }
	}
	return p
}
