package supervision

import (
	"errors"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Kind says which other children a directive applies to.
type Kind uint8

// The kinds of strategy.
const (
	OneForOne  Kind = iota // no others
	AllForOne              // all its siblings
	RestForOne             // the siblings that were started after it
)

var kindNames = [...]string{"one-for-one", "all-for-one", "rest-for-one"}

// String is the name that manifests use.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Kinds are the names of the kinds.
func Kinds() []string { return slices.Clone(kindNames[:]) }

// ParseKind is the inverse of String.
func ParseKind(name string) (Kind, bool) {
	i := slices.Index(kindNames[:], name)
	return Kind(max(i, 0)), i >= 0
}

// Rule decides about the failures that it matches: all of its conditions that
// are set must hold.
type Rule struct {
	Kinds     []abi.FailureKind // any of these; none set: any kind
	Reason    string            // a glob ('*' any run, '?' any byte) on the reason or on the message
	Type      string            // a glob on the failed actor's type
	Directive Directive
}

// Matches reports whether the rule applies.
func (r Rule) Matches(typ string, f *abi.Failure) bool {
	if len(r.Kinds) > 0 && !slices.Contains(r.Kinds, f.Kind) {
		return false
	}
	if r.Type != "" && !glob.Match(r.Type, typ) {
		return false
	}
	return r.Reason == "" || glob.Match(r.Reason, f.Reason) || glob.Match(r.Reason, f.Message)
}

// Check reports a rule that decides nothing.
func (r Rule) Check() error {
	if r.Directive < Resume || r.Directive > Ask {
		return errors.New("supervision: a rule needs a directive")
	}
	return nil
}

// Unlimited is the number of restarts that is no limit.
const Unlimited = -1

// Strategy is how a supervisor treats its children. It is immutable and safe for
// concurrent use; the zero value is not a strategy, use [Default].
type Strategy struct {
	kind      Kind
	restarts  int
	within    time.Duration
	sliding   bool
	shared    bool
	exceeded  Directive // 0: stop, or escalate if the window is shared
	shutdown  Shutdown
	first     []Rule
	rules     []Rule
	otherwise Directive // 0: the default decider; escalate where there are rules
	decider   func(typ string, f *abi.Failure) Directive
	stopping  bool // the decider is Stopping's
	backoff   *Backoff
	keep      bool
	silent    bool
}

// Default is one-for-one with unlimited restarts at once and the default decider.
func Default() Strategy { return Strategy{restarts: Unlimited} }

// Stopping stops every child that fails; bugs of the host escalate.
func Stopping() Strategy {
	s := Default()
	s.stopping = true
	s.decider = func(_ string, f *abi.Failure) Directive {
		if f.Kind == abi.FailureHost {
			return Escalate
		}
		return Stop
	}
	return s
}

// WithKind sets which children directives concern.
func (s Strategy) WithKind(k Kind) Strategy { s.kind = k; return s }

// WithMaxRestarts allows n restarts of a child in a window of time, or in its
// life if within is 0; one more failure stops it. n may be Unlimited. The window
// tumbles, like Akka's; see [Strategy.WithSliding].
func (s Strategy) WithMaxRestarts(n int, within time.Duration) Strategy {
	s.restarts, s.within = max(n, Unlimited), max(within, 0)
	return s
}

// WithSliding makes the window slide, like OTP's: never more than n restarts
// in any span of that length.
func (s Strategy) WithSliding(on bool) Strategy { s.sliding = on; return s }

// WithShared makes one window for all children, like OTP's intensity: with one restart
// more than allowed the supervisor itself fails, unless
// [Strategy.WithExceeded] says otherwise.
func (s Strategy) WithShared(on bool) Strategy { s.shared = on; return s }

// WithExceeded sets what to do instead of a restart that the limit forbids: Stop or
// Escalate. 0 is the default: Stop, and Escalate with a shared window.
func (s Strategy) WithExceeded(d Directive) Strategy { s.exceeded = d; return s }

// WithShutdown stops the supervisor when significant children end by themselves.
func (s Strategy) WithShutdown(w Shutdown) Strategy { s.shutdown = w; return s }

// WithRules decides by the first rule that matches. A failure that none covers
// escalates, unless [Strategy.WithOtherwise] says otherwise.
func (s Strategy) WithRules(rules ...Rule) Strategy { s.rules = slices.Clone(rules); return s }

// WithFirst decides about some failures before the rules, without an effect on all others: the default decider stays if there are no
// rules. It is for failures that whoever runs the children causes.
func (s Strategy) WithFirst(rules ...Rule) Strategy { s.first = slices.Clone(rules); return s }

// WithOtherwise decides about failures that no rule covers.
func (s Strategy) WithOtherwise(d Directive) Strategy { s.otherwise = d; return s }

// WithDecider decides about failures that no rule covers by a function, which must be pure.
// The result 0 means that the function does not cover the failure.
func (s Strategy) WithDecider(f func(typ string, failure *abi.Failure) Directive) Strategy {
	s.decider, s.stopping = f, false
	return s
}

// WithBackoff delays restarts.
func (s Strategy) WithBackoff(b Backoff) Strategy { s.backoff = &b; return s }

// WithKeepChildren makes a restart keep the children of the actor that failed:
// they are restarted with it instead of stopped.
func (s Strategy) WithKeepChildren(on bool) Strategy { s.keep = on; return s }

// WithSilence keeps failures out of the log; events are not affected.
func (s Strategy) WithSilence(on bool) Strategy { s.silent = on; return s }

// Kind is which children directives concern.
func (s Strategy) Kind() Kind { return s.kind }

// MaxRestarts is the limit and its window; 0 stands for the child's life.
func (s Strategy) MaxRestarts() (n int, within time.Duration) { return s.restarts, s.within }

// Sliding reports whether the window slides.
func (s Strategy) Sliding() bool { return s.sliding }

// Shared reports whether the window is one for all children.
func (s Strategy) Shared() bool { return s.shared }

// Exceeded is what is done instead of a restart that the limit forbids.
func (s Strategy) Exceeded() Directive {
	switch {
	case s.exceeded != 0:
		return s.exceeded
	case s.shared:
		return Escalate
	}
	return Stop
}

// Shutdown says when the end of significant children stops the supervisor.
func (s Strategy) Shutdown() Shutdown { return s.shutdown }

// Backoff is the policy of delays, if there is one.
func (s Strategy) Backoff() (Backoff, bool) {
	if s.backoff == nil {
		return Backoff{}, false
	}
	return *s.backoff, true
}

// KeepChildren reports whether a restart keeps the children.
func (s Strategy) KeepChildren() bool { return s.keep }

// Silent reports whether failures are kept out of the log.
func (s Strategy) Silent() bool { return s.silent }

// Rules are the rules, in order.
func (s Strategy) Rules() []Rule { return slices.Clone(s.rules) }

// Decide is the directive for a failure, before the limit of restarts.
func (s Strategy) Decide(typ string, f *abi.Failure) Directive {
	for _, r := range s.first {
		if r.Matches(typ, f) {
			return r.Directive
		}
	}
	for _, r := range s.rules {
		if r.Matches(typ, f) {
			return r.Directive
		}
	}
	if s.decider != nil {
		if d := s.decider(typ, f); d != 0 {
			return d
		}
	}
	switch {
	case s.otherwise != 0:
		return s.otherwise
	case len(s.rules) > 0 || s.decider != nil:
		return Escalate
	}
	return DefaultDirective(f.Kind)
}

// CanResume reports whether any failure of a child may be answered with Resume, also
// by an actor that is asked or an operator that decides about a suspended child: only then
// must actors pay for what it needs.
func (s Strategy) CanResume() bool {
	may := func(d Directive) bool { return d == Resume || d == Ask || d == Suspend }
	return s.decider != nil && !s.stopping || may(s.otherwise) ||
		slices.ContainsFunc(s.rules, func(r Rule) bool { return may(r.Directive) })
}
