package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/supervision"
)

// parentIn is an actor as the supervisor of its children, on the worker that runs it.
type parentIn struct {
	*actor
	scr *scratch
}

// in returns a's parentIn, valid until the worker runs another actor.
func (a *actor) in(scr *scratch) *parentIn {
	if scr == nil {
		return &parentIn{a, nil}
	}
	scr.parent = parentIn{a, scr}
	return &scr.parent
}

// newReport returns a report that is valid until the next one.
func (s *scratch) newReport() *supervisor.Report {
	if s == nil {
		return new(supervisor.Report)
	}
	return &s.report
}

// State implements supervisor.Parent.
func (p parentIn) State() life.State { return p.life.State() }

// Suspended implements supervisor.Parent.
func (p parentIn) Suspended() int { return p.life.Suspended() }

// The orders that are no answers to a failure.
var resumeOrder = supervisor.Order{Kind: supervisor.Resume}

func stopOrder(reason string) supervisor.Order {
	return supervisor.Order{Kind: supervisor.Stop, Reason: reason}
}

func restartOrder(cause *abi.Failure) supervisor.Order {
	return supervisor.Order{Kind: supervisor.Restart, Failure: cause, Keep: true}
}

// Order implements supervisor.Parent.
func (p parentIn) Order(child *actor, o supervisor.Order) {
	m := sysMsg{kin: kin{how: howOrder | howIf(o.Keep, howKeep) | howIf(o.Hold, howHold) | howIf(o.Now, howNow) | howIf(o.ByItself, howByItself), failure: o.Failure, delay: o.Delay, reason: o.Reason, detail: o.Renewal}}
	switch o.Kind {
	case supervisor.Resume:
		m.kind = sysResume
	case supervisor.Restart:
		m.kind = sysRestart
	case supervisor.Begin:
		m.kind = sysBegin
	case supervisor.Stop:
		m.kind = sysStop
	}
	child.post(p.scr, m)
}

// Renewed implements supervisor.Parent.
func (p parentIn) Renewed(child *actor, n int32) {
	child.post(p.scr, sysMsg{kind: sysRenewed, more: n - 1})
}

// AskDecision implements supervisor.Parent.
func (p parentIn) AskDecision(child *actor, f *abi.Failure) (supervision.Directive, *abi.Failure) {
	defer p.leave()
	return p.behaviour.Decide(p.enter(p.scr, nil), child.ref(), f)
}

// Fail implements supervisor.Parent.
func (p parentIn) Fail(f *abi.Failure, escalated bool) {
	how := endByItself
	if escalated {
		how = endEscalated
	}
	p.fail(p.scr, f, how)
}

// Quit implements supervisor.Parent.
func (p parentIn) Quit(reason string) { p.quit(p.scr, reason) }

// Again implements supervisor.Parent.
func (p parentIn) Again(child *actor, r supervisor.Report) {
	kind := sysChildFailed
	if r.Ended {
		kind = sysChildEnded
	}
	mail, _ := r.Detail.(*CrashedMail)
	p.post(p.scr, sysMsg{kind: kind, kin: kin{how: howIf(r.Again, howAgain) | howIf(r.Escalated, howEscalated) | howIf(r.Crowded, howCrowded), ref: r.Ref, child: child, failure: r.Failure, reason: r.Reason, orders: r.Orders, directive: r.Directive, detail: mail}})
}

// Decided implements supervisor.Parent: it publishes a failure and what was decided. An
// escalated failure is published once as a failure; higher up, events say what happens
// to the supervisors that it has reached.
func (p parentIn) Decided(child *actor, r *supervisor.Report, o supervisor.Outcome) {
	if !r.Again && !r.Escalated {
		p.sys.totals.crashed(child)
	}
	if p.sys.bus.quiet() {
		return
	}
	kind := EventFailed
	if r.Escalated {
		kind = EventEscalated
	}
	mail, _ := r.Detail.(*CrashedMail)
	var trace *TraceContext
	if mail != nil {
		trace = mail.Trace
	}
	id := ""
	if r.Failure != nil {
		id = p.sys.reportID(child.uid, r.Failure.Turn)
	}
	p.sys.bus.publish(Event{
		ID: id, Trace: trace, Kind: kind, Time: o.At, Ref: child.ref(), Type: child.props.typ, Incarnation: child.incarnation(),
		Failure: r.Failure, Directive: o.Directive, Delay: o.Delay, Failures: o.Failures, Note: o.Note, Mail: mail,
		Silent: p.props.strategy.Silent(),
	})
}

// Decide is an operator's decision about an actor that its supervisor has left suspended
// (see supervision.Suspend): Resume, Restart or Stop. It has no effect on any other.
func (o Operator) Decide(ref Ref, d supervision.Directive) error {
	if d != supervision.Resume && d != supervision.Restart && d != supervision.Stop {
		return ErrBadDirective
	}
	a := o.sys.here(ref.UID())
	if a == nil || a.parent == nil || !a.parent.post(nil, sysMsg{kind: sysDecide, kin: kin{ref: a.uid, directive: d}}) {
		return ErrUnknown
	}
	return nil
}

// ResetBackoff makes the supervisor of an actor count its failures from the beginning
// again, under the reset policy "manual" or any other.
func (o Operator) ResetBackoff(ref Ref) error {
	a := o.sys.here(ref.UID())
	if a == nil || a.parent == nil {
		return ErrUnknown
	}
	a.resetBackoff(nil)
	return nil
}

func (a *actor) resetBackoff(scr *scratch) {
	if a.parent != nil {
		a.parent.post(scr, sysMsg{kind: sysResetBackoff, kin: kin{ref: a.uid}})
	}
}
