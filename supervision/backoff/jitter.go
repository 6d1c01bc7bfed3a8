package backoff

import (
	"math"
	"time"
)

// Jitter spreads a base delay. The zero value does nothing.
type Jitter struct {
	kind   jitterKind
	factor float64
	custom *func(base time.Duration, rnd Rand) time.Duration
}

type jitterKind uint8

const (
	jitterNone jitterKind = iota
	jitterFull
	jitterEqual
	jitterAdditive
	jitterTwoSided
	jitterOperator
	jitterCustom
)

// NoJitter waits exactly the base delay.
func NoJitter() Jitter { return Jitter{} }

// FullJitter is uniform in [0, base) (AWS).
func FullJitter() Jitter { return Jitter{kind: jitterFull} }

// EqualJitter is uniform in [base/2, base) (AWS).
func EqualJitter() Jitter { return Jitter{kind: jitterEqual} }

// AdditiveJitter is base*[1, 1+f), to a nanosecond: Akka's.
func AdditiveJitter(f float64) Jitter { return Jitter{kind: jitterAdditive, factor: f} }

// TwoSidedJitter is base*[1-f, 1+f): that of actor-ts.
func TwoSidedJitter(f float64) Jitter { return Jitter{kind: jitterTwoSided, factor: f} }

// OperatorJitter is base*[0.85, 1.15), uniformly: the range of the RxJava
// operator's default, without the skew of its modulo.
func OperatorJitter() Jitter { return Jitter{kind: jitterOperator} }

// JitterFunc makes a function a jitter. It must be pure and safe for concurrent use: all
// randomness comes from rnd. Negative results count as 0.
func JitterFunc(f func(base time.Duration, rnd Rand) time.Duration) Jitter {
	return Jitter{kind: jitterCustom, custom: &f}
}

func (j Jitter) apply(base time.Duration, rnd Rand) time.Duration {
	if j.factor == 0 && (j.kind == jitterAdditive || j.kind == jitterTwoSided) {
		return base // exact, and nothing is drawn
	}
	switch j.kind {
	case jitterFull:
		return uniform(base, 0, 1, rnd)
	case jitterEqual:
		return uniform(base, 0.5, 0.5, rnd)
	case jitterAdditive:
		return uniform(base, 1, j.factor, rnd)
	case jitterTwoSided:
		return uniform(base, 1-j.factor, 2*j.factor, rnd)
	case jitterOperator:
		return uniform(base, 0.85, 0.3, rnd)
	case jitterCustom:
		return max(0, (*j.custom)(base, rnd))
	}
	return base
}

// uniform is base * [low, low+width). The two parts are added as nanoseconds: the sum
// of the factors would round up to the end that is excluded.
func uniform(base time.Duration, low, width float64, rnd Rand) time.Duration {
	from := saturate(math.Round(float64(base) * low))
	more := saturate(float64(base) * width * rnd.Float64())
	if more > Max-from {
		return Max
	}
	return from + more
}
