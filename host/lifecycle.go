package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// What an actor does on the way from one state of its life to the next. Which ways there
// are is the table of host/internal/life.

// begin starts an incarnation; the life is in its new state already. cause is why the incarnation before it
// ended. held says that the supervisor waits to be told that this one has begun.
func (a *actor) begin(scr *scratch, cause *abi.Failure, held bool) {
	a.Since.Store(a.Now().UnixNano())
	a.crowded = false
	var f *abi.Failure
	if g, ok := a.behaviour.(*guest); ok {
		var waits bool
		if f, waits = g.admit(scr, starting{cause, held}); waits {
			return
		}
	}
	ctx := a.enter(scr, nil)
	ctx.cause = cause
	if a.sys.cfg.Tracer != nil {
		a.sys.tracing.BeginStart(&scr.trace, a)
	}
	if f == nil {
		f = a.behaviour.Start(ctx, cause)
	}
	if a.sys.cfg.Tracer != nil {
		a.sys.tracing.EndCall(&scr.trace, a, f, 0)
	}
	a.leave()
	if a.sealed.isHeld() {
		a.sealed.start = &starting{cause, held}
		return
	}
	a.started(scr, f, starting{cause, held})
}

// started goes on when the turn of a start is over.
func (a *actor) started(scr *scratch, f *abi.Failure, s starting) {
	cause, held := s.cause, s.held
	if f != nil {
		if g, ok := a.behaviour.(*guest); !ok || !g.startsLater(f, s) {
			a.fail(scr, life.OfStart(f), life.ByItself)
		}
		return
	}
	if g, ok := a.behaviour.(*guest); ok {
		g.inst.Waited = 0
	}
	a.life.Begun.Store(true)
	if a.kept != nil {
		a.kept.Begun = a.turns
	}
	a.startChildren(scr)
	if held {
		a.parent.post(scr, sysmail.Msg{Kind: sysmail.ChildBegun, Kin: sysmail.Kin{Ref: a.uid, Orders: a.orders}})
	}
	a.sys.seen.Started(a, cause)
	a.super.Reconsider(a.in(scr))
}

// fail suspends the actor and tells its supervisor. A further failure before the decision changes nothing.
func (a *actor) fail(scr *scratch, f *abi.Failure, how life.Ending) {
	if !a.life.Do(life.Fail) {
		return
	}
	a.cause, a.ended = f, how
	a.failed.Note(&a.account, a.Now(), a.sys.seen.Shown(f))
	a.tellChildren(scr, sysmail.Msg{Kind: sysmail.Suspend})
	if a.parent == nil {
		a.sys.escalated(scr, a, f)
		return
	}
	m := a.report(f)
	m.Detail = a.crash
	a.crash = nil
	a.parent.post(scr, m)
}

// report is what the supervisor is told of a failure.
func (a *actor) report(f *abi.Failure) sysmail.Msg {
	return sysmail.Msg{Kind: sysmail.ChildFailed, Kin: sysmail.Kin{How: sysmail.If(a.ended == life.Escalated, sysmail.Escalated) | sysmail.If(a.crowded && !a.life.Begun.Load() && f.Kind == abi.FailureInit, sysmail.Crowded), Ref: a.uid, Child: a, Failure: f, Reason: a.cannotResume(), Orders: a.orders}}
}

// quit is the actor's own stop, asked for in a turn that has not failed. The supervisor of a permanent actor is asked
// first. An actor that fails in a later turn of the same batch still stops; one that stops itself twice still waits
// for the supervisor.
func (a *actor) quit(scr *scratch, reason string) {
	switch a.life.State() {
	case life.Running:
	case life.Failed:
		if a.ended == life.ByItself && a.cause != nil {
			a.stopNow(scr, reason, life.ByItself)
		}
		return
	default:
		return
	}
	first := a.Lifetime() == supervision.Permanent
	if p := a.sys.repeats.Load().of(a); p.oldRules(a) {
		first = p.older.AsksFirst(&p.ahead, a.uid, first)
	}
	if !first || a.parent == nil {
		a.stopNow(scr, reason, life.ByItself)
		return
	}
	a.life.Do(life.Fail)
	a.ended = life.ByItself
	a.tellChildren(scr, sysmail.Msg{Kind: sysmail.Suspend})
	a.parent.post(scr, sysmail.Msg{Kind: sysmail.ChildEnded, Kin: sysmail.Kin{Ref: a.uid, Reason: reason, Orders: a.orders}})
}

