// Package backoff computes how long to wait before another attempt.
//
// Everything here is pure: a [Policy] is a value, the caller passes the number
// of the attempt and the randomness. Delays are never negative and never NaN;
// what would overflow saturates at [Max].
package backoff

import (
	"fmt"
	"math"
	"time"
)

// Max is the longest delay there is.
const Max = time.Duration(math.MaxInt64)

// Rand is the randomness that policies draw from; *math/rand/v2.Rand is one.
type Rand interface {
	// Float64 is uniform in [0, 1).
	Float64() float64
	// IntN is uniform in [0, n); n is positive.
	IntN(n int) int
}

// Policy says how long to wait. Implementations are immutable and safe for
// concurrent use.
type Policy interface {
	// Delay before attempt n, counted from 0: the number of failures since the
	// last reset. It draws from rnd only what it needs; negative n count as 0.
	Delay(n int, rnd Rand) time.Duration
}

// Curve is a Policy without randomness: the base that jitter is applied to.
type Curve interface {
	// Base delay before attempt n, counted from 0.
	Base(n int) time.Duration
}

// CurveFunc makes a function a curve. Negative results count as 0.
type CurveFunc func(n int) time.Duration

// Base implements Curve.
func (f CurveFunc) Base(n int) time.Duration { return max(0, f(n)) }

// Policy built of a curve, a cap and a jitter.
type jittered struct {
	curve    Curve
	jitter   Jitter
	limit    time.Duration // 0: none
	capAfter bool          // cap what the jitter made, too
}

// Delay implements Policy.
func (j jittered) Delay(n int, rnd Rand) time.Duration {
	d := j.curve.Base(max(n, 0))
	if j.limit > 0 {
		d = min(d, j.limit)
	}
	d = j.jitter.apply(d, rnd)
	if j.capAfter && j.limit > 0 {
		d = min(d, j.limit)
	}
	return d
}

// WithJitter is the policy of a curve with a jitter, without any further cap.
func WithJitter(c Curve, j Jitter) Policy { return jittered{curve: c, jitter: j} }

// WithCap is WithJitter with base delays cut at limit before the jitter is applied, so that a delay
// may exceed it; with hard set it may not. A limit of 0 means no limit.
func WithCap(c Curve, j Jitter, limit time.Duration, hard bool) Policy {
	return jittered{curve: c, jitter: j, limit: limit, capAfter: hard}
}

// capped cuts the delays of a policy; a limit of 0 means no limit.
type capped struct {
	policy Policy
	limit  time.Duration
}

// Delay implements Policy.
func (c capped) Delay(n int, rnd Rand) time.Duration {
	d := c.policy.Delay(n, rnd)
	if c.limit > 0 {
		d = min(d, c.limit)
	}
	return d
}

// saturate makes nanoseconds a duration: NaN and what is negative is 0, what is too long is Max.
func saturate(ns float64) time.Duration {
	switch {
	case math.IsNaN(ns) || ns <= 0:
		return 0
	case ns >= math.MaxInt64:
		return Max
	}
	return time.Duration(ns)
}

// ParameterError is a parameter that a policy cannot be built with.
type ParameterError struct {
	Name string // of the field of Spec
	Want string // what is allowed
}

func (e *ParameterError) Error() string { return fmt.Sprintf("backoff: %s must be %s", e.Name, e.Want) }

func bad(name, want string) error { return &ParameterError{name, want} }
