// Package supervisor decides about the children of one actor and carries the decisions out
// in terms of orders. What a strategy decides is in the package supervision; here is which children it concerns,
// in which order, and what is done when messages have crossed.
package supervisor

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Child is a child as its supervisor sees it.
type Child interface {
	comparable
	Name() string
	Type() string
	Lifetime() supervision.Lifetime
	Significant() bool
	// StartedAt is when its present incarnation began, the zero time if none has.
	StartedAt() time.Time
}

// Parent is the actor that supervises.
type Parent[C Child] interface {
	State() life.State
	Suspended() int
	Now() time.Time
	Rand() backoff.Rand
	// Order tells a child what to do.
	Order(child C, o Order)
	// Renewed says that n orders of an operator to restart a child are dealt with: the child was told the
	// outcome before this call.
	Renewed(child C, n int32)
	// AskDecision makes the actor itself decide, in a turn of its own; a failure is that
	// of this turn.
	AskDecision(child C, f *abi.Failure) (supervision.Directive, *abi.Failure)
	// Fail fails the actor itself. escalated: the failure is a child's.
	Fail(f *abi.Failure, escalated bool)
	// Quit stops the actor as if it had stopped itself.
	Quit(reason string)
	// Decided says what was decided about a report.
	Decided(child C, r *Report, o Outcome)
	// Was is what was decided about a child when this was recorded; false if nothing is repeated, or nothing of it is known.
	Was(child C) (Verdict, bool)
	// Note has a decision about a child recorded, before it is carried out.
	Note(child C, v Verdict)
	// Again delivers a report of a child once more, as if it had just come.
	Again(child C, r Report)
}

// Report is what a child reports when it waits for a decision.
type Report struct {
	Ref       abi.Ref
	Failure   *abi.Failure
	Ended     bool                  // a permanent child has stopped itself; Reason is why
	Reason    string                // why it cannot be resumed; empty if it can
	Orders    uint64                // those that it had carried out
	Directive supervision.Directive // if it was decided already; 0: not
	Again     bool                  // the attempt to resume it has failed
	Escalated bool                  // the failure is one of its own children's
	Crowded   bool                  // its start was refused because there is no room
	Detail    any                   // for the caller that publishes the decision
}

// Outcome is what was decided.
type Outcome struct {
	supervision.Decision
	Note string // why the directive is not the strategy's, empty if it is
	At   time.Time
}

// Verdict is a decision in all that depends on the strategy, as it is recorded. One about a report has a directive.
type Verdict struct {
	Chosen    supervision.Directive // before limits; Ask: the actor could not be asked yet; 0: the child has stopped itself
	Directive supervision.Directive
	Delay     time.Duration
	Group     supervision.Kind
	Alone     bool
	Keep      bool
	Asked     bool // only of what is repeated: the actor was asked, in a turn
	Quits     bool // about the end of a significant child: the actor stops, too
}

// OrderKind is what a child is to do.
type OrderKind uint8

// The orders.
const (
	Resume  OrderKind = iota + 1 // go on as it was
	Restart                      // end the incarnation, and begin another
	Begin                        // begin the incarnation that a restart has held back
	Stop                         // stop for good
)

// Order is what a supervisor tells a child.
type Order struct {
	Kind     OrderKind
	Failure  *abi.Failure  // Restart: why
	Delay    time.Duration // Restart: before the next incarnation
	Keep     bool          // Restart: its children stay
	Hold     bool          // Restart: say that the incarnation has ended, and wait for Begin
	Now      bool          // Restart: a delay under way ends
	Reason   string        // Stop: why
	ByItself bool          // Stop: the end follows from the child's own failure or stop
	Renewal  any           // Restart: what it changes of the child, nil: nothing
}

// Supervisor is the part of an actor that looks after its children. Only the actor's own
// run may use it, except Family, which is for any goroutine.
type Supervisor[C Child] struct {
	Family family.Family[C]

	strategy  *supervision.Strategy
	group     supervision.Group
	undecided []undecided[C]    // until the actor goes on
	escalated *family.Member[C] // the child whose failure was escalated, nil if there is none
	sequence  *sequence[C]      // a restart in order that is under way
	one       [1]*family.Member[C]
}

// undecided is a report that waits for the actor to go on.
type undecided[C Child] struct {
	of *family.Member[C]
	Report
}

// Init sets how children are treated; the strategy must not change.
func (s *Supervisor[C]) Init(strategy *supervision.Strategy) { s.strategy = strategy }

