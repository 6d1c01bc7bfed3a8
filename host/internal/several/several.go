// Package several has the rule of asks of several actors: whose answers are wanted, and when an ask is over.
package several

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/ref"
)

// MaxTargets bounds how many are asked at once by AskSeveral.
const MaxTargets = 256

// Want says how many of several must answer. An answer with an error, or none, is a failure.
type Want struct {
	Need    int // 0: all
	Settled bool
}

// All is an answer from each. The first failure ends the ask: it cannot succeed any more.
func All() Want { return Want{} }

// First is the first answer that is not a failure. The ask fails when all have failed.
func First() Want { return Quorum(1) }

// Quorum is the first n answers that are not failures, n from 1. The ask fails as soon as n answers are impossible.
func Quorum(n int) Want { return Want{Need: max(n, 1)} }

// Settled is the outcome of each, including failures: the ask ends when all have an outcome, and no failure makes it fail.
func Settled() Want { return Want{Settled: true} }

// Asked is the outcome for one of several actors that were asked.
type Asked struct {
	Target  ref.Ref
	Message message.Message
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
		if r.Err != nil && !errors.Is(r.Err, errs.ErrGone) {
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
		if r.Err != nil && !errors.Is(r.Err, errs.ErrGone) {
			all = append(all, r.Err)
		}
	}
	return all
}

// Tally counts the answers of several: the rule of Want, for asks from Go and from actors.
type Tally struct {
	Results           []Asked
	Done              []bool
	need              int
	settled           bool
	answered, answers int
	Ended             bool
}

func New(want Want, to []ref.Ref) (*Tally, error) {
	if len(to) == 0 || len(to) > MaxTargets {
		return nil, fmt.Errorf("%w: %d receivers, must be 1 to %d", errs.ErrLimit, len(to), MaxTargets)
	}
	if want.Need > len(to) {
		return nil, fmt.Errorf("%w: %d answers are required of %d receivers", errs.ErrLimit, want.Need, len(to))
	}
	t := &Tally{Results: make([]Asked, len(to)), Done: make([]bool, len(to)), need: want.Need, settled: want.Settled}
	if t.need == 0 {
		t.need = len(to)
	}
	for i, ref := range to {
		t.Results[i] = Asked{Target: ref, Err: errs.ErrGone}
	}
	return t, nil
}

// Put notes the outcome of target i; over: no more is waited for.
func (t *Tally) Put(i int, m message.Message, err error) (over bool) {
	if t.Ended || t.Done[i] {
		return t.Ended
	}
	t.Done[i] = true
	t.Results[i].Message, t.Results[i].Err = m, err
	t.answered++
	if err == nil {
		t.answers++
	}
	failed := t.answered - t.answers
	switch {
	case t.answered == len(t.Results):
		t.Ended = true
	case t.settled:
	default:
		t.Ended = t.answers >= t.need || len(t.Results)-failed < t.need
	}
	return t.Ended
}

// Err is nil if the answers that were wanted have come.
func (t *Tally) Err() error {
	if t.settled || t.answers >= t.need {
		return nil
	}
	return &SeveralError{Need: t.need, Got: t.answers, Results: t.Results}
}
