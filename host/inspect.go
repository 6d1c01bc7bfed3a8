package host

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/supervision"
)

// DefaultInspectTimeout is how long Inspect waits for an actor whose context has no deadline.
const DefaultInspectTimeout = 100 * time.Millisecond

// Inspect looks at one actor. What only the actor and its supervisor know is read between two
// of their turns; it is missing if a turn goes on until ctx ends, or if more than 1000 looks wait already. It fails with
// ErrUnknown if the actor has stopped.
func (s *System) Inspect(ctx context.Context, ref Ref) (Inspection, error) {
	a := s.here(ref.UID())
	if a == nil {
		return Inspection{}, ErrUnknown
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultInspectTimeout)
		defer cancel()
	}
	x := Inspection{
		Parts: a.held(), Limits: a.props.limits, Capabilities: a.props.caps, Lifetime: a.props.life, Replies: int(a.replies.Load()),
	}
	own := a.lookAt(func() {
		x.Counts = &Counts{
			Timers: a.timers.Len(), Asks: a.asks.Len(), Watches: a.watch.Len(), Watchers: len(a.watch.Watchers()),
			Stash: a.stash.Len(), Undecided: a.super.Undecided(),
		}
	})
	var above *look.Visit
	var record supervision.Record
	var left, known bool
	if p := a.parent; p != nil {
		x.Strategy = p.props.strategy
		above = p.lookAt(func() { record, left, known = p.super.Look(&a.member, p.Now()) })
	}
	own.Wait(ctx)
	if !own.Done() {
		x.Counts = nil
	}
	above.Wait(ctx)
	if above.Done() && known {
		x.Record, x.Left = &record, left
	}
	a.info(&x.Info)
	x.Children = a.super.Family.Len()
	return x, nil
}