// Strategy is how children are treated.
func (s *Supervisor[C]) Strategy() *supervision.Strategy { return s.strategy }

// Undecided is the number of children that wait until the actor goes on.
func (s *Supervisor[C]) Undecided() int { return len(s.undecided) }

// EndIncarnation forgets what belongs to the actor's present incarnation.
func (s *Supervisor[C]) EndIncarnation() {
	s.group, s.escalated, s.sequence = supervision.Group{}, nil, nil
}

// Close forgets everything but the children.
func (s *Supervisor[C]) Close() { s.undecided, s.escalated, s.sequence = nil, nil, nil }

// Escalated returns, and forgets, the child whose failure was escalated; nil if there is none, or no longer.
func (s *Supervisor[C]) Escalated() *family.Member[C] {
	m := s.escalated
	s.escalated = nil
	return m
}

// Reconsider decides about reports that have waited for the actor to go on.
func (s *Supervisor[C]) Reconsider(p Parent[C]) {
	if p.State() != life.Running {
		return
	}
	waiting := s.undecided
	s.undecided = nil
	for _, r := range waiting {
		p.Again(r.of.Child, r.Report)
	}
}

// Order tells a child what to do; the child is then no longer left suspended.
func (s *Supervisor[C]) Order(p Parent[C], m *family.Member[C], o Order) {
	m.Orders++
	m.Suspended = false
	p.Order(m.Child, o)
	if n := m.Renewals; n > 0 && (o.Kind == Restart || o.Kind == Stop) {
		m.Renewals = 0
		p.Renewed(m.Child, n)
	}
}

// concerns reports whether a report about a child must be decided about now. A
// report that was overtaken by an order under way is only published; one that comes while the actor
// has failed itself, or waits for its own restart, is decided when it goes on.
func (s *Supervisor[C]) concerns(p Parent[C], r *Report, m *family.Member[C]) bool {
	switch {
	case !s.Family.Has(m):
		return false
	case p.State().Ending():
		nothingDecided(p, m.Child, r, "its supervisor stops")
		return false
	case r.Orders != m.Orders || s.sequence.willEnd(m):
		nothingDecided(p, m.Child, r, "an order of its supervisor was under way")
		return false
	}
	if p.State() != life.Running {
		s.wait(m, r)
		return false
	}
	return true
}

func (s *Supervisor[C]) wait(m *family.Member[C], r *Report) {
	s.undecided = append(s.undecided, undecided[C]{m, *r})
}

// nothingDecided publishes a failure about which nothing is decided, unless it was published before.
func nothingDecided[C Child](p Parent[C], child C, r *Report, why string) {
	if !r.Ended && !r.Again {
		p.Decided(child, r, Outcome{Note: "nothing was decided: " + why, At: p.Now()})
	}
}

// Stop publishes the failures that waited for the actor to go on: it does not go on.
func (s *Supervisor[C]) Stop(p Parent[C]) {
	for i := range s.undecided {
		if r := &s.undecided[i]; s.Family.Has(r.of) {
			nothingDecided(p, r.of.Child, &r.Report, "its supervisor stops")
		}
	}
	s.undecided = nil
}

// Report decides about a child that waits for a decision.
func (s *Supervisor[C]) Report(p Parent[C], m *family.Member[C], r *Report) {
	if !s.concerns(p, r, m) {
		return
	}
	child := m.Child
	was, _ := p.Was(child)
	if r.Ended {
		now := look(p, m)
		d := s.strategy.Stopped(&m.Record, &s.group, child.Lifetime(), now, p.Rand())
		r.Failure = &abi.Failure{Kind: abi.FailureExit, Reason: "a permanent actor has ended: " + r.Reason}
		s.carryOut(p, m, r, 0, d, "", now, was)
		return
	}
	directive := r.Directive
	if directive == 0 {
		directive = s.strategy.Decide(child.Type(), r.Failure)
	}
	if was.Asked && r.Directive == 0 {
		directive = supervision.Ask
	} else if was.Chosen != 0 {
		directive = was.Chosen
	}
	if directive == supervision.Ask {
		if p.Suspended() > 0 {
			p.Note(child, Verdict{Chosen: supervision.Ask})
			s.wait(m, r)
			return
		}
		if directive = s.ask(p, m, r); directive == 0 {
			return
		}
	}
	if r.Again {
		m.Record.Recall()
	}
	note := ""
	if r.Reason != "" && (r.Again || directive == supervision.Resume) {
		directive, note = supervision.Restart, "resume is not possible, restarting: "+r.Reason
	}
	now := look(p, m)
	d := s.strategy.Directed(directive, &m.Record, &s.group, child.Lifetime(), now, p.Rand())
	if r.Crowded {
		if d = s.strategy.Crowded(&m.Record, d, p.Rand()); d.Directive == supervision.Restart {
			note = "there is no room, trying again later"
		}
	}
	s.carryOut(p, m, r, directive, d, note, now, was)
}

