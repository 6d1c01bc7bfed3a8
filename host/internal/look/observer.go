package look

import (
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Word says who wants to hear of turns. The system has one, and so has each actor, for what is its own. If both are 0 that is all that
// a turn looks at.
type Word = atomic.Uint32

// The bits of a word.
const (
	ForRecorder uint32 = 1 << iota
	ForTaps
	ForFlow
	ForFuel
	ForFaults
	ForBox   // an actor's own: a black box
	ForTrial // an actor's own: its code was exchanged
	ForTape  // an actor's own: a recording
)

// Who is an actor as observers see it.
type Who interface {
	// Subject is the present time, and what is said of the actor: its ref, its type and its incarnation.
	Subject() span.Begun
}

// Observer is all who look on at a system. It is all that the engine knows of them: they decide nothing, and the engine does the same
// whether they are there or not. Envelopes, texts and failures stay the caller's, and are not changed. Any goroutine may call it, within
// the run of an actor or not; it takes no lock that an actor needs, and never waits.
type Observer interface {
	// Quiet reports whether nobody hears of events, so that what is only for them need not be made.
	Quiet() bool

	// Started: an incarnation has begun. cause is the failure that it follows; nil: there is none.
	Started(a Who, cause *abi.Failure)
	// Resumed: an actor goes on after a failure, with the state from before.
	Resumed(a Who)
	// Paused: an operator has stopped an actor from handling messages, or lets it go on.
	Paused(a Who, on bool)
	// Stopped: an actor has ended; cause is what it had failed with; nil: nothing.
	Stopped(a Who, reason string, cause *abi.Failure)
	// Decided: an actor has failed, and its supervisor knows what follows.
	Decided(a Who, d *Decision)
	// Terminated: the last actor has ended.
	Terminated(at time.Time)

	// Undelivered: a message was not delivered. It is counted and kept also if nobody hears of it. key names the bound that was met;
	// empty: none was.
	Undelivered(reason event.DeadReason, key string, to abi.Ref, path string, e *mailbox.Envelope)
	// Unhandled: an actor had no use for a message.
	Unhandled(a Who, e *mailbox.Envelope)
	// Refused: an actor did not get what it has asked for.
	Refused(a Who, r *event.Refusal)
	// Said: a guest, or the host, says something about an actor. level is that of a guest's log.
	Said(a Who, level int, text string, trace *span.Context)

	// Turns: turns have ended well, and are about to be carried out. The engine asks its word first. taps are the actor's, skip is the
	// worker's; see Sampler.
	Turns(taps *Taps, skip *uint64, t *Turns)
	// TurnFailed: the turn of a message has failed.
	TurnFailed(taps *Taps, a Who, e *mailbox.Envelope, f *abi.Failure)

	// Shown is a failure as it may be shown.
	Shown(f *abi.Failure) *abi.Failure
	// Excerpt is a copy of what a report may show of a payload.
	Excerpt(payload []byte) []byte
	// Hides reports whether a text contains what must not be shown.
	Hides(text string) bool
}

// Decision is what a supervisor has decided about a failure.
type Decision struct {
	ID        string // of the report
	At        time.Time
	Failure   *abi.Failure
	Escalated bool // it is that of an actor further below
	Directive supervision.Directive
	Delay     time.Duration
	Failures  int // of the actor, since the count was reset
	Note      string
	Mail      *event.CrashedMail // nil: there was none
	Silent    bool               // to be kept out of logs
}
