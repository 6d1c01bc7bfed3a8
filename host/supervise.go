package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// childFailed decides about a child that waits for it. A child that is not (any
// more) ours, or has been restarted or stopped meanwhile, ignores what follows.
func (c *cell) childFailed(scr *scratch, child *cell, f *abi.Failure) {
	if c.child(child.elements[len(child.elements)-1]) != child || c.state == stateStopping {
		return
	}
	s := c.props.strategy
	now := c.sys.cfg.clock.Now()
	if at := child.startedAt.Load(); at != 0 {
		child.record.Started(time.Unix(0, at))
	}
	d := s.Failed(&child.record, child.props.typ, f, now, c.random())
	befalls := c.befallen(s.Kind(), child)
	if d.Directive == supervision.Restart {
		for _, k := range befalls {
			if k != child && !s.Permit(&k.record, now) {
				d.Directive, d.Delay, d.Refused = supervision.Stop, 0, "more restarts of a sibling than allowed"
				break
			}
		}
	}
	note := d.Refused
	if d.Directive == supervision.Resume && child.props.image != nil {
		note = "resume: the state before the turn was not kept, restarting"
	}
	c.sys.failed(child, f, d, note, now)
	switch d.Directive {
	case supervision.Resume:
		child.post(scr, sysMsg{kind: sysResume})
	case supervision.Restart:
		for _, k := range befalls {
			k.post(scr, sysMsg{kind: sysRestart, failure: f, delay: d.Delay, keep: s.KeepChildren()})
		}
	case supervision.Stop:
		for _, k := range befalls {
			reason := "failed: " + f.Error()
			if k != child {
				reason = "stopped with a sibling that failed"
			}
			k.post(scr, sysMsg{kind: sysStop, reason: reason})
		}
	case supervision.Escalate:
		c.culprit = child
		if c.state != stateRunning {
			// It has failed itself: its supervisor's decision covers the child.
			return
		}
		c.fail(scr, f)
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

// failed publishes a failure and what was decided.
func (s *System) failed(child *cell, f *abi.Failure, d supervision.Decision, note string, now time.Time) {
	s.crashes.Add(1)
	if s.bus.quiet() {
		return
	}
	s.bus.publish(Event{
		Kind: EventFailed, Time: now, Ref: child.ref(), Type: child.props.typ, Incarnation: child.incarnation,
		Failure: f, Directive: d.Directive, Delay: d.Delay, Failures: d.Failures, Note: note,
	})
}