// ask makes the actor itself decide. If it does not, the default decider does,
// also if its turn fails: then when the actor goes on, and the result is 0.
func (s *Supervisor[C]) ask(p Parent[C], m *family.Member[C], r *Report) supervision.Directive {
	d, failure := p.AskDecision(m.Child, r.Failure)
	if failure != nil || d < supervision.Resume || d > supervision.Suspend {
		d = supervision.DefaultDirective(r.Failure.Kind)
	}
	if failure != nil {
		r.Directive = d
		s.wait(m, r)
		p.Fail(failure, false)
		return 0
	}
	return d
}

// look brings the record of a child up to date and returns the time.
func look[C Child](p Parent[C], m *family.Member[C]) time.Time {
	if at := m.Child.StartedAt(); !at.IsZero() {
		m.Record.Started(at)
	}
	return p.Now()
}

const withSibling = "stopped with a sibling that failed"

// carryOut does what was decided about a child: now, or when that was recorded. Then the present strategy counts the failure, and nothing
// else.
func (s *Supervisor[C]) carryOut(p Parent[C], m *family.Member[C], r *Report, chosen supervision.Directive, d supervision.Decision, note string, now time.Time, was Verdict) {
	v := Verdict{Chosen: chosen, Group: s.strategy.Kind(), Alone: d.Alone, Keep: s.strategy.KeepChildren()}
	if was.Directive != 0 {
		v = was
	}
	members := s.alone(m)
	if !v.Alone {
		members = s.concerned(m, v.Group)
	}
	if d.Directive == supervision.Restart && !s.permitted(m, members, now) {
		d.Directive, d.Delay, d.Refused = s.strategy.Exceeded(), 0, "more restarts of a sibling than allowed"
	}
	if d.Refused != "" {
		note = d.Refused
	}
	if was.Directive != 0 {
		d.Directive, d.Delay, d.Alone = v.Directive, v.Delay, v.Alone
	} else {
		v.Directive, v.Delay = d.Directive, d.Delay
		p.Note(m.Child, v)
	}
	p.Decided(m.Child, r, Outcome{d, note, now})
	switch d.Directive {
	case supervision.Resume:
		s.Order(p, m, Order{Kind: Resume})
	case supervision.Restart:
		o := Order{Kind: Restart, Failure: r.Failure, Delay: d.Delay, Keep: v.Keep}
		if v.Group == supervision.RestForOne && (len(members) > 1 || s.sequence != nil) {
			s.restartInOrder(p, m, members, o)
			return
		}
		for _, k := range members {
			s.Order(p, k, restartOf(k, m, o))
		}
	case supervision.Stop:
		for _, k := range members {
			o := Order{Kind: Stop, Reason: withSibling}
			if k == m {
				o.Reason, o.ByItself = "failed: "+r.Failure.Error(), true
			}
			s.Order(p, k, o)
		}
	case supervision.Escalate:
		s.escalated = m
		p.Fail(r.Failure, true)
	case supervision.Suspend:
		m.Suspended = true // see Decide
	}
	s.one[0] = nil
}

// permitted checks the restart limit of each child in the group. The failed one was checked before; temporary children need
// no permission.
func (s *Supervisor[C]) permitted(failed *family.Member[C], group []*family.Member[C], now time.Time) bool {
	for _, k := range group {
		if k != failed && k.Child.Lifetime() != supervision.Temporary && !s.strategy.Permit(&k.Record, now) {
			return false
		}
	}
	return true
}

// restartOf returns the order for one child when a failed child is restarted with its siblings: a temporary sibling stops
// instead.
func restartOf[C Child](k, failed *family.Member[C], o Order) Order {
	if k != failed && k.Child.Lifetime() == supervision.Temporary {
		return Order{Kind: Stop, Reason: withSibling}
	}
	return o
}

