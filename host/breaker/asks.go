package breaker

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/breaker"
	"github.com/wasmactors/wasmactors/host"
)

// Asks are the questions that an actor asks through a breaker. It is a field of the actor, made
// anew in each incarnation; the breaker may be shared with others and outlive it.
type Asks struct {
	b      *Breaker
	failIf func(m host.Message) bool
	calls  map[uint64]rules.Call
}

// NewAsks makes the asks of an actor.
func NewAsks(b *Breaker) *Asks { return &Asks{b: b, calls: map[uint64]rules.Call{}} }

// FailIf sets which answers, errors included, are failures; the default is errors. An answer that does not come is
// a failure in any case.
func (a *Asks) FailIf(f func(m host.Message) bool) *Asks { a.failIf = f; return a }

// Ask is [host.Context.Ask], if the circuit lets it: the answer, or the end of the call timeout,
// comes as a message with this correlation, which must be passed to Ended. If not, the error is an
// *OpenError, at once.
func (a *Asks) Ask(ctx *host.Context, to host.Ref, v any, correlation uint64) error {
	call, err := a.b.begin()
	if err != nil {
		return err
	}
	if err := ctx.Ask(to, v, correlation, min(a.b.timeout(), longest)); err != nil {
		a.b.end(call, abandoned)
		return err
	}
	a.calls[correlation] = call
	return nil
}

// longest is how long an ask may take.
const longest = 24 * time.Hour

// Ended notes the outcome of an ask; false if the message is not an answer to an ask that
// was made here. The actor handles the message in either case.
func (a *Asks) Ended(m host.Message) bool {
	switch m.Kind {
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
	default:
		return false
	}
	call, ok := a.calls[m.Correlation]
	if !ok {
		return false
	}
	delete(a.calls, m.Correlation)
	o := good
	switch {
	case m.Kind == abi.KindAskTimeout:
		o = late
	case a.failIf != nil && a.failIf(m), a.failIf == nil && m.Kind == abi.KindReplyError:
		o = bad
	}
	a.b.end(call, o)
	return true
}

// Forget gives up all asks that are under way; they count neither as successes nor as failures. It is for the end of an
// incarnation whose breaker lives on.
func (a *Asks) Forget() {
	for k, call := range a.calls {
		a.b.end(call, abandoned)
		delete(a.calls, k)
	}
}