// tellChildren sends all children a system message.
func (a *actor) tellChildren(scr *scratch, m sysmail.Msg) {
	for _, k := range a.super.Family.Children() {
		k.post(scr, m)
	}
}

// cannotResume says why the actor cannot go back to the state from before the last turn; empty if it can.
func (a *actor) cannotResume() string {
	switch {
	case !a.life.Begun.Load():
		return "there was no turn before"
	case a.ended == life.Escalated:
		return "" // it has not failed itself
	}
	return a.behaviour.CannotRewind()
}

// resume goes on after a failure, with the state from before the failing turn. If there is no such state, the
// supervisor is asked for a restart, which counts and is delayed as any other.
func (a *actor) resume(scr *scratch) {
	if a.life.State() != life.Failed {
		return
	}
	if g, ok := a.behaviour.(*guest); ok && a.ended != life.Escalated && g.inst.ResumesLater(scr.w, sysmail.Msg{Kind: sysmail.Resume, Kin: sysmail.Kin{How: sysmail.Again, Orders: a.orders}}) {
		return
	}
	back := a.ended == life.Escalated
	if p := a.sys.repeats.Load().of(a); !back && a.cannotResume() == "" && (p == nil || !p.ahead.NotBack) {
		back = a.behaviour.Rewind(a.enter(scr, nil))
		a.leave()
	}
	if !back {
		f := a.cause
		if f == nil {
			f = &abi.Failure{Kind: abi.FailureExit, Reason: "the actor has ended"}
		}
		m := a.report(f)
		m.Directive, m.How = supervision.Restart, m.How|sysmail.Again
		if m.Reason == "" {
			m.Reason = "the state from before the turn could not be brought back"
		}
		a.parent.post(scr, m)
		return
	}
	failed := a.super.Escalated()
	a.ended, a.cause = life.Ordered, nil
	a.life.Do(life.Resume)
	a.tellChildren(scr, sysmail.Msg{Kind: sysmail.Unsuspend})
	if failed != nil {
		a.super.Order(a.in(scr), failed, resumeOrder)
	}
	a.sys.seen.Resumed(a)
	a.super.Reconsider(a.in(scr))
}

// prepareRestart ends the present incarnation; the next begins when the delay is over,
// the children are gone, and the supervisor does not hold it back.
func (a *actor) prepareRestart(scr *scratch, m *sysmail.Msg) {
	if r := a.restart; r != nil && a.life.State() == life.Restarting {
		if n, ok := m.Detail.(*renewal); ok { // another one is under way already
			a.hasten(scr, r, n)
		}
		r.hold, r.told = m.How.Has(sysmail.Hold), false
		if m.How.Has(sysmail.Now) && !r.due {
			r.alarm.Stop()
			r.due = true
		}
		a.maybeRestart(scr)
		return
	}
	suspendedKids := a.life.State() == life.Failed
	cause := m.Failure
	if cause == nil || m.How.Has(sysmail.Now) && a.cause != nil {
		cause = a.cause
	}
	kids := a.super.Family.Members()
	var owed []time.Duration
	if len(kids) > 0 {
		owed = make([]time.Duration, len(kids))
	}
	for i, k := range kids {
		owed[i] = a.super.Owed(k)
	}
	if _, ok := a.life.State().Next(life.Restart); !ok {
		return
	}
	a.life.Do(life.Restart)
	a.ended = life.Ordered
	a.endIncarnation(scr, End{Begun: a.life.Begun.Load(), Cause: cause, Delayed: m.Delay > 0})
	r := &restarting{cause: cause, due: m.Delay <= 0, delay: m.Delay > 0, keep: m.How.Has(sysmail.Keep), hold: m.How.Has(sysmail.Hold)}
	a.restart = r
	if r.delay {
		a.gate.Close(delayRules(a))
		due := a.Now().Add(m.Delay).UnixNano()
		r.after(tenant{a}, m.Delay)
		a.due.Store(due) // whoever sees it may move the clock
	}
	if !m.How.Has(sysmail.Keep) {
		kids = a.super.Family.Members() // the last turn may have made some
		owed = append(owed, make([]time.Duration, len(kids)-len(owed))...)
	}
	var before []Child
	n, renews := m.Detail.(*renewal)
	if renews {
		before = a.adopt(n)
		r.leave = map[*actor]bool{}
	}
	for i, k := range kids {
		if !renews && !m.How.Has(sysmail.Keep) {
			watching{a, scr}.dropRef(k.Child.uid) // the next incarnation does not know it
			a.super.Order(a.in(scr), k, stopOrder("the parent restarts"))
			continue
		}
		if suspendedKids {
			k.Child.post(scr, sysmail.Msg{Kind: sysmail.Unsuspend})
		}
		if renews {
			if !a.renewChild(scr, k, before, renewOrder{cause, m.How.Has(sysmail.Keep), owed[i]}) {
				r.leaves(k.Child)
			}
			continue
		}
		o := restartOrder(cause)
		o.Delay = owed[i]
		a.super.Order(a.in(scr), k, o)
	}
	a.maybeRestart(scr)
}

