package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// adopts reports whether child is (still) one of c's, and c in a state to decide. A
// child that is not ignores whatever is decided.
func (c *cell) adopts(child *cell) bool {
	return c.state != stateStopping && c.state != stateStopped && c.child(child.name()) == child
}

// concerns reports whether c is to decide now about a child that waits for it. A
// decision that an order under way has overtaken is none; one that comes while c has
// failed itself, or waits for its own restart, is made when c goes on.
func (c *cell) concerns(m *sysMsg) bool {
	if !c.adopts(m.child) || m.obeyed != m.child.orders {
		return false
	}
	if c.state != stateRunning {
		c.undecided = append(c.undecided, *m)
		return false
	}
	return true
}

// reconsider decides what has waited for the actor to go on.
func (c *cell) reconsider(scr *scratch) {
	if c.state != stateRunning {
		return
	}
	for _, m := range c.undecided {
		c.post(scr, m)
	}
	c.undecided = nil
}

// give tells a child what was decided.
func (c *cell) give(scr *scratch, child *cell, m sysMsg) {
	m.order, child.suspended = true, false
	child.orders++
	child.post(scr, m)
}

// childFailed decides about a child that waits for it.
func (c *cell) childFailed(scr *scratch, m *sysMsg) {
	if !c.concerns(m) {
		return
	}
	child := m.child
	directive := m.directive
	if directive == 0 {
		directive = c.props.strategy.Decide(child.props.typ, m.failure)
	}
	if directive == supervision.Ask {
		if c.suspends > 0 {
			c.undecided = append(c.undecided, *m)
			return
		}
		if directive = c.ask(scr, m); directive == 0 {
			return
		}
	}
	if m.again {
		child.record.Recall()
	}
	note := ""
	if m.reason != "" && (m.again || directive == supervision.Resume) {
		directive, note = supervision.Restart, "resume is not possible, restarting: "+m.reason
	}
	now := c.look(child)
	d := c.props.strategy.Directed(directive, &child.record, &c.group, child.props.life, now, c.random())
	c.carryOut(scr, m, d, note, now)
}

// childEnded decides about a permanent child that has stopped itself.
func (c *cell) childEnded(scr *scratch, m *sysMsg) {
	if !c.concerns(m) {
		return
	}
	child := m.child
	now := c.look(child)
	d := c.props.strategy.Stopped(&child.record, &c.group, child.props.life, now, c.random())
	m.failure = &abi.Failure{Kind: abi.FailureExit, Reason: "a permanent actor has ended: " + m.reason}
	c.carryOut(scr, m, d, "", now)
}

// look brings the record of a child up to date and returns the time.
func (c *cell) look(child *cell) time.Time {
	if at := child.startedAt.Load(); at != 0 {
		child.record.Started(time.Unix(0, at))
	}
	return c.sys.cfg.clock.Now()
}

// carryOut does what was decided about a child.
func (c *cell) carryOut(scr *scratch, m *sysMsg, d supervision.Decision, note string, now time.Time) {
	s, child, f := c.props.strategy, m.child, m.failure
	befalls := []*cell{child}
	if !d.Alone {
		befalls = c.befallen(s.Kind(), child)
	}
	if d.Directive == supervision.Restart {
		for _, k := range befalls {
			if k != child && k.props.restarts() && !s.Permit(&k.record, now) {
				d.Directive, d.Delay, d.Refused = s.Exceeded(), 0, "more restarts of a sibling than allowed"
				break
			}
		}
	}
	if d.Refused != "" {
		note = d.Refused
	}
	if !m.again {
		c.sys.crashes.Add(1)
	}
	c.sys.failed(child, f, d, note, now, m.mail)
	switch d.Directive {
	case supervision.Resume:
		c.give(scr, child, sysMsg{kind: sysResume})
	case supervision.Restart:
		for _, k := range befalls {
			order := sysMsg{kind: sysRestart, failure: f, delay: d.Delay, keep: s.KeepChildren()}
			if !k.props.restarts() && k != child {
				order = sysMsg{kind: sysStop, reason: "stopped with a sibling that failed"} // temporary
			}
			c.give(scr, k, order)
		}
	case supervision.Stop:
		for _, k := range befalls {
			reason := "failed: " + f.Error()
			if k != child {
				reason = "stopped with a sibling that failed"
			}
			c.give(scr, k, sysMsg{kind: sysStop, reason: reason, own: k == child})
		}
	case supervision.Escalate:
		c.culprit, c.relayed = child, true
		c.fail(scr, f)
	case supervision.Suspend:
		child.suspended = true // see System.Decide
	}
}

// befallen is whom a directive about child concerns, child included, in the order
// in which they were started.
func (c *cell) befallen(kind supervision.Kind, child *cell) []*cell {
	if kind == supervision.OneForOne {
		return []*cell{child}
	}
	kids := c.kids()
	if kind == supervision.AllForOne {
		return kids
	}
	for i, k := range kids {
		if k == child {
			return kids[i:]
		}
	}
	return []*cell{child}
}

// Decide is an operator's decision about an actor that its supervisor has left
// suspended (see supervision.Suspend): Resume, Restart or Stop. It has no effect on
// any other.
func (s *System) Decide(ref Ref, d supervision.Directive) error {
	if d != supervision.Resume && d != supervision.Restart && d != supervision.Stop {
		return ErrBadDirective
	}
	c := s.table.get(ref.uid)
	if c == nil || c.parent == nil || !c.parent.post(nil, sysMsg{kind: sysDecide, child: c, directive: d}) {
		return ErrUnknown
	}
	return nil
}

// decided carries an operator's decision out.
func (c *cell) decided(scr *scratch, child *cell, d supervision.Directive) {
	if !c.adopts(child) || !child.suspended {
		return
	}
	m := sysMsg{kind: sysResume}
	switch d {
	case supervision.Restart:
		m = sysMsg{kind: sysRestart, keep: c.props.strategy.KeepChildren()}
	case supervision.Stop:
		m = sysMsg{kind: sysStop, reason: "stopped after a failure"}
	}
	c.give(scr, child, m)
}

// ResetBackoff makes the supervisor of an actor count its failures from the
// beginning again, under the reset policy "manual" or any other.
func (s *System) ResetBackoff(ref Ref) error {
	c := s.table.get(ref.uid)
	if c == nil || c.parent == nil {
		return ErrUnknown
	}
	c.resetBackoff(nil)
	return nil
}

func (c *cell) resetBackoff(scr *scratch) {
	if c.parent != nil {
		c.parent.post(scr, sysMsg{kind: sysResetBackoff, child: c})
	}
}

// significantEnded stops a supervisor whose significant children have ended, if that
// is its strategy. The child is no longer among the children.
func (c *cell) significantEnded(scr *scratch, child *cell) {
	if !child.props.significant || c.state != stateRunning {
		return
	}
	switch c.props.strategy.Shutdown() {
	case supervision.ShutdownNever:
		return
	case supervision.ShutdownAll:
		for _, k := range c.kids() {
			if k.props.significant {
				return
			}
		}
	}
	c.quit(scr, "its significant child "+child.name()+" has ended")
}

// failed publishes a failure and what was decided.
func (s *System) failed(child *cell, f *abi.Failure, d supervision.Decision, note string, now time.Time, mail *CrashedMail) {
	if s.bus.quiet() {
		return
	}
	s.bus.publish(Event{
		Kind: EventFailed, Time: now, Ref: child.ref(), Type: child.props.typ, Incarnation: child.life.Load(),
		Failure: f, Directive: d.Directive, Delay: d.Delay, Failures: d.Failures, Note: note, Mail: mail,
	})
}
