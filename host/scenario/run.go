package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host/bundle"
)

// Result is the result of a scenario.
type Result struct {
	Scenario *Scenario
	Outcome  Outcome
	Took     time.Duration // in real time
	Passed   time.Duration // in virtual time
	Failure  *Failure      // nil unless the outcome is Failed
}

// Outcome is the outcome of a scenario, in a word.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "pass"
	Failed  Outcome = "fail"
	Skipped Outcome = "skip"
)

// Failure is why a scenario has failed. Its texts may have been written by guests.
type Failure struct {
	File         string
	Line, Column int    // of the step; of the scenario if that could not begin
	Step         int    // from 1; 0: it could not begin
	Verb         string // of the step
	What         string
	Want, Got    string // "": there is nothing to compare
	Hint         string // what to do, if that is known
	Before       []string
}

// Options say how scenarios are run.
type Options struct {
	Timeout time.Duration // of a scenario, in real time; 0: DefaultTimeout
	Seed    *uint64       // instead of that of the scenarios
}

// stepError is why a step has failed.
type stepError struct{ what, want, got, hint string }

func (e *stepError) Error() string { return e.what }

// Run runs a scenario in a system of its own. ctx ends it early, as failed. One scenario of a stage
// runs at a time.
func (st *Stage) Run(ctx context.Context, b *bundle.Bundle, s *Scenario, o Options) Result {
	began := time.Now()
	r := Result{Scenario: s, Outcome: Passed}
	if s.Skip != "" {
		r.Outcome = Skipped
		return r
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Seed != nil {
		seeded := *s
		seeded.seed = *o.Seed
		s = &seeded
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
	defer cancel()
	w, err := st.begin(ctx, b, s, nil)
	if err != nil {
		r.Failure = w.failure(s, 0, err, o)
	}
	if w != nil {
		defer st.end(w)
		for i := range s.steps {
			if r.Failure != nil {
				break
			}
			if err := w.step(&s.steps[i]); err != nil {
				r.Failure = w.failure(s, i+1, err, o)
			}
		}
		r.Passed = w.since(w.clock.Now())
		if st.ended != nil {
			st.ended(w)
		}
	}
	if r.Failure != nil {
		r.Outcome = Failed
	}
	r.Took = time.Since(began)
	return r
}

// failure describes why a step has failed; step 0 is the beginning.
func (w *world) failure(s *Scenario, number int, err error, o Options) *Failure {
	f := &Failure{File: s.File, Line: s.Line, Column: s.Column, Step: number, What: err.Error()}
	if number > 0 {
		x := &s.steps[number-1]
		f.Line, f.Column, f.Verb = x.n.Line, x.n.Column, x.verb.name
	}
	var known *stepError
	switch {
	case errors.As(err, &known):
		f.What, f.Want, f.Got, f.Hint = known.what, known.want, known.got, known.hint
	case errors.Is(err, errTimeout):
		f.What = fmt.Sprintf("the scenario has taken more than %v of real time", o.Timeout)
		f.Hint = "actors that never come to rest, or very much virtual time with timers that are due often? --timeout gives it more"
	}
	if w != nil {
		f.Before = w.history.tail(w.since)
	}
	return f
}
