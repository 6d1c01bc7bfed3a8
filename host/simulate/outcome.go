package simulate

import (
	"context"
	"time"
)

// Outcome is how the run of a plan has ended. Its texts may have been written by guests.
type Outcome struct {
	Plan      Plan
	Violation *Violation // nil: all that must hold has held
	Faults    []Fault
	Messages  uint64        // from outside, those that were not sent included
	Chain     string        // the hash chain over the history
	Records   uint64        // of the history
	Virtual   time.Duration // in virtual time
	Took      time.Duration // in real time
	Tail      []string      // the last lines of the history
	Err       error         // the run could not begin, or has not come to its end; nil if it has
}

// Failed reports whether something is wrong.
func (o *Outcome) Failed() bool { return o.Violation != nil || o.Err != nil }

// Player runs plans, one after the other.
type Player interface {
	Play(context.Context, Plan) *Outcome
	Close()
}

// Finish makes the outcome of a run that has ended.
func (r *Run) Finish(messages uint64, took time.Duration, err error) *Outcome {
	o := &Outcome{Plan: r.plan, Violation: r.Violation(), Faults: r.Faults(), Messages: messages, Virtual: r.Since(), Took: took, Tail: r.Tail(), Err: err}
	o.Chain, o.Records = r.Chain()
	return o
}
