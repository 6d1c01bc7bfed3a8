package supervision

import (
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Plain is what a strategy says about one child, as values that another machine can carry out without asking the parent.
type Plain struct {
	Restarts  int           `cbor:"1,keyasint"`
	Within    time.Duration `cbor:"2,keyasint,omitempty"`
	Sliding   bool          `cbor:"3,keyasint,omitempty"`
	Exceeded  Directive     `cbor:"4,keyasint,omitempty"`
	Rules     []PlainRule   `cbor:"5,keyasint,omitempty"`
	Otherwise Directive     `cbor:"6,keyasint,omitempty"`
	Stopping  bool          `cbor:"7,keyasint,omitempty"`
	Keep      bool          `cbor:"8,keyasint,omitempty"`
	Silent    bool          `cbor:"9,keyasint,omitempty"`
	Delays    *PlainBackoff `cbor:"10,keyasint,omitempty"`
	First     []PlainRule   `cbor:"11,keyasint,omitempty"`
}

// PlainRule is a [Rule].
type PlainRule struct {
	Kinds     []abi.FailureKind `cbor:"1,keyasint,omitempty"`
	Reason    string            `cbor:"2,keyasint,omitempty"`
	Type      string            `cbor:"3,keyasint,omitempty"`
	Directive Directive         `cbor:"4,keyasint"`
}

// PlainBackoff is a [Backoff] whose policy is a [backoff.Spec].
type PlainBackoff struct {
	Curve   string          `cbor:"1,keyasint"`
	Min     time.Duration   `cbor:"2,keyasint,omitempty"`
	Max     time.Duration   `cbor:"3,keyasint,omitempty"`
	Factor  float64         `cbor:"4,keyasint,omitempty"`
	Step    time.Duration   `cbor:"5,keyasint,omitempty"`
	Num     int             `cbor:"6,keyasint,omitempty"`
	Delays  []time.Duration `cbor:"7,keyasint,omitempty"`
	Ceiling int             `cbor:"8,keyasint,omitempty"`
	Stay    bool            `cbor:"9,keyasint,omitempty"`
	Jitter  string          `cbor:"10,keyasint,omitempty"`
	Spread  float64         `cbor:"11,keyasint,omitempty"`
	HardCap bool            `cbor:"12,keyasint,omitempty"`

	On          Ends          `cbor:"13,keyasint,omitempty"`
	Reset       ResetPolicy   `cbor:"14,keyasint,omitempty"`
	ResetAfter  time.Duration `cbor:"15,keyasint,omitempty"`
	MaxFailures int           `cbor:"16,keyasint,omitempty"`
	GiveUp      GiveUp        `cbor:"17,keyasint,omitempty"`
	Meanwhile   Meanwhile     `cbor:"18,keyasint,omitempty"`
	Reply       string        `cbor:"19,keyasint,omitempty"`
	Stash       int           `cbor:"20,keyasint,omitempty"`
	Grace       time.Duration `cbor:"21,keyasint,omitempty"`
	Overtake    bool          `cbor:"22,keyasint,omitempty"`
}

// Bounds of a [Plain].
const (
	MaxPlainRules  = 256
	MaxPlainKinds  = 64
	MaxPlainText   = 1 << 10 // bytes
	MaxPlainDelays = 1 << 10
)

var (
	// ErrAsksParent says that a strategy needs its parent, or what only the parent's machine has, to decide.
	ErrAsksParent = errors.New("supervision: the strategy asks the parent")
	errPlain      = errors.New("supervision: values that are none of a strategy")
)

func asksParent(why string) error { return fmt.Errorf("%w: %s", ErrAsksParent, why) }

// Plain is the strategy as values. The error wraps ErrAsksParent, and says why, if the parent would have to be asked, or its other children
// would be concerned.
func (s Strategy) Plain() (Plain, error) {
	p := Plain{
		Restarts: s.restarts, Within: s.within, Sliding: s.sliding, Exceeded: s.exceeded, Otherwise: s.otherwise, Stopping: s.stopping,
		Keep: s.keep, Silent: s.silent, Rules: plainRules(s.rules), First: plainRules(s.first),
	}
	switch {
	case s.kind != OneForOne:
		return p, asksParent(s.kind.String() + " concerns its other children, too")
	case s.shared:
		return p, asksParent("the window of restarts is shared with its other children")
	case s.decider != nil && !s.stopping:
		return p, asksParent("code of its own decides")
	}
	if s.backoff != nil {
		spec, ok := backoff.SpecOf(s.backoff.Policy)
		if !ok {
			return p, asksParent("code of its own says how long to wait")
		}
		b := s.backoff
		p.Delays = &PlainBackoff{
			spec.Curve, spec.Min, spec.Max, spec.Factor, spec.Step, spec.Num, spec.Delays, spec.Ceiling, spec.Stay, spec.Jitter, spec.Spread, spec.HardCap,
			b.On, b.Reset, b.ResetAfter, b.MaxFailures, b.GiveUp, b.Meanwhile, b.Reply, b.Stash, b.Grace, b.Overtake,
		}
	}
	return p, p.Check()
}

func plainRules(rules []Rule) (all []PlainRule) {
	for _, r := range rules {
		all = append(all, PlainRule(r))
	}
	return all
}

// Check reports values that are none of a strategy, or beyond the bounds, or that ask the parent.
func (p *Plain) Check() error {
	if p.Restarts < Unlimited || p.Within < 0 || p.Exceeded != 0 && p.Exceeded != Stop && p.Exceeded != Escalate || p.Otherwise > Ask ||
		len(p.Rules)+len(p.First) > MaxPlainRules {
		return errPlain
	}
	if p.Otherwise == Ask {
		return asksParent("the parent itself decides about some failures")
	}
	for _, rules := range [][]PlainRule{p.First, p.Rules} {
		for _, r := range rules {
			switch {
			case r.Directive == Ask:
				return asksParent("the parent itself decides about some failures")
			case Rule(r).Check() != nil || len(r.Kinds) > MaxPlainKinds || len(r.Reason) > MaxPlainText || len(r.Type) > MaxPlainText:
				return errPlain
			}
		}
	}
	if b := p.Delays; b != nil && (len(b.Delays) > MaxPlainDelays || len(b.Reply) > MaxPlainText || len(b.Curve) > MaxPlainText || len(b.Jitter) > MaxPlainText) {
		return errPlain
	}
	return nil
}

// Strategy is the strategy that the values are. They are checked.
func (p *Plain) Strategy() (Strategy, error) {
	if err := p.Check(); err != nil {
		return Strategy{}, err
	}
	s := Default()
	if p.Stopping {
		s = Stopping()
	}
	s = s.WithMaxRestarts(p.Restarts, p.Within).WithSliding(p.Sliding).WithExceeded(p.Exceeded).WithOtherwise(p.Otherwise).
		WithKeepChildren(p.Keep).WithSilence(p.Silent).WithRules(rulesOf(p.Rules)...).WithFirst(rulesOf(p.First)...)
	b := p.Delays
	if b == nil {
		return s, nil
	}
	policy, err := backoff.Spec{
		Curve: b.Curve, Min: b.Min, Max: b.Max, Factor: b.Factor, Step: b.Step, Num: b.Num, Delays: b.Delays, Ceiling: b.Ceiling, Stay: b.Stay,
		Jitter: b.Jitter, Spread: b.Spread, HardCap: b.HardCap,
	}.Policy()
	if err != nil {
		return s, err
	}
	delays := Backoff{policy, b.On, b.Reset, b.ResetAfter, b.MaxFailures, b.GiveUp, b.Meanwhile, b.Reply, b.Stash, b.Grace, b.Overtake}
	return s.WithBackoff(delays), delays.Check()
}

func rulesOf(plain []PlainRule) (all []Rule) {
	for _, r := range plain {
		all = append(all, Rule(r))
	}
	return all
}
