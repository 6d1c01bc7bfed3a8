package record

import (
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Decision is what a supervisor's strategy has said while an actor dealt with a signal. It comes behind the record of that signal, and
// before anything that follows from it, so that a repetition carries out what was decided although the strategy is another one now.
// Behind one signal several mean that the actor has dealt with it again after a start: the last one counts.
type Decision struct {
	About About   `cbor:"1,keyasint"`
	Child abi.Ref `cbor:"2,keyasint,omitempty"` // that has failed or ended; 0: it is about a restart of the actor itself

	// Of Reported.
	Chosen    supervision.Directive `cbor:"3,keyasint,omitempty"` // before limits; Ask: the actor could not be asked yet, and nothing else counts; 0: the child has stopped itself
	Directive supervision.Directive `cbor:"4,keyasint,omitempty"` // that was carried out
	Delay     time.Duration         `cbor:"5,keyasint,omitempty"` // before a restart
	Group     supervision.Kind      `cbor:"6,keyasint,omitempty"` // whom it concerns
	Alone     bool                  `cbor:"7,keyasint,omitempty"` // the child alone all the same
	Keep      bool                  `cbor:"8,keyasint,omitempty"` // a restart keeps the children

	Quits bool `cbor:"9,keyasint,omitempty"` // of Significant: the actor stops, too

	// Of Delayed, as in supervision.Backoff.
	Meanwhile supervision.Meanwhile `cbor:"10,keyasint,omitempty"`
	Stash     int                   `cbor:"11,keyasint,omitempty"`
	Grace     time.Duration         `cbor:"12,keyasint,omitempty"`
	Overtake  bool                  `cbor:"13,keyasint,omitempty"`
}

// About says which question a strategy was asked. A number never gets another meaning.
type About uint8

// The questions.
const (
	Reported    About = iota + 1 // a child has failed, or stopped itself, and waits
	Significant                  // a significant child has ended by itself
	Delayed                      // what a delayed restart means for the mailbox
)

// Wrong says why d is no decision; empty: it may be one.
func (d *Decision) Wrong() string {
	own := d.Chosen|d.Directive != 0 || d.Delay != 0 || d.Group != 0 || d.Alone || d.Keep
	delays := d.Meanwhile != 0 || d.Stash != 0 || d.Grace != 0 || d.Overtake
	switch {
	case d.About < Reported || d.About > Delayed:
		return fmt.Sprintf("a decision about a question %d", d.About)
	case (d.About == Delayed) != (d.Child == 0):
		return "a decision about nobody"
	case d.About != Reported && own, d.About != Significant && d.Quits, d.About != Delayed && delays:
		return "a decision with what another one has"
	case d.Chosen > supervision.Ask || d.Directive > supervision.Suspend || d.Group > supervision.RestForOne || d.Meanwhile > supervision.MeanwhileReply:
		return "a decision that no strategy makes"
	case d.About == Reported && (d.Directive == 0) != (d.Chosen == supervision.Ask):
		return "a decision without a directive"
	case d.Delay < 0 || d.Stash < 0 || d.Grace < 0:
		return "a decision with less than nothing"
	}
	return ""
}
