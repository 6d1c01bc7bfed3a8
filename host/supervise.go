package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
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

// Rand implements supervisor.Parent.
func (p parentIn) Rand() backoff.Rand { return p.dice.Rand(secretFor(p.actor), p.uid) }

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
	m := sysmail.Msg{Kin: sysmail.Kin{How: sysmail.Order | sysmail.If(o.Keep, sysmail.Keep) | sysmail.If(o.Hold, sysmail.Hold) | sysmail.If(o.Now, sysmail.Now) | sysmail.If(o.ByItself, sysmail.ByItself), Failure: o.Failure, Delay: o.Delay, Reason: o.Reason, Detail: o.Renewal}}
	switch o.Kind {
	case supervisor.Resume:
		m.Kind = sysmail.Resume
	case supervisor.Restart:
		m.Kind = sysmail.Restart
	case supervisor.Begin:
		m.Kind = sysmail.Begin
	case supervisor.Stop:
		m.Kind = sysmail.Stop
	}
	if past := p.sys.repeats.Load().of(p.actor); past.oldRules(child) {
		past.older.Order(&past.ahead, child.uid, &m)
	}
	child.post(p.scr, m)
}

// Renewed implements supervisor.Parent.
func (p parentIn) Renewed(child *actor, n int32) {
	child.post(p.scr, sysmail.Msg{Kind: sysmail.Renewed, More: n - 1})
}

// AskDecision implements supervisor.Parent.
func (p parentIn) AskDecision(child *actor, f *abi.Failure) (supervision.Directive, *abi.Failure) {
	defer p.leave()
	return p.behaviour.Decide(p.enter(p.scr, nil), child.ref(), f)
}

// Again implements supervisor.Parent.
func (p parentIn) Again(child *actor, r supervisor.Report) {
	kind := sysmail.ChildFailed
	if r.Ended {
		kind = sysmail.ChildEnded
	}
	mail, _ := r.Detail.(*CrashedMail)
	p.post(p.scr, sysmail.Msg{Kind: kind, Kin: sysmail.Kin{How: sysmail.If(r.Again, sysmail.Again) | sysmail.If(r.Escalated, sysmail.Escalated) | sysmail.If(r.Crowded, sysmail.Crowded), Ref: r.Ref, Child: child, Failure: r.Failure, Reason: r.Reason, Orders: r.Orders, Directive: r.Directive, Detail: mail}})
}

// Decided implements supervisor.Parent: who looks on is told of a failure and what was decided.
func (p parentIn) Decided(child *actor, r *supervisor.Report, o supervisor.Outcome) {
	if !r.Again && !r.Escalated {
		p.sys.totals.Crashed(child.props.typ, &child.tally, &child.counted)
	}
	if p.sys.seen.Quiet() {
		return
	}
	mail, _ := r.Detail.(*CrashedMail)
	id := ""
	if r.Failure != nil {
		id = p.sys.reportID(child.uid, r.Failure.Turn)
	}
	p.sys.seen.Decided(child, &look.Decision{
		ID: id, At: o.At, Failure: r.Failure, Escalated: r.Escalated, Directive: o.Directive, Delay: o.Delay, Failures: o.Failures,
		Note: o.Note, Mail: mail, Silent: p.props.strategy.Silent(),
	})
}

func (a *actor) resetBackoff(scr *scratch) {
	if a.parent != nil {
		a.parent.post(scr, sysmail.Msg{Kind: sysmail.ResetBackoff, Kin: sysmail.Kin{Ref: a.uid}})
	}
}