// endIncarnation drops what belongs to one incarnation. The mailbox, the watches and the stashed messages
// are kept for the next one.
func (a *actor) endIncarnation(scr *scratch, end End) {
	a.behaviour.End(a.enter(scr, nil), end)
	a.leave()
	a.failTaken(end.Cause)
	a.life.Begun.Store(false)
	a.super.EndIncarnation()
	a.sys.abandoned(scr, a.work.Cancel(a)...)
	a.gate.EndGrace(&a.life, &a.box)
	a.work.Return(a, &a.box)
}

// maybeRestart begins the next incarnation, unless something is still to be waited for.
func (a *actor) maybeRestart(scr *scratch) {
	r := a.restart
	if a.life.State() != life.Restarting || r == nil {
		return
	}
	if r.waits(&a.super.Family) {
		return
	}
	if r.hold {
		if !r.told {
			r.told = true
			a.parent.post(scr, sysmail.Msg{Kind: sysmail.ChildHalted, Kin: sysmail.Kin{Ref: a.uid, Orders: a.orders}})
		}
		return
	}
	if !r.due || a.doomed() != nil {
		return
	}
	a.restart, a.cause = nil, nil
	if r.delay {
		a.due.Store(0)
		a.gate.Open()
		a.gate.BeginGrace(tenant{a}, &a.life, &a.box, delayRules(a))
	}
	a.Number.Add(1)
	noteLife(a, record.Restarted)
	a.tally.Restarts.Add(1)
	a.sys.totals.Restarts.Add(1)
	a.life.Do(life.Begin)
	a.begin(scr, r.cause, r.told)
}

// stopNow begins the end: the children first.
func (a *actor) stopNow(scr *scratch, reason string, how life.Ending) {
	if !a.life.Do(life.Stop) {
		return
	}
	if reason == "" {
		reason = "stopped"
	}
	a.reason, a.ended = reason, how
	if a.restart != nil {
		a.restart.alarm.Stop()
		a.restart = nil
	}
	a.gate.Open()
	a.super.Stop(a.in(scr))
	if a.super.Family.Close() == 0 {
		a.finishStop(scr)
		return
	}
	a.last.Store(&life.LastTurns{By: a.Now().Add(a.sys.cfg.Grace / 2)})
	a.tree.stops.Add(1)
	for _, k := range a.super.Family.Children() {
		k.post(scr, sysmail.Msg{Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: "the parent stops"}})
		k.killFor("stopped")
	}
}

// closeBox ends the mailbox. Under a keeper it returns the messages, which the keeper gets back; everything else
// becomes dead letters.
func (a *actor) closeBox(scr *scratch) []*mailbox.Envelope {
	if a.kept == nil || a.parent.life.State().Ending() || !a.kept.ComesBack(a.ended, a.cause != nil, a.turns) { // nearly always; a closure of its own, because the other one allocates
		a.box.Close(func(e *mailbox.Envelope) { a.dead(scr, DeadStopped, ErrStopped, e) })
		return nil
	}
	var back []*mailbox.Envelope
	a.box.Close(func(e *mailbox.Envelope) {
		if e.Kind == abi.KindMessage && mark.IsMail(e) {
			back = append(back, e)
			return
		}
		a.dead(scr, DeadStopped, ErrStopped, e)
	})
	return back
}

