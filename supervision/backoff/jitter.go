package backoff

import "time"

// Jitter spreads a base delay. The zero value does nothing.
type Jitter struct {
	kind   jitterKind
	factor float64
}

type jitterKind uint8

const (
	jitterNone jitterKind = iota
	jitterFull
	jitterEqual
	jitterAdditive
	jitterTwoSided
	jitterOperator
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

func (j Jitter) apply(base time.Duration, rnd Rand) time.Duration {
	b := float64(base)
	if j.factor == 0 && (j.kind == jitterAdditive || j.kind == jitterTwoSided) {
		return base // exact, and nothing is drawn
	}
	switch j.kind {
	case jitterFull:
		return saturate(b * rnd.Float64())
	case jitterEqual:
		return saturate(b/2 + b/2*rnd.Float64())
	case jitterAdditive:
		return saturate(b * (1 + j.factor*rnd.Float64()))
	case jitterTwoSided:
		return saturate(b * (1 + j.factor*(2*rnd.Float64()-1)))
	case jitterOperator:
		return saturate(b * (0.85 + 0.3*rnd.Float64()))
	}
	return base
}
