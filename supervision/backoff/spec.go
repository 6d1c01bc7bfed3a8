package backoff

import (
	"math"
	"slices"
	"time"
)

// Spec describes a policy by name, as manifests do. Fields that the curve does
// not use are ignored, except that the curves that are random themselves,
// slotted and decorrelated, refuse a jitter.
type Spec struct {
	Curve  string          // see Curves; "" means exponential
	Min    time.Duration   // first delay, or the unit
	Max    time.Duration   // largest base delay; slotted, table: 0 is none
	Factor float64         // exponential: default 2
	Step   time.Duration   // linear: default Min
	Num    int             // zaqar-*: number of steps
	Delays []time.Duration // table
	// Ceiling and Stay are those of the slotted curve.
	Ceiling int
	Stay    bool
	// Jitter is one of Jitters; "" means two-sided where Spread is set, else none.
	Jitter string
	Spread float64 // f of additive and two-sided, in [0, 1]
	// HardCap cuts delays at Max after the jitter, too.
	HardCap bool
	// OwnCurve and OwnJitter are used instead of Curve and Jitter, which are then names that say nothing here; nil: they
	// are not.
	OwnCurve  Curve
	OwnJitter *Jitter
}

// Curves are the names of the curves.
func Curves() []string {
	return []string{"exponential", "constant", "linear", "quadratic", "fibonacci", "zaqar-linear", "zaqar-linear-reach",
		"zaqar-arithmetic", "zaqar-geometric", "zaqar-exponential", "slotted", "decorrelated", "table"}
}

// Jitters are the names of the jitters.
func Jitters() []string {
	return []string{"none", "full", "equal", "additive", "two-sided", "operator"}
}

// specified is a policy that knows what it was built from.
type specified struct {
	Policy
	spec *Spec
}

// SpecOf is what a policy was built from; false if it was not built by [Spec.Policy], or from code.
func SpecOf(p Policy) (Spec, bool) {
	x, ok := p.(specified)
	if !ok || x.spec.OwnCurve != nil || x.spec.OwnJitter != nil {
		return Spec{}, false
	}
	s := *x.spec
	s.Delays = slices.Clone(s.Delays)
	return s, true
}

// Policy builds what s describes. The error is a *ParameterError.
func (s Spec) Policy() (Policy, error) {
	p, err := s.policy()
	if err != nil {
		return nil, err
	}
	s.Delays = slices.Clone(s.Delays)
	return specified{p, &s}, nil
}

func (s Spec) policy() (Policy, error) {
	if s.Curve == "" {
		s.Curve = "exponential"
	}
	if s.OwnCurve == nil && s.Curve == "table" {
		return s.table()
	}
	if s.Min <= 0 {
		return nil, bad("min", "a positive duration")
	}
	if s.Curve == "constant" && s.Max == 0 {
		s.Max = s.Min
	}
	jitter, err := s.jitter()
	switch {
	case err != nil:
		return nil, err
	case (s.Curve == "slotted" || s.Curve == "decorrelated") && jitter != NoJitter() && jitter != TwoSidedJitter(0):
		return nil, bad("jitter", "none: the curve "+s.Curve+" is random itself")
	case s.Curve == "slotted" && s.Ceiling < 1:
		return nil, bad("ceiling", "at least 1")
	case s.Max < s.Min && (s.Curve != "slotted" || s.Max != 0):
		return nil, bad("max", "at least min")
	case s.Curve == "slotted":
		return capped{Slotted{Slot: s.Min, Ceiling: s.Ceiling, Stay: s.Stay}, s.Max}, nil
	case s.Curve == "decorrelated":
		return Decorrelated(s.Min, s.Max), nil
	}
	curve, err := s.curve()
	if err != nil {
		return nil, err
	}
	return WithCap(curve, jitter, s.Max, s.HardCap), nil
}

func (s Spec) table() (Policy, error) {
	if len(s.Delays) == 0 {
		return nil, bad("delays", "a list of at least one duration")
	}
	for _, d := range s.Delays {
		if d < 0 {
			return nil, bad("delays", "durations that are not negative")
		}
	}
	jitter, err := s.jitter()
	return WithCap(Table(s.Delays...), jitter, max(s.Max, 0), s.HardCap), err
}

func (s Spec) curve() (Curve, error) {
	if s.OwnCurve != nil {
		return s.OwnCurve, nil
	}
	switch s.Curve {
	case "exponential":
		if s.Factor == 0 {
			s.Factor = 2
		}
		if !(s.Factor >= 1 && s.Factor <= math.MaxFloat64) { // NaN is refused, too
			return nil, bad("factor", "a number of at least 1")
		}
		return Exponential(s.Min, s.Max, s.Factor), nil
	case "constant":
		return Constant(s.Min), nil
	case "linear":
		if s.Step < 0 {
			return nil, bad("step", "a duration that is not negative")
		}
		if s.Step == 0 {
			s.Step = s.Min
		}
		return Linear(s.Min, s.Max, s.Step), nil
	case "quadratic":
		return Quadratic(s.Min, s.Max), nil
	case "fibonacci":
		return Fibonacci(s.Min, s.Max), nil
	}
	if s.Num < 1 {
		return nil, bad("num", "at least 1")
	}
	switch s.Curve {
	case "zaqar-linear":
		return ZaqarLinear(s.Min, s.Max, s.Num, false), nil
	case "zaqar-linear-reach":
		return ZaqarLinear(s.Min, s.Max, s.Num, true), nil
	case "zaqar-arithmetic":
		return ZaqarArithmetic(s.Min, s.Max, s.Num), nil
	case "zaqar-geometric":
		return ZaqarGeometric(s.Min, s.Max, s.Num), nil
	case "zaqar-exponential":
		return ZaqarExponential(s.Min, s.Max, s.Num), nil
	}
	return nil, bad("curve", "one of the known curves")
}

func (s Spec) jitter() (Jitter, error) {
	if s.OwnJitter != nil {
		return *s.OwnJitter, nil
	}
	if !(s.Spread >= 0 && s.Spread <= 1) { // NaN is refused, too
		return Jitter{}, bad("spread", "a number from 0 to 1")
	}
	switch s.Jitter {
	case "":
		return TwoSidedJitter(s.Spread), nil
	case "none":
		return NoJitter(), nil
	case "full":
		return FullJitter(), nil
	case "equal":
		return EqualJitter(), nil
	case "additive":
		return AdditiveJitter(s.Spread), nil
	case "two-sided":
		return TwoSidedJitter(s.Spread), nil
	case "operator":
		return OperatorJitter(), nil
	}
	return Jitter{}, bad("jitter", "one of the known jitters")
}
