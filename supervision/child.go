package supervision

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// ResetPolicy says when the count of failures that drives the backoff starts
// again.
type ResetPolicy uint8

// The reset policies. They are looked at when a child fails: a start that
// succeeds resets nothing.
const (
	// ResetAfterStable resets if the child has lived for ResetAfter, by default
	// the policy's first delay, since it was last started.
	ResetAfterStable ResetPolicy = iota
	// ResetNever counts for ever.
	ResetNever
	// ResetManual resets when the child is told to, see Child.Reset.
	ResetManual
)

// GiveUp says what happens to a child that has failed too often under backoff.
type GiveUp uint8

// What giving up means.
const (
	GiveUpStop GiveUp = iota
	GiveUpEscalate
)

// Backoff delays the restarts of a child.
type Backoff struct {
	Policy backoff.Policy
	Reset  ResetPolicy
	// ResetAfter is how long the child must have lived under ResetAfterStable;
	// 0 means as long as the delay that it was last given.
	ResetAfter time.Duration
	// MaxFailures gives up at one failure more, counted since the last reset; 0 is
	// no limit.
	MaxFailures int
	GiveUp      GiveUp
}

// Child is what a supervisor remembers of one child. The zero value is a child
// that has never failed. It is not safe for concurrent use.
type Child struct {
	window   window
	failures int       // since the last reset
	total    int       // over its life
	started  time.Time // of the present incarnation
	delay    time.Duration
}

// Started notes that an incarnation has begun to work.
func (c *Child) Started(now time.Time) { c.started = now }

// Reset starts the count of failures again.
func (c *Child) Reset() { c.failures = 0; c.delay = 0 }

// Failures since the last reset.
func (c *Child) Failures() int { return c.failures }

// Total failures over the child's life.
func (c *Child) Total() int { return c.total }

// Decision is what becomes of a failure.
type Decision struct {
	Directive Directive
	Delay     time.Duration // before a Restart
	Failures  int           // of the child since the last reset, this one included
	// Refused says why a restart was turned into something else; empty if it was
	// not.
	Refused string
}

// Failed decides about a failure of c at a time. For all-for-one and
// rest-for-one the host asks [Strategy.Permit] for each other child that a
// restart befalls, and stops all if one is refused.
func (s Strategy) Failed(c *Child, typ string, f *abi.Failure, now time.Time, rnd backoff.Rand) Decision {
	c.total++
	if s.backoff != nil && s.backoff.stable(c, now) {
		c.Reset()
	}
	c.failures++
	d := Decision{Directive: s.Decide(typ, f), Failures: c.failures}
	if d.Directive != Restart {
		return d
	}
	if !s.Permit(c, now) {
		d.Directive = Stop
		d.Refused = "more restarts than allowed"
		return d
	}
	if b := s.backoff; b != nil {
		if b.MaxFailures > 0 && c.failures > b.MaxFailures {
			d.Refused = "failed too often"
			d.Directive = Stop
			if b.GiveUp == GiveUpEscalate {
				d.Directive = Escalate
			}
			return d
		}
		d.Delay = b.Policy.Delay(c.failures-1, rnd)
		c.delay = d.Delay
	}
	return d
}

// Permit asks for one restart of c under the limit of restarts and counts it.
func (s Strategy) Permit(c *Child, now time.Time) bool {
	if s.sliding {
		return c.window.slide(s.restarts, s.within, now)
	}
	return c.window.tumble(s.restarts, s.within, now)
}

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
