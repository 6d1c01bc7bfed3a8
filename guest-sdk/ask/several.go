package ask

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// MaxTargets bounds how many are asked at once. The actor's limit of asks counts, too.
const MaxTargets = 64

// Want says how many of several must answer. An answer with an error, or none, is a failure.
type Want struct {
	need    int // 0: all
	settled bool
}

// All is an answer from each; the first failure ends the ask.
func All() Want { return Want{} }

// First is the first answer that is not a failure.
func First() Want { return Quorum(1) }

// Quorum is the first n answers that are not failures, n from 1. The ask ends as soon as n answers are impossible.
func Quorum(n int) Want { return Want{need: max(n, 1)} }

// Settled is the outcome of each, including failures; it never fails.
func Settled() Want { return Want{settled: true} }

// Result is what one of several has answered.
type Result struct {
	Target  actor.Ref
	Payload []byte // a copy; nil with an error
	Err     *Error // nil for an answer
}

// SeveralError says that too few actors have answered.
type SeveralError struct{ Need, Got, Of int }

func (e *SeveralError) Error() string {
	return strconv.Itoa(e.Got) + " of " + strconv.Itoa(e.Of) + " have answered, " + strconv.Itoa(e.Need) + " were required"
}

// several is an ask under way.
type several struct {
	want         Want
	results      []Result
	correlations []uint64
	open, got    int
	then         func(ctx *actor.Context, results []Result, err error) error
}

// Several asks up to MaxTargets actors the same question, and calls then once, in a later turn, with their answers, in the
// order of the targets. All have the same timeout. When want is met, or can no longer be met, the other asks are given up:
// actors that have not begun with the question skip it, and those that work on it are notified. The error is a
// *SeveralError. An invalid number of targets, or a want of more answers than targets, makes this turn fail.
func Several(ctx *actor.Context, want Want, to []actor.Ref, v actor.Encoder, timeout time.Duration, then func(ctx *actor.Context, results []Result, err error) error) {
	if want.need == 0 {
		want.need = len(to)
	}
	if len(to) == 0 || len(to) > MaxTargets || want.need > len(to) {
		ctx.Fail(&Error{Refused, "ask: " + strconv.Itoa(want.need) + " answers of " + strconv.Itoa(len(to)) + " targets, at most " + strconv.Itoa(MaxTargets)})
		return
	}
	s := &several{want: want, results: make([]Result, len(to)), correlations: make([]uint64, len(to)), open: len(to), then: then}
	for i, ref := range to {
		s.results[i] = Result{Target: ref, Err: &Error{Kind: GivenUp}}
		s.correlations[i] = ctx.AskWith(ref, v, timeout, func(ctx *actor.Context, m *actor.Message) error { return s.answered(ctx, m, i, timeout) })
	}
}

// answered notes the outcome of target i.
func (s *several) answered(ctx *actor.Context, m *actor.Message, i int, timeout time.Duration) error {
	r := &s.results[i]
	s.open--
	if r.Err = failure(m, r.Target, timeout); r.Err == nil {
		r.Payload = append([]byte{}, m.Payload()...)
		s.got++
	}
	failed := len(s.results) - s.open - s.got
	if s.open > 0 && (s.want.settled || s.got < s.want.need && len(s.results)-failed >= s.want.need) {
		return nil
	}
	for _, c := range s.correlations {
		ctx.CancelAsk(c) // nothing happens to those that are over
	}
	if s.want.settled || s.got >= s.want.need {
		return s.then(ctx, s.results, nil)
	}
	return s.then(ctx, s.results, &SeveralError{s.want.need, s.got, len(s.results)})
}