// finishStop is the end: the last turn, then the mailbox, then the news to those who must know.
func (a *actor) finishStop(scr *scratch) {
	a.sys.totals.Ending.Add(1)
	defer a.sys.totals.Gone.Add(1)
	a.behaviour.End(a.enter(scr, nil), End{Last: true, Begun: a.life.Begun.Load() && !isFrozen(a)})
	a.leave()
	a.failTaken(a.cause)
	a.life.Do(life.End)
	if l := a.last.Load(); l != nil {
		a.tree.stops.Add(-1)
		if n := l.Unheard.Load(); n > 0 {
			a.sys.logf(a, abi.LogWarn, "%d actors below it have ended without a last turn: there was no time or no room for more within %v", n, a.sys.cfg.Grace/2)
		}
	}
	a.sys.abandoned(scr, a.work.Cancel(a)...)
	a.gate.EndGrace(&a.life, &a.box)
	a.super.Close()
	if a.parent != nil {
		a.tally.Turns.Store(a.turns)
		a.sys.totals.Add(a.props.typ, &a.tally, &a.counted) // before it leaves the table, so that its figures are never missing
	}
	a.sys.table.Remove(a.uid)
	live(a, -1)
	noteLife(a, record.Ended)
	a.sys.recent.Add(a.uid, a.path)
	if a.sys.cfg.Tracer != nil {
		a.sys.tracing.Origins.Take(a.uid)
	}
	for _, e := range a.work.Stash.TakeAll() {
		a.dead(scr, DeadStopped, ErrStopped, e)
	}
	back := a.closeBox(scr)
	for _, uid := range a.work.Watch.Watched() {
		a.sys.signal(scr, uid, signal.Signal{Kind: signal.Unwatch, From: a.uid})
	}
	left, owed := a.sysq.Close()
	owe(a, owed)
	// Watchers that are notified find the place and the name free. Only a keeper frees the name itself: the next
	// actor of that name begins with the messages that come back.
	a.box.CloseAccount()
	if a.parent != nil && !a.parent.props.keeps {
		a.parent.super.Family.Release(&a.member)
	}
	a.sys.places.Leave(&a.place, workplace.Pins(a.props.dispatch))
	if !a.withdrawn {
		a.sys.seen.Stopped(a, a.reason, a.cause)
	}
	a.tapped.End()
	if a.parent != nil {
		m := sysmail.Msg{Kind: sysmail.ChildStopped, Kin: sysmail.Kin{How: sysmail.If(a.ended == life.ByItself, sysmail.ByItself), Ref: a.uid, Child: a}}
		if len(back) > 0 {
			m.Detail = back
		}
		a.parent.post(scr, m)
	}
	for _, uid := range a.work.Watch.Watchers() {
		a.sys.notifyEnd(scr, uid, a.ref(), a.reason)
	}
	a.work.Watch.Clear()
	a.sys.lookouts.Drop(a, "")
	for i := range left {
		a.tooLate(scr, &left[i])
	}
	if a.parent == nil {
		a.sys.guardianStopped(a)
	}
}

// passivate ends an idle actor; one that is not says so.
func (a *actor) passivate(scr *scratch, e *mailbox.Envelope) {
	if a.kept == nil || !a.quiet() {
		a.sys.identified(scr, a, e)
		return
	}
	a.stopNow(scr, "idle", life.Ordered)
}

// Fail implements supervisor.Parent.
func (p parentIn) Fail(f *abi.Failure, escalated bool) {
	how := life.ByItself
	if escalated {
		how = life.Escalated
	}
	p.fail(p.scr, f, how)
}

// Quit implements supervisor.Parent.
func (p parentIn) Quit(reason string) {
	past := p.sys.repeats.Load().of(p.actor)
	if past != nil && past.decided.d == nil && !past.decided.last && !past.older.QuitsYet(&past.ahead, p.uid) {
		return // none of its children was significant then
	}
	p.quit(p.scr, reason)
}