// concerned returns the children that a directive about m applies to, m included, in the order in which they were started.
func (s *Supervisor[C]) concerned(m *family.Member[C], group supervision.Kind) []*family.Member[C] {
	if group == supervision.OneForOne {
		return s.alone(m)
	}
	all := s.Family.Members()
	if group == supervision.AllForOne {
		return all
	}
	for i, k := range all {
		if k == m {
			return all[i:]
		}
	}
	return s.alone(m)
}

// alone returns a slice with m only. Under one-for-one the slice is valid until the next call.
func (s *Supervisor[C]) alone(m *family.Member[C]) []*family.Member[C] {
	if s.strategy.Kind() != supervision.OneForOne {
		return []*family.Member[C]{m}
	}
	s.one[0] = m
	return s.one[:]
}

// Decide carries out an operator's decision about a child that was left suspended; it
// has no effect on any other.
func (s *Supervisor[C]) Decide(p Parent[C], m *family.Member[C], d supervision.Directive) {
	if !m.Suspended || !s.Family.Has(m) || p.State().Ending() {
		return
	}
	switch d {
	case supervision.Resume:
		s.Order(p, m, Order{Kind: Resume})
	case supervision.Restart:
		// If a restart in order waits for this child, the child reports when it has begun.
		s.Order(p, m, Order{Kind: Restart, Keep: s.strategy.KeepChildren(), Hold: s.sequence.waitsFor(m)})
	case supervision.Stop:
		s.Order(p, m, Order{Kind: Stop, Reason: "stopped after a failure"})
	}
}

// Renew restarts a child because n orders of an operator ask for it, at once and alone, and counts that in
// no window. If a restart in order is about to reach the child, that restarts it, unless
// there is a renewal: something that changes with the restart. Then failures are counted anew.
// Parent.Renewed is called when the child was told.
func (s *Supervisor[C]) Renew(p Parent[C], m *family.Member[C], why *abi.Failure, renewal any, n int32) {
	switch {
	case !s.Family.Has(m) || p.State().Ending():
	case renewal == nil && s.sequence.willEnd(m):
		m.Renewals += n // until then it gets no messages: they are for the next incarnation
		return
	case renewal == nil && s.sequence.holds(m):
	default:
		if renewal != nil {
			m.Record.Reset()
		}
		s.Order(p, m, Order{Kind: Restart, Failure: why, Keep: s.strategy.KeepChildren(), Hold: s.sequence.keeps(m), Now: true, Renewal: renewal})
	}
	p.Renewed(m.Child, n)
}

// Look is what is noted about a child, as it stands now.
func (s *Supervisor[C]) Look(m *family.Member[C], now time.Time) (r supervision.Record, left, ok bool) {
	if !s.Family.Has(m) {
		return r, false, false
	}
	noted := m.Record
	if at := m.Child.StartedAt(); !at.IsZero() {
		noted.Started(at)
	}
	return s.strategy.Look(&noted, &s.group, now), m.Suspended, true
}

// ResetBackoff counts the failures of a child anew.
func (s *Supervisor[C]) ResetBackoff(m *family.Member[C]) {
	if s.Family.Has(m) {
		m.Record.Reset()
	}
}

// Stopped removes a child that has stopped; byItself: by its own stop or failure, not by an order.
// It returns how many are left.
func (s *Supervisor[C]) Stopped(p Parent[C], m *family.Member[C], byItself bool) (left int) {
	was, left := s.Family.Remove(m)
	if !was {
		return left
	}
	if s.escalated == m {
		s.escalated = nil
	}
	s.goOn(p, m)
	if byItself {
		s.significantEnded(p, m.Child)
	}
	return left
}

// significantEnded stops a supervisor whose significant children have ended, if that is
// its strategy. The child is no longer among the children.
func (s *Supervisor[C]) significantEnded(p Parent[C], child C) {
	if p.State() != life.Running {
		return
	}
	was, repeated := p.Was(child)
	if !repeated {
		was.Quits = child.Significant() && s.ends()
		p.Note(child, was) // also if it does not count: it may at the next start
	}
	if !was.Quits {
		return
	}
	p.Quit("its significant child " + child.Name() + " has ended")
}

// ends reports whether a supervisor stops now that a significant child has ended.
func (s *Supervisor[C]) ends() bool {
	switch s.strategy.Shutdown() {
	case supervision.ShutdownNever:
		return false
	case supervision.ShutdownAll:
		for _, k := range s.Family.Children() {
			if k.Significant() {
				return false
			}
		}
	}
	return true
}
