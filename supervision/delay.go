package supervision

import (
	"errors"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// ResetPolicy says when the count of failures that drives the backoff starts
// again.
type ResetPolicy uint8

// The reset policies. They are applied when a child fails: a start that
// succeeds resets nothing.
const (
	// ResetAfterStable resets if the child has lived for ResetAfter since it was
	// last started.
	ResetAfterStable ResetPolicy = iota
	// ResetNever counts for ever.
	ResetNever
	// ResetManual resets when the child, or other code that knows, asks for it.
	ResetManual
)

// GiveUp says what happens to a child that has failed too often under backoff.
type GiveUp uint8

// What giving up means.
const (
	GiveUpStop GiveUp = iota
	GiveUpEscalate
	GiveUpSuspend
)

var giveUps = [...]string{"stop", "escalate", "suspend"}

// GiveUps are the names that manifests use.
func GiveUps() []string { return slices.Clone(giveUps[:]) }

// ParseGiveUp finds one by its name.
func ParseGiveUp(name string) (GiveUp, bool) {
	i := slices.Index(giveUps[:], name)
	return GiveUp(max(i, 0)), i >= 0
}

func (g GiveUp) directive() Directive {
	return [...]Directive{Stop, Escalate, Suspend}[min(g, GiveUpSuspend)]
}

// Ends is a set of the ways in which a child can end.
type Ends uint8

// The ways. 0 means all of them.
const (
	OnFailure Ends = 1 << iota
	OnStop
	OnAny = OnFailure | OnStop
)

// Meanwhile says what happens to messages to a child during its delay.
type Meanwhile uint8

// What can happen to them.
const (
	// MeanwhileKeep leaves them in the mailbox.
	MeanwhileKeep Meanwhile = iota
	// MeanwhileDrop makes them dead letters, as Akka does.
	MeanwhileDrop
	// MeanwhileReply answers them with an error at once; messages without a sender, which cannot be answered, are dropped.
	MeanwhileReply
)

var meanwhiles = [...]string{"keep", "drop", "reply"}

// Meanwhiles are the names that manifests use.
func Meanwhiles() []string { return slices.Clone(meanwhiles[:]) }

// ParseMeanwhile finds one by its name.
func ParseMeanwhile(name string) (Meanwhile, bool) {
	i := slices.Index(meanwhiles[:], name)
	return Meanwhile(max(i, 0)), i >= 0
}

// Backoff delays the restarts of a child.
type Backoff struct {
	Policy backoff.Policy
	// On says after which kinds of stop or failure restarts are delayed. Other restarts happen at once and are not counted.
	On    Ends
	Reset ResetPolicy
	// ResetAfter is how long the child must have lived under ResetAfterStable; 0 means as long as
	// its last delay. After a delay of 0 nothing is reset.
	ResetAfter time.Duration
	// MaxFailures is how many failures since the last reset are allowed. One more gives up. 0: no limit.
	MaxFailures int
	GiveUp      GiveUp

	// Meanwhile says what happens to messages that come during a delay.
	Meanwhile Meanwhile
	// Reply is the reason in the answer under MeanwhileReply.
	Reply string
	// Stash limits the messages that wait under MeanwhileKeep. Above it the oldest becomes a dead letter. 0: no limit except
	// the mailbox's, which refuses the newest.
	Stash int
	// Grace is how long a child must live after a delay before it gets the messages that waited, so that a child that fails
	// at once does not lose them. 0: no grace.
	Grace time.Duration
	// Overtake lets messages that come during the grace overtake those that wait.
	Overtake bool
}

// Check reports a backoff that makes no sense.
func (b Backoff) Check() error {
	switch {
	case b.Policy == nil:
		return errors.New("supervision: a backoff needs a policy")
	case b.On&^OnAny != 0 || b.Reset > ResetManual || b.GiveUp > GiveUpSuspend || b.Meanwhile > MeanwhileReply:
		return errors.New("supervision: an option of the backoff is out of range")
	case b.ResetAfter < 0 || b.MaxFailures < 0 || b.Stash < 0 || b.Grace < 0:
		return errors.New("supervision: an option of the backoff is negative")
	}
	return nil
}

// delays reports whether a restart after such an end is delayed.
func (b *Backoff) delays(on Ends) bool { return b.On == 0 || b.On&on != 0 }

func (b *Backoff) stable(c *Child, now time.Time) bool {
	if b.Reset != ResetAfterStable || c.failures == 0 || c.started.IsZero() {
		return false
	}
	need := b.ResetAfter
	if need <= 0 {
		need = c.delay
	}
	return need > 0 && now.Sub(c.started) >= need
}
