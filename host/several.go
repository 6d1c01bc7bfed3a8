package host

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/several"
	"github.com/wasmactors/wasmactors/host/internal/turn"
)

// MaxTargets bounds how many are asked at once by AskSeveral.
const MaxTargets = several.MaxTargets

type (
	// Want says how many of several must answer.
	Want = several.Want
	// Asked is the outcome for one of several actors that were asked. Its fields are Target, Message and Err: nil for an
	// answer, otherwise an error as of System.Ask, or ErrGone, which says that the answer was not waited for any longer.
	Asked = several.Asked
	// SeveralError is an ask of several that has failed: Got of Need answers have come, see its Results. It wraps the
	// failures, in the order of the targets, except those that are ErrGone.
	SeveralError = several.SeveralError
)

// All is an answer from each. The first failure ends the ask: it cannot succeed any more.
func All() Want { return several.All() }

// First is the first answer that is not a failure. The ask fails when all have failed.
func First() Want { return several.First() }

// Quorum is the first n answers that are not failures, n from 1. The ask fails as soon as n answers are impossible.
func Quorum(n int) Want { return several.Quorum(n) }

// Settled is the outcome of each, including failures: the ask ends when all have an outcome, and no failure makes it fail.
func Settled() Want { return several.Settled() }

// AskSeveral asks up to MaxTargets actors the same question and returns the outcome for each, in their
// order. ctx ends all of it, as does Config.WithAskTimeout if it has no deadline. When what want says has
// come, or cannot come any more, the others are given up: those that have not begun with the question do not
// handle it, and those that work on it are told. The error is a *SeveralError, or ErrLimit if
// there are too many targets, or fewer than must answer; a target that does not accept the question
// counts as one that has failed.
func (s *System) AskSeveral(ctx context.Context, want Want, to []Ref, v any) ([]Asked, error) {
	return s.outside.AskSeveral(ctx, want, to, v)
}

// Several is an ask of several actors by an actor in Go: see [Context.AskSeveral]. Its method:
//
//	Take(c *Context, m Message) (results []Asked, over bool, err error)
//
// Take takes an answer to one of the questions, and ignores everything else. over says that it was the one
// that ends the ask: the others are given up. Results are all outcomes, in the order of the
// targets; the error is a *SeveralError.
type Several = several.Asking[*Context]

// AskSeveral asks up to MaxTargets actors the same question, with the correlations from first on, of which none
// may be in use. The actor passes every message to Take of [Several] before it handles it itself. It fails as Ask
// does, and then no actor is asked.
func (c *Context) AskSeveral(want Want, to []Ref, v any, first uint64, timeout time.Duration) (*Several, error) {
	t, err := several.New(want, to)
	if err != nil {
		return nil, err
	}
	for i, ref := range to {
		if err := c.Ask(ref, v, first+uint64(i), timeout); err != nil {
			for j := range i {
				c.CancelAsk(first + uint64(j))
			}
			c.unsend(i)
			return nil, err
		}
	}
	return several.NewAsking[*Context](t, first), nil
}

// Pipe asks a Go function instead of an actor. f runs in a goroutine of its own when the turn has ended; if the turn fails
// it does not run. What f returns comes as the answer to an ask with this correlation: a Message of KindReply,
// KindReplyError or KindAskTimeout. As every ask it counts in Limits.Asks, and its answer never reaches a later incarnation.
// The context of f ends, with the cause ErrGone, when the answer is no longer wanted. Pipe fails as Ask does.
func (h Head) Pipe(f func(context.Context) (any, error), correlation uint64, timeout time.Duration) error {
	a := h.ctx.actor
	uid := a.sys.outside.NewRef()
	if _, err := h.ctx.enterAsk(correlation, uid, timeout); err != nil {
		return err
	}
	a.work.Asks.Observe(correlation, uid)
	begin := a.sys.outside.Function(uid, a.uid, correlation, f)
	if h.ctx.scr == nil {
		begin()
		return nil
	}
	e := h.ctx.scr.newEnvelope()
	e.Value = begin
	h.ctx.scr.effects = append(h.ctx.scr.effects, effect{Kind: turn.Pipe, Env: e})
	return nil
}
