package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// handleSystem handles all system messages, including those that arrive meanwhile.
func (a *actor) handleSystem(scr *scratch) {
	if a.sysq.Cut.Load() && a.sysq.Cut.CompareAndSwap(true, false) {
		a.inst.GoOn() // what comes from now on is seen, or ends the batch
	}
	for a.sysq.Waiting() && !a.sealed.isHeld() {
		items := a.sysq.Take()
		for i := range items {
			if a.system(scr, &items[i]); a.sealed.isHeld() {
				owe(a, a.sysq.PutBack(items[i+1:]))
				return
			}
		}
		owe(a, a.sysq.Done(items))
	}
	if a.asleep.Load() {
		a.sysq.Trim()
	}
}

func (a *actor) system(scr *scratch, m *sysmail.Msg) {
	if a.life.State() == life.Stopped {
		a.tooLate(scr, m)
		return
	}
	if a.durable {
		noteSignal(a, m)
	}
	if m.How.Has(sysmail.Order) {
		a.orders += uint64(1 + m.More)
	}
	switch m.Kind {
	case sysmail.Start:
		if a.doomed() == nil && a.life.Do(life.Start) {
			a.begin(scr, nil, false)
		}
	case sysmail.Stop:
		how := life.Ordered
		if m.How.Has(sysmail.ByItself) {
			how = life.ByItself
		}
		a.stopNow(scr, m.Reason, how)
	case sysmail.Quit:
		a.quit(scr, m.Reason)
	case sysmail.Suspend:
		a.life.Suspend()
		a.tellChildren(scr, sysmail.Msg{Kind: sysmail.Suspend})
	case sysmail.Unsuspend:
		a.life.Unsuspend()
		a.tellChildren(scr, sysmail.Msg{Kind: sysmail.Unsuspend})
		a.super.Reconsider(a.in(scr))
	case sysmail.Resume:
		if !m.How.Has(sysmail.Again) || m.Orders == a.orders {
			a.resume(scr)
		}
	case sysmail.Restart:
		a.prepareRestart(scr, m)
	case sysmail.Begin:
		if a.restart != nil {
			a.restart.hold = false
			a.maybeRestart(scr)
		}
	case sysmail.RestartDue:
		if a.restart != nil && m.Due == any(a.restart) {
			a.restart.due = true
			a.maybeRestart(scr)
		}
	case sysmail.GraceOver:
		if m.Due == a.gate.Grace() {
			a.gate.EndGrace(&a.life, &a.box)
		}
	case sysmail.ChildFailed, sysmail.ChildEnded, sysmail.ChildHalted, sysmail.ChildBegun, sysmail.ChildStopped, sysmail.Decide, sysmail.Renew, sysmail.ResetBackoff:
		a.aboutChild(scr, m)
	case sysmail.Pause, sysmail.Unpause:
		a.setPaused(scr, m.Kind == sysmail.Pause, m.How.Has(sysmail.Below))
	case sysmail.AwaitRenewal:
		a.renewals += 1 + m.More
		a.life.Hold(life.Renewed)
	case sysmail.Renewed:
		if a.renewals -= 1 + m.More; a.renewals == 0 {
			a.life.LetGo(life.Renewed)
		}
	case sysmail.Crash:
		if a.life.State() == life.Running && a.life.Begun.Load() {
			m.Failure.Turn = a.turns
			a.fail(scr, m.Failure, life.ByItself)
		}
	case sysmail.Look:
		m.Look.At()
	case sysmail.Signal:
		a.signalled(scr, m.Signal)
	case sysmail.Born:
		watching{a, scr}.born(m.Born)
	case sysmail.Sleep, sysmail.Instance:
		if g, ok := a.behaviour.(*guest); ok {
			g.residency(scr, m.Kind)
		}
	case sysmail.Stray:
		a.fail(scr, &abi.Failure{Kind: abi.FailureABIViolation, Reason: "too many messages to refs that name no actor", Turn: a.turns}, life.ByItself)
	}
}

// aboutChild handles a message from or about a child.
func (a *actor) aboutChild(scr *scratch, m *sysmail.Msg) {
	child, known := m.Child.(*actor)
	if !known {
		if child = a.sys.here(m.Ref); child == nil || child.parent != a {
			return
		}
	}
	p := a.in(scr)
	switch m.Kind {
	case sysmail.ChildFailed, sysmail.ChildEnded:
		r := scr.newReport()
		*r = supervisor.Report{
			Ref: m.Ref, Failure: m.Failure, Ended: m.Kind == sysmail.ChildEnded, Reason: m.Reason, Orders: m.Orders,
			Directive: m.Directive, Again: m.How.Has(sysmail.Again), Escalated: m.How.Has(sysmail.Escalated), Crowded: m.How.Has(sysmail.Crowded), Detail: m.Detail,
		}
		a.super.Report(p, &child.member, r)
		*r = supervisor.Report{}
	case sysmail.ChildHalted:
		a.super.Halted(p, &child.member, m.Orders)
	case sysmail.ChildBegun:
		a.super.Begun(p, &child.member, m.Orders)
	case sysmail.Decide:
		a.super.Decide(p, &child.member, m.Directive)
	case sysmail.Renew:
		a.super.Renew(p, &child.member, m.Failure, m.Detail, 1+m.More)
	case sysmail.ResetBackoff:
		a.super.ResetBackoff(&child.member)
	case sysmail.ChildStopped:
		if a.props.keeps {
			a.sys.abandoned(scr, a.work.DropAsk(a, uint64(m.Ref))...) // see Passivate
			back, _ := m.Detail.([]*mailbox.Envelope)
			a.work.TakeBack(a, child.Name(), back)
		}
		left := a.super.Stopped(p, &child.member, m.How.Has(sysmail.ByItself))
		switch {
		case a.life.State() == life.Stopping && left == 0:
			a.finishStop(scr)
		case a.life.State() == life.Restarting:
			a.maybeRestart(scr)
		}
	}
}

// tooLate answers a system message that reaches an actor that has stopped.
func (a *actor) tooLate(scr *scratch, m *sysmail.Msg) {
	switch {
	case m.Kind == sysmail.Look:
		m.Look.Gone()
	case m.Kind != sysmail.Signal:
	case m.Signal.Kind == signal.Watch:
		a.sys.notifyEnd(scr, m.Signal.From, a.ref(), a.reason)
	case m.Signal.Kind == signal.Observe:
		a.sys.abandoned(scr, m.Signal.From)
	}
}

// residency handles the system messages about the instance.
func (g *guest) residency(scr *scratch, k sysmail.Kind) {
	switch k {
	case sysmail.Sleep:
		g.inst.Sleep(scr.w)
	case sysmail.Instance:
		g.actor.life.LetGo(life.Starved)
		if s := g.start; s != nil && g.actor.life.State() == life.Running && g.actor.doomed() == nil {
			g.start = nil
			g.actor.begin(scr, s.cause, s.held)
		}
	}
}
