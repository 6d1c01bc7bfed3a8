package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// MaxTargets bounds how many are asked at once by AskSeveral.
const MaxTargets = 256

// Want says how many of several must answer. An answer with an error, or none, is a failure.
type Want struct {
	need    int // 0: all
	settled bool
}

// All is an answer from each. The first failure ends the ask: it cannot succeed any more.
func All() Want { return Want{} }

// First is the first answer that is not a failure. The ask fails when all have failed.
func First() Want { return Quorum(1) }

// Quorum is the first n answers that are not failures, n from 1. The ask fails as soon as n answers are impossible.
func Quorum(n int) Want { return Want{need: max(n, 1)} }

// Settled is the outcome of each, including failures: the ask ends when all have an outcome, and no failure makes it fail.
func Settled() Want { return Want{settled: true} }

// Asked is the outcome for one of several actors that were asked.
type Asked struct {
	Target  Ref
	Message Message
	// Err is nil for an answer, otherwise an error as of System.Ask, or ErrGone: the answer was not waited for
	// any longer.
	Err error
}

// SeveralError is an ask of several that has failed. It wraps the failures, in the order of the
// targets, except those that are ErrGone.
type SeveralError struct {
	Need, Got int // answers
	Results   []Asked
}

func (e *SeveralError) Error() string {
	var first error
	failed := 0
	for _, r := range e.Results {
		if r.Err != nil && !errors.Is(r.Err, ErrGone) {
			if failed++; first == nil {
				first = r.Err
			}
		}
	}
	return fmt.Sprintf("host: %d of %d actors have answered, %d were required; %d have failed, the first with: %v", e.Got, len(e.Results), e.Need, failed, first)
}

// Unwrap are the failures.
func (e *SeveralError) Unwrap() []error {
	var all []error
	for _, r := range e.Results {
		if r.Err != nil && !errors.Is(r.Err, ErrGone) {
			all = append(all, r.Err)
		}
	}
	return all
}

// tally counts the answers of several: the rule of Want, for asks from Go and from actors.
type tally struct {
	results           []Asked
	done              []bool
	need              int
	settled           bool
	answered, answers int
	ended             bool
}

func newTally(want Want, to []Ref) (*tally, error) {
	if len(to) == 0 || len(to) > MaxTargets {
		return nil, fmt.Errorf("%w: %d receivers, must be 1 to %d", ErrLimit, len(to), MaxTargets)
	}
	if want.need > len(to) {
		return nil, fmt.Errorf("%w: %d answers are required of %d receivers", ErrLimit, want.need, len(to))
	}
	t := &tally{results: make([]Asked, len(to)), done: make([]bool, len(to)), need: want.need, settled: want.settled}
	if t.need == 0 {
		t.need = len(to)
	}
	for i, ref := range to {
		t.results[i] = Asked{Target: ref, Err: ErrGone}
	}
	return t, nil
}

// put notes the outcome of target i; over: no more is waited for.
func (t *tally) put(i int, m Message, err error) (over bool) {
	if t.ended || t.done[i] {
		return t.ended
	}
	t.done[i] = true
	t.results[i].Message, t.results[i].Err = m, err
	t.answered++
	if err == nil {
		t.answers++
	}
	failed := t.answered - t.answers
	switch {
	case t.answered == len(t.results):
		t.ended = true
	case t.settled:
	default:
		t.ended = t.answers >= t.need || len(t.results)-failed < t.need
	}
	return t.ended
}

// err is nil if the answers that were wanted have come.
func (t *tally) err() error {
	if t.settled || t.answers >= t.need {
		return nil
	}
	return &SeveralError{Need: t.need, Got: t.answers, Results: t.results}
}

// part is the outcome for one of several.
type part struct {
	i int
	m Message
}

// AskSeveral asks up to MaxTargets actors the same question and returns the outcome for each, in their
// order. ctx ends all of it, as does Config.WithAskTimeout if it has no deadline. When what want says has
// come, or cannot come any more, the others are given up: those that have not begun with the question do not
// handle it, and those that work on it are told. The error is a *SeveralError, or ErrLimit if
// there are too many targets, or fewer than must answer; a target that does not accept the question
// counts as one that has failed.
func (s *System) AskSeveral(ctx context.Context, want Want, to []Ref, v any) ([]Asked, error) {
	t, err := newTally(want, to)
	if err != nil {
		return nil, err
	}
	first, err := envelope(v)
	if err != nil {
		return nil, err
	}
	bound := isBound(first)
	parts := make(chan part, len(to))
	open := make([]*promise, len(to))
	uids := make([]abi.Ref, len(to))
	until := s.patience(ctx)
	over := false
	for i, ref := range to {
		e := first
		if i < len(to)-1 {
			e = cloneEnvelope(first)
			if bound {
				e.Value = boundMark{}
			}
		}
		if over {
			e.Free()
			continue
		}
		span := s.fromOutside(ctx, AskSpan, ref, e)
		if s.cfg.values != nil {
			e.Attached = stillBelow(s.carry(ctx), e.Attached)
		}
		uid, p, err := s.requestPart(ref, e, until, parts, i)
		s.sent(span, err)
		if err != nil {
			over = t.put(i, Message{}, err)
			continue
		}
		uids[i], open[i] = uid, p
	}
	for !over {
		select {
		case got := <-parts:
			over = t.put(got.i, got.m, s.askEnded(open[got.i], to[got.i], v, got.m))
		case <-ctx.Done():
			for i, p := range open {
				if p != nil && !t.done[i] {
					t.put(i, Message{}, s.timedOut(p, to[i], v, ctx.Err()))
				}
			}
			over = true
		}
	}
	for _, uid := range uids {
		if uid != 0 && s.outside.remove(uid) {
			s.recent.add(uid, "")
		}
	}
	return t.results, t.err()
}

// requestPart is request for one of several.
func (s *System) requestPart(to Ref, e *mailbox.Envelope, until patience, parts chan part, i int) (abi.Ref, *promise, error) {
	p := &promise{patience: until, parts: parts, part: i}
	uid, err := s.enter(p, to, e, nil)
	return uid, p, err
}

// Several is an ask of several actors by an actor in Go: see [Context.AskSeveral].
type Several struct {
	tally *tally
	first uint64
}

// AskSeveral asks up to MaxTargets actors the same question, with the correlations from first on, of which none
// may be in use. The actor passes every message to [Several.Take] before it handles it itself. It fails as Ask
// does, and then no actor is asked.
func (c *Context) AskSeveral(want Want, to []Ref, v any, first uint64, timeout time.Duration) (*Several, error) {
	t, err := newTally(want, to)
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
	return &Several{t, first}, nil
}

// Take takes an answer to one of the questions, and ignores everything else. over says that it was the one
// that ends the ask: the others are given up. Results are all outcomes, in the order of the
// targets; the error is a *SeveralError.
func (s *Several) Take(c *Context, m Message) (results []Asked, over bool, err error) {
	i := m.Correlation - s.first
	if i >= uint64(len(s.tally.results)) || s.tally.ended {
		return nil, false, nil
	}
	err = m.Err()
	switch m.Kind {
	case abi.KindReply, abi.KindReplyError:
		m = m.Clone()
	case abi.KindAskTimeout:
		err = ErrTimeout
	default:
		return nil, false, nil
	}
	if !s.tally.put(int(i), m, err) {
		return nil, false, nil
	}
	for j, done := range s.tally.done {
		if !done {
			c.CancelAsk(s.first + uint64(j))
		}
	}
	return s.tally.results, true, s.tally.err()
}
