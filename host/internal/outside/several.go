package outside

import (
	"context"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/several"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
)

// AskSeveral asks actors the same question and returns the outcome for each, in their order.
func (t *Table) AskSeveral(ctx context.Context, want several.Want, to []ref.Ref, v any) ([]several.Asked, error) {
	tally, err := several.New(want, to)
	if err != nil {
		return nil, err
	}
	first, err := message.Envelope(v)
	if err != nil {
		return nil, err
	}
	bound := message.IsBound(first)
	parts := make(chan part, len(to))
	open := make([]*Promise, len(to))
	uids := make([]abi.Ref, len(to))
	until := t.Patience(ctx)
	over := false
	for i, target := range to {
		e := first
		if i < len(to)-1 {
			e = message.CloneEnvelope(first)
			if bound {
				e.Value = message.BoundMark{}
			}
		}
		if over {
			e.Free()
			continue
		}
		s := t.kernel.Begin(ctx, span.Ask, target, e)
		if t.Carries {
			e.Attached = message.StillBelow(t.kernel.Values(ctx), e.Attached)
		}
		p := &Promise{patience: until, parts: parts, part: i}
		uid, err := t.enter(p, target, e, nil)
		t.kernel.Sent(s, err)
		if err != nil {
			over = tally.Put(i, message.Message{}, err)
			continue
		}
		uids[i], open[i] = uid, p
	}
	for !over {
		select {
		case got := <-parts:
			over = tally.Put(got.i, got.m, t.unanswered(open[got.i], to[got.i], v, got.m))
		case <-ctx.Done():
			for i, p := range open {
				if p != nil && !tally.Done[i] {
					tally.Put(i, message.Message{}, t.timedOut(p, to[i], v, ctx.Err()))
				}
			}
			over = true
		}
	}
	for _, uid := range uids {
		if uid != 0 {
			t.giveUp(uid)
		}
	}
	return tally.Results, tally.Err()
}
